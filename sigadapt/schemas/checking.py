"""Check a tool's parameters schema (`check`), and check arguments against it (`Schema.flaw_of`).

A schema may be declared if it passes all of these checks (fail before the call, no network):

 a. It is JSON: string keys, finite numbers, at most `SCHEMA_LEVELS` levels, `MAX_VALUES` values and
    `MAX_PATTERNS` patterns.
 b. Its root describes an object: `"type": "object"`; or no `type`, but a keyword that is about objects
    (`properties`) or that combines or refers to schemas (`anyOf`, `$ref`).
 c. Its types are JSON Schema's seven.
 d. Its references stay inside the schema, and following them takes bounded work (`references.py`).
 e. Its draft's metaschema accepts it. `$schema` names the draft; without a known one, it is Draft 2020-12.

A schema is never changed or copied here. As Draft 2020-12 says, `format` is not asserted. Patterns are
ECMA 262 regular expressions and run in linear time. A pattern with lookaround or backreferences stops after a
fixed number of steps, and the value then does not fit; long text is not searched with one at all.

Why arguments do not fit is looked for after the verdict (`Misfits`). The validator could list its errors, but
it tries every alternative at every level for that, which takes twice as long with each level of a recursive
schema. A verdict alone is quick. So every part is asked for a verdict, from the outside in, and errors are
listed only of the innermost misfits. Where no alternative fits, the closest is followed: one whose type, tags
and names the value has.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple, NoReturn

import jsonschema_rs
import orjson

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import (
    ARGUMENT_LEVELS,
    SCHEMA_LEVELS,
    Json,
    Keys,
    closest,
    compact,
    cut,
    fault_in,
    is_array,
    is_object,
    pointer,
    short_pointer,
    type_of,
)
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.caches import SCHEMAS_BUDGET, BoundedCache
from sigadapt.schemas.references import check_references
from sigadapt.schemas.subschemas import applications, dereference, judgements, subschemas

MAX_VALUES = 100_000
MAX_PATTERNS = 500

_ENGINE = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=4 * 1024 * 1024)
_OPTIONS: dict[str, Any] = {"pattern_options": _ENGINE, "offline": True}
"""Without `offline`, the validator reads references from the network and from files (no network)."""
_LONGEST_LIST = 1_200
_MOST_ERRORS = 8
_MOST_NAMED = 10_000
_BEYOND_LINEAR = re.compile(r"\(\?(?:<?[=!])|\\[1-9]|\\k<")  # look-around and backreferences
_LONGEST_SEARCHED = 20_000  # bytes; a pattern beyond linear time reads a text again from each character on,
# and several of them read it several times

_TYPES = ("object", "string", "integer", "number", "boolean", "array", "null")
_OTHER_WORDS = {
    **dict.fromkeys(("dict", "dictionary", "map", "hashmap", "record", "struct"), "object"),
    **dict.fromkeys(("str", "text", "char", "date", "datetime"), "string"),
    **dict.fromkeys(("int", "long", "short", "bigint"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **dict.fromkeys(("list", "tuple", "set", "arraylist"), "array"),
    **dict.fromkeys(("none", "nil", "undefined"), "null"),
    "bool": "boolean",
}
_OF_OBJECTS = (
    frozenset(("properties", "patternProperties", "additionalProperties", "unevaluatedProperties"))
    | frozenset(("required", "propertyNames", "minProperties", "maxProperties"))
    | frozenset(("dependentRequired", "dependentSchemas", "allOf", "anyOf", "oneOf", "if", "$ref"))
)


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


class Schema(NamedTuple):
    """A schema that passed the checks; one object for each text."""

    validator: jsonschema_rs.Validator
    text: str
    beyond_linear: int  # how many of its patterns are beyond linear time

    def flaw_of(self, args: Json, tool: str) -> Flaw | None:
        """Check arguments."""
        flaw = self._unfit_to_judge(args, tool)
        if flaw is not None or self.validator.is_valid(args):
            return flaw
        reasons: list[str] = []
        first: str | None = None
        for misfit in islice(self._misfits.of(args), _MOST_ERRORS + 1):
            if len(reasons) == _MOST_ERRORS or sum(map(len, reasons)) > _LONGEST_LIST:
                reasons.append("and more")
                break
            path = short_pointer(misfit.keys)
            reason = f"{path}: {misfit.reason}" if path else misfit.reason
            reasons.append(reason)
            if first is None:
                first = path
        summary = "; ".join(reasons) or "its parts do, but not the whole"
        return Flaw("schema_mismatch", f"the arguments do not fit {tool}: {summary}", first or "")

    def misfits(self, args: Json) -> frozenset[str]:
        """Name the arguments that hold something that does not fit; all of them, where that is unknown."""
        if self._unfit_to_judge(args, "") is not None:
            return frozenset(args)
        if self.validator.is_valid(args):
            return frozenset()
        found = list(islice(self._misfits.of(args), _MOST_NAMED))
        if len(found) in (0, _MOST_NAMED):
            return frozenset(args)
        return frozenset(str(misfit.keys[0]) for misfit in found if misfit.keys)

    def judgements(self, args: Json, limit: int) -> int:
        """Count how often a reader that remembers nothing would judge parts of the arguments, to a limit."""
        if "$ref" not in self.text:
            return 0
        return judgements(json.loads(self.text), args, limit)

    def _unfit_to_judge(self, args: Json, tool: str) -> Flaw | None:
        try:
            size = len(orjson.dumps(args))
        except TypeError:  # an integer over 64 bits, which is fine; or what the validator must not be given
            fault = fault_in(args, levels=ARGUMENT_LEVELS)
            if fault is not None:
                reason = f"the arguments of {tool} are not JSON: {fault.reason}"
                return Flaw("schema_mismatch", reason, fault.path)
            size = len(compact(args))
        if size * size * self.beyond_linear <= _LONGEST_SEARCHED**2:
            return None
        reason = f"the arguments of {tool} could not be checked: it would take too long"
        return Flaw("schema_mismatch", reason)

    @property
    def _misfits(self) -> Misfits:
        schema: Json = json.loads(self.text)  # what its author holds may have changed since
        return Misfits(schema, _draft_of(schema), _OPTIONS)


# Compiled schemas by their text: dicts and MCP tools are often declared again for every request.
_VALIDATORS: BoundedCache[str, Schema] = BoundedCache(SCHEMAS_BUDGET)
_COMPILED_WEIGHS = 40  # bytes of memory for each byte of schema text, measured
_LONGEST_KEPT = 16_384


def check(schema: object, *, tool: str | None) -> Schema:
    """Compile a schema; refuse it if it breaks one of the rules at the top of this file."""
    if not is_object(schema):
        _refuse(f"expected a JSON Schema object as parameters, got {type_of(schema)}", tool, "")
    check_json(schema, tool=tool)
    text = compact(schema)  # after check_json, because `compact` writes NaN as null
    compiled = _VALIDATORS.get(text)
    if compiled is not None:
        return compiled
    _check_root(schema, tool)
    places = list(subschemas(schema))
    check_references(places, tool=tool)
    for place in places:
        if "type" in place.schema:
            _check_type(place.schema["type"], tool, (*place.path, "type"))
    patterns = _patterns_in(place.schema for place in places)
    if len(patterns) > MAX_PATTERNS:  # each may take milliseconds to compile
        _refuse(f"the schema has more than {MAX_PATTERNS} patterns", tool, None)
    beyond_linear = sum(_BEYOND_LINEAR.search(pattern) is not None for pattern in patterns)
    compiled = Schema(_compile(schema, tool), text, beyond_linear)
    if len(text) <= _LONGEST_KEPT:
        _VALIDATORS.put(text, compiled, weight=len(text) * _COMPILED_WEIGHS)
    return compiled


def _check_root(schema: Json, tool: str | None) -> None:
    """Refuse a schema whose root does not describe an object (check b)."""
    if "type" not in schema and _OF_OBJECTS.isdisjoint(schema):
        _refuse("the schema does not describe an object", tool, "", fix='Add "type": "object".')
    if schema.get("type", "object") == "object":
        return
    _check_type(schema["type"], tool, ("type",))
    reason = f"arguments have the type 'object', not {schema['type']!r}"
    _refuse(reason, tool, "/type", fix="Use 'object'.")


def _patterns_in(schemas: Iterable[Json]) -> list[str]:
    patterns: list[str] = []
    for schema in schemas:
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            patterns.append(pattern)
        by_pattern = schema.get("patternProperties")
        if is_object(by_pattern):
            patterns += by_pattern
    return patterns


def check_json(value: object, *, tool: str | None) -> None:
    """Refuse a value that is not JSON, or that is too deep or too large for a declaration (check a)."""
    fault = fault_in(value, levels=SCHEMA_LEVELS, most=MAX_VALUES)
    if fault is not None:
        _refuse(fault.reason, tool, fault.path)


def _compile(schema: Json, tool: str | None) -> jsonschema_rs.Validator:
    """Compile a schema, which also checks it against its metaschema (check e)."""
    try:
        return _draft_of(schema)(schema, **_OPTIONS)
    except jsonschema_rs.ValidationError as error:
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            _refuse(error.message, tool, None, code="remote_ref")
        reason = f"not a valid JSON Schema: {cut(error.message)}"
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format):  # always `regex` here
            reason = f"{cut(repr(error.instance))} is not an ECMA 262 pattern, or it is too large"
        _refuse(reason, tool, pointer(error.instance_path))


def _draft_of(schema: Json) -> type[jsonschema_rs.Validator]:
    if "$schema" not in schema:
        return jsonschema_rs.Draft202012Validator
    return jsonschema_rs.validator_cls_for({"$schema": schema["$schema"]})


def _check_type(words: object, tool: str | None, path: Keys) -> None:
    """Refuse a type that is not JSON Schema's (check c)."""
    for word in words if is_array(words) else [words]:
        if type(word) is not str or word in _TYPES:
            continue
        plain = word.strip().lower()
        correct = _OTHER_WORDS.get(plain) or closest(plain, _TYPES)
        if plain == "any":
            fix = "Leave `type` out to allow any value."
        elif correct:
            fix = f"Use '{correct}'."
        else:
            fix = f"Use one of {', '.join(_TYPES)}."
        _refuse(f"{cut(word)!r} is not a JSON Schema type", tool, pointer(path), fix=fix)


def _refuse(
    reason: str, tool: str | None, path: str | None, *, code: str = "invalid_schema", fix: str | None = None
) -> NoReturn:
    raise InvalidToolDecl(reason, code=code, tool=tool, path=path, fix=fix)
