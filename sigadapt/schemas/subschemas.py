"""The schemas inside a JSON Schema: where they stand, and which part of a value each of them judges.

The tables cover Draft 2020-12, and the keywords of Drafts 4 to 2019-09 that it replaced, because servers
still send those. The value of any other keyword (`default`, `enum`, `examples`, extensions) is data.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import unquote

import jsonschema_rs

from sigadapt.schemas.json_values import Json, Keys, is_array, is_object

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


class Place(NamedTuple):
    """A schema, the keys to it, the schema that directly holds it, and its keyword there."""

    schema: Json
    path: Keys
    holder: Json | None
    keyword: str


def subschemas(root: Json) -> Iterator[Place]:
    """Yield every schema object of a document, the root first; not the schemas `true` and `false`."""
    pending = [Place(root, (), None, "")]
    while pending:
        place = pending.pop()
        yield place
        for keys, schema in _children(place.schema):
            if is_object(schema):
                pending.append(Place(schema, (*place.path, *keys), place.schema, keys[0]))


def _children(schema: Json) -> Iterator[tuple[Keys, Any]]:
    """Yield the schemas that stand directly in one, each with the keys to it."""
    for keyword, value in schema.items():
        if is_object(value) and keyword in _NAMED:
            yield from (((keyword, key), each) for key, each in value.items())
        elif is_array(value) and keyword in _LIST:
            yield from (((keyword, number), each) for number, each in enumerate(value))
        elif isinstance(value, (dict, bool)) and keyword in _ONE:
            yield (keyword,), value


def rebuilt(schema: Json, change: Callable[[Any, Keys], Any]) -> Json:
    """Return a copy of a schema in which `change(schema, keys)` replaced each schema directly in it."""
    copy = dict(schema)
    for keys, inner in _children(schema):
        if len(keys) == 1:
            copy[keys[0]] = change(inner, keys)
        else:
            if copy[keys[0]] is schema[keys[0]]:
                copy[keys[0]] = schema[keys[0]].copy()
            copy[keys[0]][keys[1]] = change(inner, keys)
    return copy


class Application(NamedTuple):
    """A schema that judges a value or a part of it: its keyword, itself, the part's key, and the part."""

    keyword: str
    schema: Any
    key: str | int | None
    part: Any


def applications(schema: Json, value: Any, root: Json) -> Iterator[Application]:
    """Yield the schemas in one that judge a value or a part of it; a reference is yielded as its target."""
    for keyword, inner in schema.items():
        if keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            yield Application(keyword, target_of(inner, root), None, value)
        elif keyword in ("allOf", "anyOf", "oneOf") and is_array(inner):
            yield from (Application(keyword, each, None, value) for each in inner)
        elif keyword in ("not", "if", "then", "else"):
            yield Application(keyword, inner, None, value)
    if is_object(value):
        yield from _of_object(schema, value)
    elif is_array(value):
        yield from _of_array(schema, value)


def _of_object(schema: Json, value: Json) -> Iterator[Application]:
    for keyword in ("dependentSchemas", "dependencies"):
        for key, inner in _named_schemas(schema, keyword).items():
            if key in value and not is_array(inner):
                yield Application(keyword, inner, None, value)
    properties = _named_schemas(schema, "properties")
    patterns = _named_schemas(schema, "patternProperties")
    for key, part in value.items():
        matching = [inner for pattern, inner in patterns.items() if _matches(pattern, key)]
        yield from (Application("patternProperties", inner, key, part) for inner in matching)
        if key in properties:
            yield Application("properties", properties[key], key, part)
        elif not matching and is_object(schema.get("additionalProperties")):
            yield Application("additionalProperties", schema["additionalProperties"], key, part)
        if "propertyNames" in schema:
            yield Application("propertyNames", schema["propertyNames"], key, key)


def _of_array(schema: Json, value: list[Any]) -> Iterator[Application]:
    items = schema.get("items")
    # Before draft 2020-12, `items` was the list and `additionalItems` the rest.
    prefix = schema.get("prefixItems", items if is_array(items) else ())
    rest = schema.get("additionalItems") if is_array(items) else items
    for number, part in enumerate(value):
        if number < len(prefix):
            yield Application("items", prefix[number], number, part)
        elif isinstance(rest, (dict, bool)):
            yield Application("items", rest, number, part)
        if "contains" in schema:
            yield Application("contains", schema["contains"], number, part)


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
    place: Any = root if reference == "#" or reference.startswith("#/") else None
    for token in map(key_of, unquote(reference).split("/")[1:]):
        if is_array(place):
            place = place[int(token)] if token.isdecimal() and int(token) < len(place) else None
        else:
            place = place.get(token) if is_object(place) else None
    return place


def dereference(schema: Any, root: Json) -> Any:
    """Return what a schema refers to, if it is only a reference; else the schema."""
    # References may lead in a circle; nobody writes chains of 16.
    for _ in range(16):
        if not is_object(schema) or "$ref" not in schema:
            break
        schema = target_of(schema["$ref"], root)
    return schema


def key_of(token: str) -> str:
    """Return the key that a token of a JSON Pointer says (RFC 6901)."""
    return token.replace("~1", "/").replace("~0", "~")


def judgements(schema: Json, value: Any, most: int) -> int:
    """Count how often a reader that remembers nothing judges parts of a value, up to a little over `most`."""
    counts: dict[tuple[int, int], int] = {}
    pending: list[tuple[Any, Any, bool]] = [(schema, value, False)]
    while pending:
        rule, part, is_done = pending.pop()
        key = id(rule), id(part)
        # The stack visits a part twice: before the parts within it, and after them, to add up.
        if is_done:
            count: dict[str, list[int]] = {}
            for each in applications(rule, part, schema):
                count.setdefault(each.keyword, []).append(counts.get((id(each.schema), id(each.part)), 1))
            if "discriminator" in rule and "oneOf" in count:  # pydantic tries the one that the tag names
                count["oneOf"] = [max(count["oneOf"])]
            counts[key] = 1 + sum(map(sum, count.values()))
            if counts[key] > most:
                return most + 1
        elif key not in counts and is_object(rule):
            # A schema may have more places than judgements, and counting them takes time too.
            if len(counts) > most:
                return most + 1
            counts[key] = 1
            pending.append((rule, part, True))
            pending += [(each.schema, each.part, False) for each in applications(rule, part, schema)]
    return counts[id(schema), id(value)]
