"""JSON Schema of tool arguments: is it one, and do these arguments fit it.

What a schema must be before it may be declared (rules 4 and 11):

 a. JSON through and through: string keys, finite numbers, at most `SCHEMA_LEVELS` levels, `MAX_VALUES` values
    and `MAX_PATTERNS` patterns.
 b. Of an object at its root: `"type": "object"`, or no `type` beside a keyword that only objects have or one
    that combines or refers to schemas.
 c. In JSON Schema's own seven type words.
 d. Closed in itself and of bounded work (`references.py`).
 e. Valid under its draft's metaschema: the one `$schema` names, Draft 2020-12 where it names no known one.

A schema is read here and never changed, copied or completed. Arguments are judged as Draft 2020-12 says, so
`format` is not asserted. Patterns are ECMA 262's and run in linear time, unless they use lookaround or
backreferences; those give up after a fixed number of steps, and what could not be judged does not fit.
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
_COMPILED_WEIGHS = 40  # bytes of memory a byte of schema text, measured
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
    """Refuse a schema that no model should be given, else compile it.

    Args:
        schema: the arguments' JSON Schema as its author wrote it.
        tool: the tool's name, for the error.

    Returns:
        The compiled schema, for `flaw_in`.

    Raises:
        InvalidToolDecl: `invalid_schema` or `remote_ref`, with the path of what is wrong.

    Example:
        >>> check({"type": "object", "properties": {"n": {"type": "int"}}}, tool="f")
        Traceback (most recent call last):
        sigadapt.errors.InvalidToolDecl: tool 'f', at /properties/n/type: 'int' is not a JSON Schema type. \
Use 'integer'.
    """
    if not isinstance(schema, dict):
        _refuse(f"the parameters are a Python {type(schema).__name__}, not a JSON Schema object", tool, "")
    root = cast("Json", schema)
    check_json(root, tool=tool)
    text = compact(root)  # after the check, because it writes NaN as null
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
    """Refuse what is no JSON value, or is too deep or too large for a declaration (rule a).

    Raises:
        InvalidToolDecl: `invalid_schema`, with the path.

    Example:
        >>> check_json({"enum": [1.5, None, "x"]}, tool="f")
    """
    fault = fault_in(value, levels=SCHEMA_LEVELS, most=MAX_VALUES)
    if fault is not None:
        _refuse(fault.reason, tool, fault.path)


def compiled(schema: Json, *, tool: str | None) -> jsonschema_rs.Validator:
    """Compile a schema, which also checks it against its metaschema (rule e).

    Raises:
        InvalidToolDecl: `invalid_schema`, or `remote_ref` for a reference out of the document.
    """
    draft = jsonschema_rs.Draft202012Validator
    if "$schema" in schema:
        draft = jsonschema_rs.validator_cls_for({"$schema": schema["$schema"]})
    try:
        # Unless told `offline`, the validator fetches over the network and from files (rule 11).
        return draft(schema, pattern_options=_ENGINE, offline=True)
    except jsonschema_rs.ValidationError as error:
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            _refuse(error.message, tool, None, code="remote_ref")
        reason = f"no valid JSON Schema: {cut(error.message)}"
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format):  # the one format of metaschemas
            reason = f"{cut(repr(error.instance))} is no ECMA 262 pattern, or a too large one"
        _refuse(reason, tool, pointer(error.instance_path))
    except ValueError as error:  # text that is no Unicode
        _refuse(f"no JSON: {cut(str(error))}", tool, None)


def flaw_in(args: Json, validator: jsonschema_rs.Validator, tool: str) -> Flaw | None:
    """Say what keeps arguments from fitting a compiled schema.

    Args:
        args: the decoded arguments.
        validator: what `check` or `compiled` returned.
        tool: the tool's name, for the message.

    Returns:
        None where they fit; else a `schema_mismatch` that tells every error of the call, up to a readable
        length. Its `path` is the JSON Pointer of the first.

    Example:
        >>> validator = check({"type": "object", "properties": {"n": {"type": "integer"}}}, tool="f")
        >>> flaw_in({"n": 1.0}, validator, "f")
        >>> flaw_in({"n": "x"}, validator, "f").message
        'the arguments do not fit f: /n: "x" is not of type "integer"'
    """
    try:
        orjson.dumps(args)
    except TypeError:  # an integer over 64 bits, which is fine; or what the validator must not be given
        fault = fault_in(args, levels=ARGUMENT_LEVELS)
        if fault is not None:
            return Flaw(
                "schema_mismatch", f"the arguments of {tool} are not JSON: {fault.reason}", fault.path
            )
    try:
        if validator.is_valid(args):
            return None
        errors = list(validator.iter_errors(args))
    except ValueError as error:  # text that is no Unicode
        return Flaw("schema_mismatch", f"the arguments of {tool} are not JSON: {cut(str(error))}")
    reasons = listed((_describe(error) for error in errors), _MOST_ERRORS)
    first = pointer(errors[0].instance_path)
    return Flaw("schema_mismatch", f"the arguments do not fit {tool}: {reasons}", first)


def _describe(error: jsonschema_rs.ValidationError) -> str:
    where, reason = pointer(error.instance_path), cut(error.message)
    branches = cast("list[list[jsonschema_rs.ValidationError]]", getattr(error.kind, "context", []))
    if branches:  # "fits none of the schemas" tells a model nothing that it could act on
        firsts = [cut(branch[0].message) for branch in islice(branches, 4) if branch]
        reason = f"fits no alternative ({', '.join(firsts)})" if firsts else reason
    return f"{where}: {reason}" if where else reason


def _check_root(root: Json, tool: str | None) -> None:
    if "type" not in root:
        if _OF_OBJECTS.isdisjoint(root):
            _refuse("the schema does not say that it is of an object", tool, "", fix='Add "type": "object".')
    elif root["type"] != "object":
        _check_type(root["type"], tool, Path(None, "type"))
        _refuse(
            f"the arguments of a tool are an object, not {root['type']!r}", tool, "/type", fix="Use 'object'."
        )


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
        _refuse(f"more than {MAX_PATTERNS} patterns", tool, None)


def _refuse(
    reason: str, tool: str | None, path: str | None, *, code: str = "invalid_schema", fix: str | None = None
) -> NoReturn:
    raise InvalidToolDecl(reason, code=code, tool=tool, path=path, fix=fix)
