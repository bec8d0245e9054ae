"""Where and why arguments do not fit, once the validator has said that they do not.

The validator could list its errors, but it tries every alternative at every level for that, which takes twice
as long with each level of a recursive schema. A verdict alone is quick. So every part is asked for a verdict,
from the outside in, and errors are listed only of the innermost misfits. Where no alternative fits, the
closest is followed: one whose type, tags and names the value has.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import jsonschema_rs

from sigadapt.schemas.json_values import Json, Keys, cut, is_array, is_object
from sigadapt.schemas.subschemas import applications, dereference

# What a schema asserts of a value by itself, not through the schemas in it.
_OWN = (
    frozenset(("type", "enum", "const", "format"))
    | frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
    | frozenset(("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"))
    | frozenset(("required", "minProperties", "maxProperties", "dependentRequired"))
)
_ALTERNATIVES = ("anyOf", "oneOf")
_NOT_FOLLOWED = frozenset((*_ALTERNATIVES, "not", "if", "then", "else", "contains", "propertyNames"))


class Misfit(NamedTuple):
    """One reason why a value does not fit: the keys to the place, and a sentence."""

    keys: Keys
    reason: str


class Misfits:
    """What does not fit a schema, as it was compiled: by a draft's validator, with options."""

    def __init__(self, root: Json, draft: type[jsonschema_rs.Validator], options: dict[str, Any]) -> None:
        self._root = root
        self._draft = draft
        self._options = options
        self._shared = {key: root[key] for key in ("$schema", "$defs", "definitions") if key in root}
        self._compiled: dict[int, tuple[Any, jsonschema_rs.Validator | None]] = {}

    def of(self, value: Any) -> Iterator[Misfit]:
        """Yield what of a value does not fit, in its order; nothing if that cannot be told."""
        pending: list[tuple[Any, Any, Keys] | Misfit] = [(self._root, value, ())]
        while pending:
            item = pending.pop()
            if isinstance(item, Misfit):
                yield item
                continue
            schema, part, keys = item
            if not is_object(schema):
                yield Misfit(keys, f"no value is allowed here, and {cut(repr(part))} is one")
                continue
            direct = list(self._errors(_own_assertions(schema), part))
            below = self._below(schema, part)
            errors = direct if direct or below else list(self._errors(schema, part))
            for each in reversed(errors):
                alternatives: list[list[jsonschema_rs.ValidationError]] = getattr(each.kind, "context", [])
                firsts = ", ".join(cut(errors[0].message) for errors in alternatives[:4] if errors)
                reason = f"fits no alternative ({firsts})" if firsts else cut(each.message)
                pending.append(Misfit((*keys, *each.instance_path), reason))
            pending += [(one, inner, keys if key is None else (*keys, key)) for one, inner, key in below]

    def fits(self, schema: Any, value: Any) -> bool:
        """Return whether a value fits a part of the schema; true for a part that is not known."""
        validator = self._validator(schema) if is_object(schema) else None
        return schema is not False if validator is None else validator.is_valid(value)

    def _below(self, schema: Json, value: Any) -> list[tuple[Any, Any, str | int | None]]:
        """Return the schemas and parts that a misfit is in, the first one last."""
        every = list(applications(schema, value, self._root))
        below = [
            (each.schema, each.part, each.key)
            for each in every
            if each.keyword not in _NOT_FOLLOWED and not self.fits(each.schema, each.part)
        ]
        for keyword in _ALTERNATIVES:
            alternatives = [each.schema for each in every if each.keyword == keyword]
            if alternatives and not any(self.fits(each, value) for each in alternatives):
                closest = min(alternatives, key=lambda each: self._distance(each, value))
                below += [(closest, value, None)] if not self._distance(closest, value)[0] else []
        branch = "then" if "if" in schema and self.fits(schema["if"], value) else "else"
        if branch in schema and "if" in schema and not self.fits(schema[branch], value):
            below.append((schema[branch], value, None))
        return below[::-1]

    def _distance(self, alternative: Any, value: Any) -> tuple[bool, int, int]:
        """Return how far a value is from an alternative: type, tags, missing and extra names."""
        schema = dereference(alternative, self._root)
        if not is_object(schema) or not self.fits(_only(schema, "type", "const", "enum"), value):
            return True, 0, 0
        properties = schema.get("properties")
        if not is_object(value) or not is_object(properties):
            return False, 0, 0
        parts = {name: dereference(properties[name], self._root) for name in properties.keys() & value.keys()}
        tags = {name: _only(part, "const", "enum") for name, part in parts.items() if is_object(part)}
        wrong = sum(not self.fits(tag, value[name]) for name, tag in tags.items())
        missing = set(schema.get("required", ())).difference(value)
        return False, wrong, len(missing) + len(value.keys() - properties.keys())

    def _errors(self, schema: Json, value: Any) -> Iterator[jsonschema_rs.ValidationError]:
        validator = self._validator(schema) if schema else None
        return iter(()) if validator is None or validator.is_valid(value) else validator.iter_errors(value)

    def _validator(self, schema: Json) -> jsonschema_rs.Validator | None:
        if id(schema) not in self._compiled:
            validator = None
            with suppress(jsonschema_rs.ValidationError, ValueError):  # a reference that leads beside `$defs`
                validator = self._draft({**schema, **self._shared}, **self._options)
            self._compiled[id(schema)] = schema, validator
        return self._compiled[id(schema)][1]


def _only(schema: Json, *keywords: str) -> Json:
    return {keyword: schema[keyword] for keyword in keywords if keyword in schema}


def _own_assertions(schema: Json) -> Json:
    assertions = _only(schema, *_OWN)
    if schema.get("additionalProperties") is False:
        assertions["additionalProperties"] = False
        for keyword in ("properties", "patternProperties"):
            if is_object(members := schema.get(keyword)):
                assertions[keyword] = dict.fromkeys(members, True)
    if is_object(members := schema.get("dependencies")):
        assertions["dependencies"] = {key: names for key, names in members.items() if is_array(names)}
    return assertions
