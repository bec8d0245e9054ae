"""JSON Schema of tool arguments: is it one, and do these arguments fit it.

What a schema must be before it may be declared (rules 4 and 11):

 a. JSON through and through: string keys, finite numbers, at most `MAX_DEPTH` levels, `MAX_NODES` values and
    `MAX_PATTERNS` patterns.
 b. Of an object at its root: `"type": "object"`, or no `type` beside a keyword that only objects have or one
    that combines or refers to schemas.
 c. In JSON Schema's own seven type words.
 d. Closed in itself and of bounded work (`references.py`).
 e. Valid under its draft's metaschema: the one `$schema` names, Draft 2020-12 where it names no known one.

A schema is read here and never changed, copied or completed. Arguments are judged as Draft 2020-12 says, so
`format` is not asserted. Patterns are ECMA 262's and run in linear time, unless they use lookaround or
backreferences; those give up after a fixed number of steps, and what could not be judged does not fit.
"""

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any, NoReturn, cast

import jsonschema_rs
import orjson

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.arguments import Flaw, compact, shown
from sigadapt.signatures.bounded import Bounded
from sigadapt.signatures.near_miss import near_miss
from sigadapt.signatures.references import check_references
from sigadapt.signatures.subschemas import Json, Path, Place, pointer, subschemas

MAX_DEPTH = 100
MAX_NODES = 100_000
MAX_PATTERNS = 500

# Of schemas found good, by their text: dicts and MCP tools are often declared anew for every request.
_VALIDATORS = Bounded[str, jsonschema_rs.Validator](1_024)
_LONGEST_KEPT = 16_384

_ENGINE = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=4 * 1024 * 1024)
_MOST_ERRORS_TOLD = 8
_DEEPEST_ARGS = 254  # orjson's own limit; the validator's stack ends at some ten thousands
_PLAIN = frozenset((str, int, bool, type(None)))

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
        if (
            len(text) <= _LONGEST_KEPT and '"pattern' not in text
        ):  # a compiled pattern may take half a megabyte
            _VALIDATORS[text] = validator
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
    found = _not_json(value, MAX_DEPTH)
    if found:
        _refuse(found[1], tool, found[0])


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
        reason = f"no valid JSON Schema: {shown(error.message)}"
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format):  # the one format of metaschemas
            reason = f"{shown(repr(error.instance))} is no ECMA 262 pattern, or a too large one"
        _refuse(reason, tool, pointer(error.instance_path))
    except ValueError as error:  # text that is no Unicode
        _refuse(f"no JSON: {shown(str(error))}", tool, None)


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
        found = _not_json(args, _DEEPEST_ARGS)
        if found:
            return Flaw("schema_mismatch", f"the arguments of {tool} are not JSON: {found[1]}", found[0])
    try:
        if validator.is_valid(args):
            return None
        errors = list(validator.iter_errors(args))
    except ValueError as error:  # text that is no Unicode
        return Flaw("schema_mismatch", f"the arguments of {tool} are not JSON: {shown(str(error))}")
    told = "; ".join(_told(error) for error in errors[:_MOST_ERRORS_TOLD])
    rest = f"; and {len(errors) - _MOST_ERRORS_TOLD} more" if len(errors) > _MOST_ERRORS_TOLD else ""
    first = pointer(errors[0].instance_path)
    return Flaw("schema_mismatch", f"the arguments do not fit {tool}: {told}{rest}", first)


def _told(error: jsonschema_rs.ValidationError) -> str:
    where, reason = pointer(error.instance_path), shown(error.message)
    branches = cast("list[list[jsonschema_rs.ValidationError]]", getattr(error.kind, "context", []))
    if branches:  # "fits none of the schemas" tells a model nothing that it could act on
        firsts = [shown(branch[0].message) for branch in islice(branches, 4) if branch]
        reason = f"fits no alternative ({', '.join(firsts)})" if firsts else reason
    return f"{where}: {reason}" if where else reason


def _not_json(value: object, deepest: int) -> tuple[str, str] | None:
    """The pointer of, and the reason against, the first thing that is no JSON or goes over a limit."""
    pending: list[tuple[Any, Path | None, int]] = [(value, None, 0)]
    seen = 1
    while pending:
        item, path, depth = pending.pop()
        reason = _flaw_of_value(item)
        if depth > deepest:
            reason = f"nested deeper than {deepest} levels"
        elif seen > MAX_NODES:
            reason = f"more than {MAX_NODES} values"
        if reason:
            return (path.pointer() if path else "", reason)
        for key, member in _members(item):
            seen += 1
            if type(member) not in _PLAIN:
                pending.append((member, Path(path, key), depth + 1))
    return ("", f"more than {MAX_NODES} values") if seen > MAX_NODES else None


def _members(item: object) -> Iterable[tuple[str | int, Any]]:
    if isinstance(item, dict):
        return cast("Json", item).items()
    return enumerate(cast("list[Any]", item)) if type(item) is list else ()


def _flaw_of_value(item: object) -> str | None:
    if isinstance(item, dict):
        odd = [key for key in cast("dict[Any, Any]", item) if type(key) is not str]
        return f"the key {shown(repr(odd[0]))} is not a string" if odd else None
    if type(item) is float:
        return None if math.isfinite(item) else f"{item} is not a JSON number"
    if type(item) is list or type(item) in _PLAIN:
        return None
    return f"a Python {type(item).__name__} is not a JSON value"


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
            _refuse(f"{shown(word)!r} is not a JSON Schema type", tool, path.pointer(), fix=_hint(word))


def _hint(word: str) -> str:
    plain = word.strip().lower()
    if plain == "any":
        return "Leave `type` out to allow any value."
    known = _OTHER_WORDS.get(plain) or near_miss(plain, _TYPES)
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
