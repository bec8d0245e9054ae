"""The schemas inside a JSON Schema: where they are, and which part of a value each of them judges.

The tables cover Draft 2020-12, and the keywords of Drafts 4 to 2019-09 that it replaced, because servers
still send those. The value of any other keyword (`default`, `enum`, `examples`, extensions) is data.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs

from sigadapt.json_values import Json, Keys, is_array, is_object

SAME_VALUE = frozenset(
    ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
)
"""Keywords whose schemas apply to the same value, not to a part of it."""

_ONE = (
    frozenset(("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"))
    | frozenset(("items", "additionalItems", "unevaluatedItems", "contains"))
    | frozenset(("not", "if", "then", "else"))
)
_LIST = frozenset(("allOf", "anyOf", "oneOf", "prefixItems", "items"))
_NAMED = frozenset(
    ("$defs", "definitions", "dependentSchemas", "dependencies", "patternProperties", "properties")
)


class SchemaPlace(NamedTuple):
    """A schema, the keys to it, the schema that directly holds it, and its keyword there."""

    schema: Json
    path: Keys  # the keys that lead to it
    holder: Json | None  # the schema that it is in
    keyword: str  # the keyword of the holder that applies it


def subschemas(root: Json) -> Iterator[SchemaPlace]:
    """Yield every schema object of a document, the root first; not the schemas `true` and `false`."""
    pending = [SchemaPlace(root, (), None, "")]
    while pending:
        schema_place = pending.pop()
        yield schema_place
        for keys, schema in _children(schema_place.schema):
            if is_object(schema):
                pending.append(SchemaPlace(schema, (*schema_place.path, *keys), schema_place.schema, keys[0]))


def _children(schema: Json) -> Iterator[tuple[Keys, Any]]:
    """Yield the schemas directly in one, each with the keys to it."""
    for keyword, value in schema.items():
        if is_object(value) and keyword in _NAMED:
            for key, subschema in value.items():
                yield (keyword, key), subschema
        elif is_array(value) and keyword in _LIST:
            for number, subschema in enumerate(value):
                yield (keyword, number), subschema
        elif isinstance(value, (dict, bool)) and keyword in _ONE:
            yield (keyword,), value


def rebuilt(schema: Json, change: Callable[[Any, Keys], Any]) -> Json:
    """Return a copy of a schema in which `change(schema, keys)` replaced each schema directly in it."""
    copy = dict(schema)
    for keys, subschema in _children(schema):
        if len(keys) == 1:
            copy[keys[0]] = change(subschema, keys)
        else:
            if copy[keys[0]] is schema[keys[0]]:
                copy[keys[0]] = schema[keys[0]].copy()
            copy[keys[0]][keys[1]] = change(subschema, keys)
    return copy


class Application(NamedTuple):
    """A schema that judges a value or a part of it: its keyword, itself, the part's key, and the part."""

    keyword: str
    schema: Any
    key: str | int | None
    part: Any


def applications(schema: Json, value: Any, root: Json) -> Iterator[Application]:
    """Yield the schemas in one that judge a value or a part of it; a reference is yielded as its target."""
    for keyword, subschema in schema.items():
        if keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            yield Application(keyword, target_of(subschema, root), None, value)
        elif keyword in ("allOf", "anyOf", "oneOf") and is_array(subschema):
            yield from (Application(keyword, alternative, None, value) for alternative in subschema)
        elif keyword in ("not", "if", "then", "else"):
            yield Application(keyword, subschema, None, value)
    if is_object(value):
        yield from _of_object(schema, value)
    elif is_array(value):
        yield from _of_array(schema, value)


def _of_object(schema: Json, value: Json) -> Iterator[Application]:
    for keyword in ("dependentSchemas", "dependencies"):
        for key, subschema in _named_schemas(schema, keyword).items():
            if key in value and not is_array(subschema):
                yield Application(keyword, subschema, None, value)
    properties = _named_schemas(schema, "properties")
    patterns = _named_schemas(schema, "patternProperties")
    for key, member in value.items():
        matching = [subschema for pattern, subschema in patterns.items() if _matches(pattern, key)]
        yield from (Application("patternProperties", subschema, key, member) for subschema in matching)
        if key in properties:
            yield Application("properties", properties[key], key, member)
        elif not matching and is_object(schema.get("additionalProperties")):
            yield Application("additionalProperties", schema["additionalProperties"], key, member)
        if "propertyNames" in schema:
            yield Application("propertyNames", schema["propertyNames"], key, key)


def _of_array(schema: Json, value: list[Any]) -> Iterator[Application]:
    items = schema.get("items")
    # Before draft 2020-12, `items` was the list and `additionalItems` the rest.
    if is_array(items):
        prefix = schema.get("prefixItems", items)
        further_items = schema.get("additionalItems")
    else:
        prefix = schema.get("prefixItems", ())
        further_items = items
    for number, item in enumerate(value):
        if number < len(prefix):
            yield Application("items", prefix[number], number, item)
        elif isinstance(further_items, (dict, bool)):
            yield Application("items", further_items, number, item)
        if "contains" in schema:
            yield Application("contains", schema["contains"], number, item)


def _matches(pattern: str, key: str) -> bool:
    with suppress(jsonschema_rs.ValidationError, ValueError):
        return jsonschema_rs.is_valid({"pattern": pattern}, key)  # not `re`, whose time has no bound
    return False


def _named_schemas(schema: Json, keyword: str) -> Json:
    members = schema.get(keyword)
    return members if is_object(members) else {}


def target_of(reference: object, root: Json) -> Any:
    """Return what a reference by pointer within a document leads to; None for any other reference."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    if reference != "#" and not reference.startswith("#/"):
        return None
    target: Any = root
    for token in map(key_of, unquote(reference).split("/")[1:]):
        if is_object(target):
            target = target.get(token)
        elif is_array(target) and token.isdecimal() and int(token) < len(target):
            target = target[int(token)]
        else:
            return None
    return target


def dereference(schema: Any, root: Json) -> Any:
    """Return what a schema refers to, if it is only a reference; else the schema."""
    # References may lead in a circle; a real schema has no chain of 16.
    for _ in range(16):
        if not is_object(schema) or "$ref" not in schema:
            break
        schema = target_of(schema["$ref"], root)
    return schema


def key_of(token: str) -> str:
    """Return the key that a token of a JSON Pointer says (RFC 6901)."""
    return token.replace("~1", "/").replace("~0", "~")


def judgements(schema: Json, value: Any, limit: int) -> int:
    """Count how often a reader that remembers nothing judges parts of a value, to a little over a limit."""
    counts: dict[tuple[int, int], int] = {}
    pending: list[tuple[Any, Any, bool]] = [(schema, value, False)]
    while pending:
        rule, judged, is_done = pending.pop()
        key = id(rule), id(judged)
        # The stack visits a part twice: before the parts within it, and after them, to add up.
        if is_done:
            counts[key] = 1 + _inner_judgements(rule, judged, schema, counts)
            if counts[key] > limit:
                return limit + 1
        elif key not in counts and is_object(rule):
            # A schema may have more places than judgements, and counting them takes time too.
            if len(counts) > limit:
                return limit + 1
            counts[key] = 1
            pending.append((rule, judged, True))
            applied = applications(rule, judged, schema)
            pending += [(application.schema, application.part, False) for application in applied]
    return counts[id(schema), id(value)]


def _inner_judgements(rule: Json, value: Any, root: Json, counts: dict[tuple[int, int], int]) -> int:
    """Add up how often the schemas in one judge a value and its parts, once each of them is counted."""
    by_keyword: dict[str, list[int]] = {}
    for application in applications(rule, value, root):
        count = counts.get((id(application.schema), id(application.part)), 1)
        by_keyword.setdefault(application.keyword, []).append(count)
    if "discriminator" in rule and "oneOf" in by_keyword:  # pydantic tries the one that the tag names
        by_keyword["oneOf"] = [max(by_keyword["oneOf"])]
    return sum(map(sum, by_keyword.values()))
