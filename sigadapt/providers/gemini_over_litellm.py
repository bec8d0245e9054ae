"""Find what LiteLLM loses of the tools on the way to Gemini, and refuse what it cannot send at all.

LiteLLM converts a schema to Gemini's own kind of schema and does not report what it leaves out. It follows
these rules, measured on litellm 1.106:

 a. It drops each keyword that Gemini's schemas lack, with everything below it. It also drops all keywords
    beside `$ref`, and all but title and description beside `anyOf` or a list of types.
 b. It keeps `enum` only for strings and `format` only for `date-time`. It drops a property named `strict`.
 c. It sends a schema without a type as an object, and an array without `items` as an array of objects.
 d. It writes a `$ref` to a definition out in place. It sends a recursive `$ref`, or one that leads elsewhere,
    as an object without properties, and fails on boolean schemas and on an `anyOf` of nulls. `lost` refuses
    these schemas.
 e. Of the tools that Gemini runs itself, it drops searches beside functions, and always drops unknown tools.
 f. It drops a call that is equal to an earlier one of its turn (Gemini before 3, whose calls have no ids).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, NoReturn, cast

from sigadapt.errors import InvalidToolDecl
from sigadapt.providers.provider import Loss
from sigadapt.schemas.json_values import Json, pointer
from sigadapt.schemas.subschemas import Place, subschemas
from sigadapt.signatures.sources.dicts import GEMINI_SEARCHES

_TEXTS = frozenset({"title", "description"})
_OF_PARTS = frozenset({"properties", "required", "items", "minItems", "maxItems"}) | frozenset(
    {"minProperties", "maxProperties"}
)
_DEFINITIONS = ("$defs", "definitions")

# Source: the keywords of Gemini's `Schema` in LiteLLM.
_KEPT = frozenset(
    {
        *("type", "format", "title", "description", "nullable", "default", "items", "minItems"),
        *("maxItems", "enum", "properties", "propertyOrdering", "required", "minProperties"),
        *("maxProperties", "minimum", "maximum", "minLength"),
        *("maxLength", "pattern", "example", "anyOf"),
    }
)
_SEARCHES = GEMINI_SEARCHES | {"web_search", "web_search_preview"}
_BESIDE = frozenset(
    {"code_execution", "google_maps", "computer_use", "codeExecution", "googleMaps", "computerUse"}
)
_BY_TYPE = frozenset({"web_search", "web_search_preview", "computer_use"})


_WITHOUT_IDS = re.compile(r"gemini-(?:[12](?:\.\d+)?|exp|pro|flash)(?:-|$)|gemma-")


def merges(model: str) -> bool:
    """Return whether LiteLLM makes one call of two equal ones, which it does where it sends no ids.

    Example:
        >>> merges("gemini/gemini-2.5-flash"), merges("gemini/gemini-3-pro")
        (True, False)
    """
    return _WITHOUT_IDS.match(model.rpartition("/")[2]) is not None


def lost(tools: Sequence[Json]) -> Iterator[Loss]:
    """Find the parts of the tools that LiteLLM does not send to Gemini.

    Raises:
        InvalidToolDecl: `not_portable`, with the path, for a schema that LiteLLM cannot send at all.

    Example:
        >>> ages = {"type": "object", "properties": {"age": {"type": "integer", "multipleOf": 2}}}
        >>> function = {"name": "f", "description": "", "parameters": ages}
        >>> next(lost([{"type": "function", "function": function}])).where
        '/0/function/parameters/properties/age/multipleOf'
    """
    for number, tool in enumerate(tools):
        function = tool.get("function")
        for place, why in _lost_keywords(function["parameters"], function["name"]) if function else ():
            yield Loss(f"/{number}/function/parameters{place}", "lowered", why)
    yield from _unsent(tools)


def _lost_keywords(schema: Json, tool: str) -> list[tuple[str, str]]:
    """Return the first place of each lost keyword, and the reason, which names the other places."""
    places = list(_travelling(schema))
    for place in places:
        _check_place(place, tool)
    _check_references(schema, places, tool)
    found: dict[tuple[str, ...], list[str]] = {}
    for place in places:
        for keys in _lost(place):
            found.setdefault(keys, []).append(_at(place, keys))
    return [(where[0], _why(keys[-1], where)) for keys, where in found.items()]


def _unsent(tools: Sequence[Json]) -> Iterator[Loss]:
    beside = any("function" in tool for tool in tools)
    for number, tool in enumerate(tools):
        kind = str(tool.get("type") or next(iter(tool), ""))
        known = kind in _BY_TYPE if "type" in tool else len(tool) == 1 and kind in _SEARCHES | _BESIDE
        if "function" in tool or (known and not (beside and kind in _SEARCHES)):
            continue
        why = " together with functions" if known else ""
        yield Loss(f"/{number}", "dropped", f"LiteLLM does not send {kind!r} to Gemini{why}")


def _why(keyword: str, where: list[str]) -> str:
    others = f" (also at {', '.join(where[1:])})" if where[1:] else ""
    return f"LiteLLM does not send {keyword!r} to Gemini{others}; calls are still checked against it"


def _travelling(schema: Json) -> Iterator[Place]:
    """Yield the subschemas that are not below a lost keyword, parents first."""
    lost: set[int] = set()
    for place in subschemas(schema):
        travels = place.holder is None or place.keyword in _KEPT or place.keyword in _DEFINITIONS
        if travels and id(place.holder) not in lost:
            yield place
        else:
            lost.add(id(place.schema))


def _lost(place: Place) -> Iterator[tuple[str, ...]]:
    schema, kinds = place.schema, place.schema.get("type")
    allowed = _allowed(schema)
    for keyword, value in schema.items():
        if keyword in _DEFINITIONS:
            continue  # LiteLLM writes each definition out where a $ref refers to it
        if keyword not in allowed or _is_lost_value(keyword, value, kinds) or _overwritten(keyword, place):
            yield (keyword,)
    if "strict" in schema.get("properties", ()):
        yield "properties", "strict"
    if kinds is None and schema.keys().isdisjoint(("anyOf", "oneOf", "allOf", "properties", "$ref")):
        yield from () if place.holder is None else (("type",),)
    if kinds in ("array", ["array"]) and "items" not in schema:
        yield ("items",)


def _allowed(schema: Json) -> frozenset[str]:
    kinds = cast("list[str] | str | None", schema.get("type"))
    if "$ref" in schema:
        return frozenset({"$ref"})
    if isinstance(kinds, list) and len(kinds) > 1:
        return _TEXTS | {"type"} | (_OF_PARTS if {"object", "array"} & set(kinds) else frozenset[str]())
    return _TEXTS | {"anyOf"} if "anyOf" in schema else _KEPT


def _is_lost_value(keyword: str, value: Any, kinds: object) -> bool:
    if keyword == "enum":
        return kinds not in ("string", ["string"]) or "" in value  # LiteLLM sends null instead of ""
    return keyword == "format" and value not in ("date-time", "enum")


def _overwritten(keyword: str, place: Place) -> bool:
    """Return whether a title or description inside `anyOf` is replaced by that of the schema around it."""
    return keyword in _TEXTS and place.keyword == "anyOf" and bool((place.holder or {}).get(keyword))


def _check_place(place: Place, tool: str) -> None:
    schema = place.schema
    for keyword in ("properties", "anyOf", "items"):
        held = schema.get(keyword)
        for keys, member in _members(keyword, held):
            if isinstance(member, bool):
                _refuse("a schema that is true or false", place, keys, tool)
    if "$ref" in schema.get("properties", ()):
        _refuse("a property named '$ref'", place, ("properties", "$ref"), tool)
    ways: list[Any] = schema.get("anyOf", [])
    if ways and all(way.get("type") == "null" for way in ways):
        _refuse("an anyOf of nothing but null", place, ("anyOf",), tool)


def _members(keyword: str, held: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if held is None:
        return
    if keyword == "items":
        yield (keyword,), held
    elif keyword == "properties":
        yield from (((keyword, key), member) for key, member in held.items())
    else:
        yield from (((keyword, number), member) for number, member in enumerate(held))


def _check_references(root: Json, places: list[Place], tool: str) -> None:
    known = {
        f"#/{where}/{name}": f"/{where}/{name}" for where in _DEFINITIONS for name in root.get(where, ())
    }
    uses: dict[str, dict[str, Place]] = {}
    for place in places:
        target = place.schema.get("$ref")
        if target is None:
            continue
        if target not in known:
            _refuse(f"a $ref to {target!r}, which the schema does not define", place, ("$ref",), tool)
        inside = "/".join(_at(place).split("/")[:3])
        uses.setdefault(inside, {})[known[target]] = place
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        target, user = error.args[1][:2]
        _refuse("a recursive schema", uses[user][target], ("$ref",), tool)


def _at(place: Place, keys: Iterable[str | int] = ()) -> str:
    return (place.path.pointer() if place.path else "") + pointer(list(keys))


def _refuse(what: str, place: Place, keys: Iterable[str | int], tool: str) -> NoReturn:
    raise InvalidToolDecl(
        f"LiteLLM cannot send {what} to Gemini",
        code="not_portable",
        tool=tool,
        path=_at(place, keys),
        fix='Use the native engine: dspy.LM("gemini/…", engine="lm15").',
    )
