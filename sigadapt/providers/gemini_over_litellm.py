"""What of the tools does not survive LiteLLM's way to Gemini, and what cannot go that way at all.

LiteLLM turns a schema into Gemini's own kind of schema and says nothing of what it leaves out. The rules,
measured on litellm 1.106:

 a. A keyword that Gemini's schemas lack is left out, with all below it; so is what stands beside `$ref`,
    and, but for title and description, what stands beside `anyOf` or a list of types.
 b. `enum` gets through for strings only, `format` for `date-time` only; a property named `strict` is not.
 c. A schema of no type arrives as an object, an array without `items` as one of objects.
 d. A `$ref` to a definition is written out in place. One that recurs, or leads elsewhere, arrives as an
    object without properties; boolean schemas and an `anyOf` of nulls make LiteLLM fail. These are refused.
 e. Of the tools that Gemini runs itself, searches are left out beside functions, unknown ones always.
"""

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

# Source: Gemini's `Schema`, as LiteLLM has it.
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


def lost(tools: Sequence[Json]) -> Iterator[Loss]:
    """Find what of the tools does not get through.

    Args:
        tools: the canonical request's tools; each schema was checked when its tool was declared.

    Returns:
        One loss for each keyword of each tool, and one for each of the provider's own tools.

    Raises:
        InvalidToolDecl: `not_portable`, with the path, for a schema that cannot travel at all.

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
    """The first place of each lost keyword, and the reason with the other places."""
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
        why = "beside functions" if known else "as itself"
        yield Loss(f"/{number}", "dropped", f"{kind!r} does not get through LiteLLM to Gemini {why}")


def _why(keyword: str, where: list[str]) -> str:
    others = f" (also at {', '.join(where[1:])})" if where[1:] else ""
    return f"{keyword!r} does not get through LiteLLM to Gemini{others}; the calls are validated all the same"


def _travelling(schema: Json) -> Iterator[Place]:
    """The schemas that are not below a lost keyword; parents come first."""
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
            continue  # written out where they are referred to
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
        return kinds not in ("string", ["string"]) or "" in value  # Gemini gets null in its place
    return keyword == "format" and value not in ("date-time", "enum")


def _overwritten(keyword: str, place: Place) -> bool:
    """A title or description of one way of `anyOf`, in whose place comes that of the whole."""
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
            _refuse(
                f"a $ref to {target!r}, which is no definition of the schema's own", place, ("$ref",), tool
            )
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
        f"{what} does not get through LiteLLM to Gemini",
        code="not_portable",
        tool=tool,
        path=_at(place, keys),
        fix='Use the native engine: dspy.LM("gemini/…", engine="lm15").',
    )
