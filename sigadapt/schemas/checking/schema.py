"""Check a tool's parameters schema (`check`), and check arguments against it (`flaw_in`).

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
fixed number of steps, and the value then does not fit.
"""

import json
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, NoReturn, cast

import jsonschema_rs
import orjson

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.caches import BUDGET, BoundedCache
from sigadapt.schemas.checking.effort import (
    MAX_JUDGED,
    MAX_STEPS,
    Effort,
    effort_of,
    extent_of,
    is_affordable,
    remembered_in,
)
from sigadapt.schemas.checking.misfits import Misfit, Misfits
from sigadapt.schemas.json_values import (
    ARGUMENT_LEVELS,
    SCHEMA_LEVELS,
    Json,
    Path,
    closest,
    compact,
    cut,
    fault_in,
    pointer,
    short_pointer,
)
from sigadapt.schemas.references import References, check_references
from sigadapt.schemas.subschemas import Place, subschemas

MAX_VALUES = 100_000
MAX_PATTERNS = 500

_ENGINE = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000, size_limit=4 * 1024 * 1024)
_LONGEST_LIST = 1_200
_MOST_ERRORS = 8
_FEW_STEPS = 100_000  # that the validator may take to list errors which `misfits.py` knows nothing of

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


class Checked(NamedTuple):
    """A schema that passed the checks.

    Args:
        validator: the compiled schema.
        text: the schema's compact JSON text.
        effort: how much work a check by it may take.
    """

    validator: jsonschema_rs.Validator
    text: str
    effort: Effort


# Compiled schemas by their text: dicts and MCP tools are often declared again for every request.
_VALIDATORS: BoundedCache[str, Checked] = BoundedCache(BUDGET)
_COMPILED_WEIGHS = 40  # bytes of memory for each byte of schema text, measured
_LONGEST_KEPT = 16_384


def check(schema: object, *, tool: str | None) -> Checked:
    """Compile a schema; refuse it if it breaks one of the rules at the top of this file.

    Raises:
        InvalidToolDecl: `invalid_schema` or `remote_ref`, with the path of the offending keyword.
    """
    if not isinstance(schema, dict):
        _refuse(f"expected a JSON Schema object as parameters, got a {type(schema).__name__}", tool, "")
    root = cast("Json", schema)
    check_json(root, tool=tool)
    text = compact(root)  # after check_json, because `compact` writes NaN as null
    validator = _VALIDATORS.get(text)
    if validator is None:
        validator = _checked(root, text, tool)
        if len(text) <= _LONGEST_KEPT and '"pattern' not in text:  # a pattern may take half a megabyte
            _VALIDATORS.put(text, validator, weight=len(text) * _COMPILED_WEIGHS)
    return validator


def check_text(text: str, *, tool: str | None) -> Checked:
    """Compile a schema that is given as compact JSON text; otherwise as `check`."""
    return _VALIDATORS.get(text) or check(json.loads(text), tool=tool)


def _checked(root: Json, text: str, tool: str | None) -> Checked:
    _check_root(root, tool)
    places = list(subschemas(root))
    references = check_references(places, tool=tool)
    for place in places:
        if "type" in place.schema:
            _check_type(place.schema["type"], tool, Path(place.path, "type"))
    _check_patterns(places, tool)
    effort = effort_of(places, references)
    if effort.of_value > MAX_JUDGED:
        _refuse(f"its schemas may judge one value more than {MAX_JUDGED} times", tool, None)
    return Checked(_compiled(root, tool), text, effort)


def check_json(value: object, *, tool: str | None) -> None:
    """Refuse a value that is not JSON, or that is too deep or too large for a declaration (check a).

    Raises:
        InvalidToolDecl: `invalid_schema`, with the path.
    """
    fault = fault_in(value, levels=SCHEMA_LEVELS, most=MAX_VALUES)
    if fault is not None:
        _refuse(fault.reason, tool, fault.path)


def _compiled(schema: Json, tool: str | None) -> jsonschema_rs.Validator:
    """Compile a schema, which also checks it against its metaschema (check e)."""
    try:
        # Without `offline=True`, the validator reads references from the network and from files (no network).
        return _draft_of(schema)(schema, pattern_options=_ENGINE, offline=True)
    except jsonschema_rs.ValidationError as error:
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Referencing):
            _refuse(error.message, tool, None, code="remote_ref")
        reason = f"not a valid JSON Schema: {cut(error.message)}"
        if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format):  # always `regex` here
            reason = f"{cut(repr(error.instance))} is not an ECMA 262 pattern, or it is too large"
        _refuse(reason, tool, pointer(error.instance_path))
    except ValueError as error:  # half of a surrogate pair
        _refuse(f"not JSON: {cut(str(error))}", tool, None)


def _draft_of(schema: Json) -> type[jsonschema_rs.Validator]:
    if "$schema" not in schema:
        return jsonschema_rs.Draft202012Validator
    return jsonschema_rs.validator_cls_for({"$schema": schema["$schema"]})


def flaw_in(args: Json, checked: Checked, tool: str) -> Flaw | None:
    """Check arguments against a compiled schema."""
    try:
        is_small = len(orjson.dumps(args)) <= checked.effort.free_bytes
    except TypeError:  # an integer over 64 bits, which is fine; or what the validator must not be given
        is_small = False
    try:
        flaw = None if is_small else _unfit_to_judge(args, checked, tool)
        if flaw is None and not checked.validator.is_valid(args):
            flaw = _told(args, checked, tool)
    except ValueError as error:  # text that is no Unicode
        return Flaw("schema_mismatch", f"the arguments of {tool} are not JSON: {cut(str(error))}")
    return flaw


def _unfit_to_judge(args: Json, checked: Checked, tool: str) -> Flaw | None:
    try:
        if len(orjson.dumps(args)) <= checked.effort.free_bytes:
            return None
    except TypeError:  # an integer over 64 bits, which is fine; or what the validator must not be given
        fault = fault_in(args, levels=ARGUMENT_LEVELS)
        if fault is not None:
            return Flaw(
                "schema_mismatch", f"the arguments of {tool} are not JSON: {fault.reason}", fault.path
            )
    if _is_affordable(args, checked):
        return None
    return Flaw("schema_mismatch", f"the arguments of {tool} could not be checked: it would take too long")


def _is_affordable(args: Json, checked: Checked) -> bool:
    """Whether a check stays within the bounds; where it might not, the steps of these arguments count."""
    extent = extent_of(args)
    if is_affordable(checked.effort, extent):
        return True
    if not is_affordable(checked.effort, extent, 0):
        return False
    document = _document_of(checked)
    steps = _walk(document).steps(
        document.schema, args, MAX_STEPS, remembered_in(document.places, document.references)
    )
    return is_affordable(checked.effort, extent, steps)


def misfitting(args: Json, checked: Checked) -> frozenset[str]:
    """Name the arguments that hold something that does not fit; all of them, where that cannot be told."""
    if _unfit_to_judge(args, checked, "") is not None:
        return frozenset(args)
    if checked.validator.is_valid(args):
        return frozenset()
    document = _document_of(checked)
    walk = _walk(document, most=len(args) + 1, most_inside=1)
    found = walk.of(document.schema, args)
    if walk.is_exhausted or not found:
        return frozenset(args)
    return frozenset(str(misfit.keys[0]) for misfit in found if misfit.keys)


def judgements_in(args: Json, checked: Checked, most: int) -> int:
    """Count how often a reader that remembers nothing would judge parts of the arguments, up to `most`."""
    if not checked.effort.recursive and extent_of(args).values * checked.effort.of_value <= most:
        return 0
    document = _document_of(checked)
    return _walk(document).steps(document.schema, args, most)


class _Document(NamedTuple):
    """A schema, every schema in it, and what they refer to."""

    schema: Json
    places: list[Place]
    references: References


def _document_of(checked: Checked) -> _Document:
    """The schema that was compiled: what its author holds may have changed since."""
    schema: Json = json.loads(checked.text)
    places = list(subschemas(schema))
    return _Document(schema, places, check_references(places, tool=None))


def _walk(document: _Document, *, most: int = _MOST_ERRORS + 1, most_inside: int = _MOST_ERRORS) -> Misfits:
    compile_ = partial(_draft_of(document.schema), pattern_options=_ENGINE, offline=True)
    return Misfits(document.references, compile_, most=most, most_inside=most_inside)


def _told(args: Json, checked: Checked, tool: str) -> Flaw:
    document = _document_of(checked)
    found = _walk(document).of(document.schema, args) or _told_by_validator(args, checked)
    if not found:
        return Flaw("schema_mismatch", f"the arguments do not fit {tool}; where was not found out", "")
    return Flaw(
        "schema_mismatch", f"the arguments do not fit {tool}: {_listed(found)}", short_pointer(found[0].keys)
    )


def _told_by_validator(args: Json, checked: Checked) -> list[Misfit]:
    effort = checked.effort
    if effort.recursive or extent_of(args).values * effort.of_value > _FEW_STEPS:
        return []
    errors = checked.validator.iter_errors(args)
    return [Misfit(tuple(error.instance_path), error.kind.name, cut(error.message)) for error in errors]


def _listed(found: Sequence[Misfit]) -> str:
    told: list[str] = []
    for misfit in found[:_MOST_ERRORS]:
        where = short_pointer(misfit.keys)
        told.append(f"{where}: {misfit.reason}" if where else misfit.reason)
        if sum(map(len, told)) > _LONGEST_LIST:
            break
    return "; ".join(told) + ("; and more" if len(found) > len(told) else "")


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
