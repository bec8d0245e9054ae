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

from sigadapt.json_values import Json, Keys, cut, is_array, is_object
from sigadapt.schemas.subschemas import applications, dereference

# What a schema asserts of a value by itself, not through the schemas in it.
_ASSERTIONS = (
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
            schema, judged, keys = item
            if not is_object(schema):
                yield Misfit(keys, f"no value is allowed here, and {cut(repr(judged))} is one")
                continue
            errors = list(self._errors(_assertions_of(schema), judged))
            inner_misfits = self._inner_misfits(schema, judged)
            if not errors and not inner_misfits:
                errors = list(self._errors(schema, judged))
            pending += [Misfit((*keys, *error.instance_path), _reason_of(error)) for error in errors[::-1]]
            for subschema, member, key in inner_misfits:
                member_keys = keys if key is None else (*keys, key)
                pending.append((subschema, member, member_keys))

    def fits(self, schema: Any, value: Any) -> bool:
        """Return whether a value fits a part of the schema; true for a part that is not known."""
        validator = self._validator(schema) if is_object(schema) else None
        if validator is None:
            return schema is not False
        return validator.is_valid(value)

    def _inner_misfits(self, schema: Json, value: Any) -> list[tuple[Any, Any, str | int | None]]:
        """Return the schemas and parts that a misfit is in, the first one last."""
        judged = list(applications(schema, value, self._root))
        misfits: list[tuple[Any, Any, str | int | None]] = []
        for application in judged:
            if application.keyword in _NOT_FOLLOWED:
                continue
            if not self.fits(application.schema, application.part):
                misfits.append((application.schema, application.part, application.key))
        for keyword in _ALTERNATIVES:
            alternatives = [application.schema for application in judged if application.keyword == keyword]
            if not alternatives or any(self.fits(alternative, value) for alternative in alternatives):
                continue
            closest = min(alternatives, key=lambda alternative: self._distance(alternative, value))
            has_other_type = self._distance(closest, value)[0]
            if not has_other_type:
                misfits.append((closest, value, None))
        if "if" in schema:
            branch = "then" if self.fits(schema["if"], value) else "else"
            if branch in schema and not self.fits(schema[branch], value):
                misfits.append((schema[branch], value, None))
        return misfits[::-1]

    def _distance(self, alternative: Any, value: Any) -> tuple[bool, int, int]:
        """Return how far a value is from an alternative: type, tags, missing and extra names."""
        schema = dereference(alternative, self._root)
        if not is_object(schema) or not self.fits(_only(schema, "type", "const", "enum"), value):
            return True, 0, 0
        properties = schema.get("properties")
        if not is_object(value) or not is_object(properties):
            return False, 0, 0
        wrong_tags = 0
        for name in properties.keys() & value.keys():
            property_schema = dereference(properties[name], self._root)
            if is_object(property_schema):
                wrong_tags += not self.fits(_only(property_schema, "const", "enum"), value[name])
        missing = set(schema.get("required", ())).difference(value)
        extra = value.keys() - properties.keys()
        return False, wrong_tags, len(missing) + len(extra)

    def _errors(self, schema: Json, value: Any) -> Iterator[jsonschema_rs.ValidationError]:
        validator = self._validator(schema) if schema else None
        if validator is None or validator.is_valid(value):
            return iter(())
        return validator.iter_errors(value)

    def _validator(self, schema: Json) -> jsonschema_rs.Validator | None:
        if id(schema) not in self._compiled:
            validator = None
            with suppress(jsonschema_rs.ValidationError, ValueError):  # a reference that leads beside `$defs`
                validator = self._draft({**schema, **self._shared}, **self._options)
            self._compiled[id(schema)] = schema, validator
        return self._compiled[id(schema)][1]


def _only(schema: Json, *keywords: str) -> Json:
    return {keyword: schema[keyword] for keyword in keywords if keyword in schema}


def _reason_of(error: jsonschema_rs.ValidationError) -> str:
    alternatives: list[list[jsonschema_rs.ValidationError]] = getattr(error.kind, "context", [])
    firsts = ", ".join(cut(errors[0].message) for errors in alternatives[:4] if errors)
    return f"fits no alternative ({firsts})" if firsts else cut(error.message)


def _assertions_of(schema: Json) -> Json:
    """Return what a schema asserts of a value by itself, not through the schemas in it."""
    assertions = _only(schema, *_ASSERTIONS)
    if schema.get("additionalProperties") is False:
        assertions["additionalProperties"] = False
        for keyword in ("properties", "patternProperties"):
            if is_object(members := schema.get(keyword)):
                assertions[keyword] = dict.fromkeys(members, True)
    if is_object(members := schema.get("dependencies")):
        assertions["dependencies"] = {key: names for key, names in members.items() if is_array(names)}
    return assertions
