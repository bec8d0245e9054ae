"""Check a tool's parameters schema (`check`), and check arguments against it (`flaw_in`).

A schema may be declared if it passes all of these checks (rules 4 and 11):

 a. It is JSON: string keys, finite numbers, at most `SCHEMA_LEVELS` levels, `MAX_VALUES` values and
    `MAX_PATTERNS` patterns.
 b. Its root describes an object: `"type": "object"`; or no `type`, but a keyword that is about objects
    (`properties`) or that combines or refers to schemas (`anyOf`, `$ref`).
 c. Its types are JSON Schema's seven.
 d. Its references stay inside the schema, and following them takes bounded work (`references.py`).
 e. Its draft's metaschema accepts it. `$schema` names the draft; without a known one, it is Draft 2020-12.

A schema is never changed or copied here. As Draft 2020-12 says, `format` is not asserted. Patterns are
ECMA 262 regular expressions and run in linear time. A pattern with lookaround or backreferences stops after a
fixed number of steps, and the value then does not fit.
"""

from itertools import islice
from typing import NoReturn, cast

import jsonschema_rs
import orjson

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.caches import BoundedCache
from sigadapt.schemas.json_values import (
    ARGUMENT_LEVELS,
    SCHEMA_LEVELS,
    Json,
    Path,
    closest,
    compact,
    cut,
    fault_in,
    listed,
    pointer,
)
from sigadapt.schemas.references import check_references
from sigadapt.schemas.subschemas import Place, subschemas

MAX_VALUES = 100_000
MAX_PATTERNS = 500

# Compiled schemas by their text: dicts and MCP tools are often declared again for every request.
_VALIDATORS: BoundedCache[str, jsonschema_rs.Validator] = BoundedCache(4 * 1024 * 1024)
_COMPILED_WEIGHS = 40  # bytes of memory for each byte of schema text, measured
_LONGEST_KEPT = 16_384

_ENGINE = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=4 * 1024 * 1024)
_MOST_ERRORS = 8

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


def check(schema: object, *, tool: str | None) -> jsonschema_rs.Validator:
    """Compile a schema; refuse it if it breaks one of the rules at the top of this file.

    Args:
        schema: the arguments' JSON Schema as its author wrote it.
        tool: the tool's name, for the error.

    Returns:
        The compiled schema, for `flaw_in`.

    Raises:
        InvalidToolDecl: `invalid_schema` or `remote_ref`, with the path of the offending keyword.

    Example:
        >>> check({"type": "object", "properties": {"n": {"type": "int"}}}, tool="f")
        Traceback (most recent call last):
        sigadapt.errors.InvalidToolDecl: tool 'f', at /properties/n/type: 'int' is not a JSON Schema type. \
Use 'integer'.
    """
    if not isinstance(schema, dict):
        _refuse(f"expected a JSON Schema object as parameters, got a {type(schema).__name__}", tool, "")
    root = cast("Json", schema)
    check_json(root, tool=tool)
    text = compact(root)  # after check_json, because `compact` writes NaN as null
    validator = _VALIDATORS.get(text)
    if validator is None:
        validator = _checked(root, tool)
        if len(text) <= _LONGEST_KEPT and '"pattern' not in text:  # a pattern may take half a megabyte
            _VALIDATORS.put(text, validator, weight=len(text) * _COMPILED_WEIGHS)
    return validator


def _checked(root: Json, tool: str | None) -> jsonschema_rs.Validator:
    _check_root(root, tool)
    places = list(subschemas(root))
    for place in places:
        if "type" in place.schema:
            _check_type(place.schema["type"], tool, Path(place.path, "type"))
    _check_patterns(places, tool)
    check_references(places, tool=tool)
    return compiled(root, tool=tool)


def check_json(value: object, *, tool: str | None) -> None:
    """Refuse a value that is not JSON, or that is too deep or too large for a declaration (check a).

    Raises:
        InvalidToolDecl: `invalid_schema`, with the path.

    Example:
        >>> check_json({"enum": [1.5, None, "x"]}, tool="f")
    """
    fault = fault_in(value, levels=SCHEMA_LEVELS, most=MAX_VALUES)
    if fault is not None:
        _refuse(fault.reason, tool, fault.path)


def compiled(schema: Json, *, tool: str | None) -> jsonschema_rs.Validator:
    """Compile a schema, which also checks it against its metaschema (check e).

    Raises:
        InvalidToolDecl: `invalid_schema`; or `remote_ref` for a reference to another document.

    Example:
        >>> compiled({"type": "object"}, tool="f").is_valid({})
        True
    """
    draft = jsonschema_rs.Draft202012Validator
    if "$schema" in schema:
        draft = jsonschema_rs.validator_cls_for({"$schema": schema["$schema"]})
    try:
        # Without `offline=True`, the validator reads references from the network and from files (rule 11).
        return draft(schema, pattern_options=_ENGINE, offline=True)
    except jsonschema_rs.ValidationError as error:
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            _refuse(error.message, tool, None, code="remote_ref")
        reason = f"not a valid JSON Schema: {cut(error.message)}"
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format):  # always `regex` here
            reason = f"{cut(repr(error.instance))} is not an ECMA 262 pattern, or it is too large"
        _refuse(reason, tool, pointer(error.instance_path))
    except ValueError as error:  # half of a surrogate pair
        _refuse(f"not JSON: {cut(str(error))}", tool, None)


def flaw_in(args: Json, validator: jsonschema_rs.Validator, tool: str) -> Flaw | None:
    """Check arguments against a compiled schema.

    Args:
        args: the decoded arguments.
        validator: what `check` or `compiled` returned.
        tool: the tool's name, for the message.

    Returns:
        None if they fit; else a Flaw `schema_mismatch` whose message lists the first errors and counts the
        others. Its `path` is the JSON Pointer of the first error.

    Example:
        >>> validator = check({"type": "object", "properties": {"n": {"type": "integer"}}}, tool="f")
        >>> flaw_in({"n": 1.0}, validator, "f")
        >>> flaw_in({"n": "x"}, validator, "f").message
        'the arguments do not fit f: /n: "x" is not of type "integer"'
    """
    try:
        orjson.dumps(args)
    except TypeError:  # an integer over 64 bits, which is valid, or a value that the validator must not get
        fault = fault_in(args, levels=ARGUMENT_LEVELS)
        if fault is not None:
            return Flaw(
                "schema_mismatch", f"the arguments of {tool} are not JSON: {fault.reason}", fault.path
            )
    try:
        if validator.is_valid(args):
            return None
        errors = list(validator.iter_errors(args))
    except ValueError as error:  # half of a surrogate pair
        return Flaw("schema_mismatch", f"the arguments of {tool} are not JSON: {cut(str(error))}")
    reasons = listed((_describe(error) for error in errors), _MOST_ERRORS)
    first = pointer(errors[0].instance_path)
    return Flaw("schema_mismatch", f"the arguments do not fit {tool}: {reasons}", first)


def _describe(error: jsonschema_rs.ValidationError) -> str:
    where, reason = pointer(error.instance_path), cut(error.message)
    branches = cast("list[list[jsonschema_rs.ValidationError]]", getattr(error.kind, "context", []))
    if branches:  # a model can correct its call only if it knows why each alternative failed
        firsts = [cut(branch[0].message) for branch in islice(branches, 4) if branch]
        reason = f"fits no alternative ({', '.join(firsts)})" if firsts else reason
    return f"{where}: {reason}" if where else reason


def _check_root(root: Json, tool: str | None) -> None:
    if "type" not in root:
        if _OF_OBJECTS.isdisjoint(root):
            _refuse("the schema does not describe an object", tool, "", fix='Add "type": "object".')
    elif root["type"] != "object":
        _check_type(root["type"], tool, Path(None, "type"))
        _refuse(f"arguments have the type 'object', not {root['type']!r}", tool, "/type", fix="Use 'object'.")


def _check_type(words: object, tool: str | None, path: Path) -> None:
    for word in cast("list[object]", words) if type(words) is list else [words]:
        if type(word) is str and word not in _TYPES:
            _refuse(f"{cut(word)!r} is not a JSON Schema type", tool, path.pointer(), fix=_hint(word))


def _hint(word: str) -> str:
    plain = word.strip().lower()
    if plain == "any":
        return "Leave `type` out to allow any value."
    known = _OTHER_WORDS.get(plain) or closest(plain, _TYPES)
    return f"Use '{known}'." if known else f"Use one of {', '.join(_TYPES)}."


def _check_patterns(places: list[Place], tool: str | None) -> None:
    named = (place.schema.get("patternProperties") for place in places)
    count = sum("pattern" in place.schema for place in places)
    count += sum(len(cast("Json", patterns)) for patterns in named if isinstance(patterns, dict))
    if count > MAX_PATTERNS:  # each may take milliseconds to compile
        _refuse(f"the schema has more than {MAX_PATTERNS} patterns", tool, None)


def _refuse(
    reason: str, tool: str | None, path: str | None, *, code: str = "invalid_schema", fix: str | None = None
) -> NoReturn:
    raise InvalidToolDecl(reason, code=code, tool=tool, path=path, fix=fix)
