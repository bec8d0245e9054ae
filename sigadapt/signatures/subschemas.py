"""Where JSON Schema keeps schemas inside a schema: the one table of keywords, and a walk over them.

The table covers Draft 2020-12 and, because servers still send them, the keywords that Drafts 4 to 2019-09 had
in their place. What stands under any other keyword (`default`, `enum`, `examples`, extensions) is data.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias, cast

Json: TypeAlias = dict[str, Any]

SAME_VALUE = frozenset(("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"))
"""Keywords whose schemas judge the same value again, not a part of it."""

_ONE = (
    frozenset(("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"))
    | frozenset(("items", "additionalItems", "unevaluatedItems", "contains"))
    | frozenset(("not", "if", "then", "else"))
)
_LIST = frozenset(("allOf", "anyOf", "oneOf", "prefixItems", "items"))
_NAMED = frozenset(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"))


class Path(NamedTuple):
    """A place in a document, linked to its parent, so that only an error pays for writing it out.

    Example:
        >>> Path(Path(None, "properties"), "a/b").pointer()
        '/properties/a~1b'
    """

    parent: "Path | None"
    key: str | int

    def pointer(self) -> str:
        """The place as a JSON Pointer (RFC 6901)."""
        keys: list[str | int] = []
        place: Path | None = self
        while place is not None:
            keys.append(place.key)
            place = place.parent
        return pointer(reversed(keys))


class Place(NamedTuple):
    """A schema inside a schema, and the schema and keyword that hold it."""

    schema: Json
    path: Path | None
    holder: Json | None
    keyword: str


def pointer(keys: "Iterator[str | int] | list[str | int]") -> str:
    """Write keys as a JSON Pointer (RFC 6901).

    Example:
        >>> pointer(["properties", "a~b", 0])
        '/properties/a~0b/0'
    """
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def subschemas(root: Json) -> Iterator[Place]:
    """Every schema object of a document, the root first; `true` and `false` are left out.

    Args:
        root: a JSON Schema without cycles between its Python objects.

    Example:
        >>> [place.path.pointer() for place in subschemas({"properties": {"a": {"items": {}}}}) if place.path]
        ['/properties/a', '/properties/a/items']
    """
    pending = [Place(root, None, None, "")]
    while pending:
        place = pending.pop()
        yield place
        pending.extend(_children(place.schema, place.path))


def _children(schema: Json, path: Path | None) -> Iterator[Place]:
    for keyword, value in schema.items():
        if isinstance(value, dict):
            held = cast("Json", value)
            if keyword in _NAMED:
                here = Path(path, keyword)
                yield from _places(held.items(), here, schema, keyword)
            elif keyword in _ONE:
                yield Place(held, Path(path, keyword), schema, keyword)
        elif keyword in _LIST and type(value) is list:
            here = Path(path, keyword)
            yield from _places(enumerate(cast("list[Any]", value)), here, schema, keyword)


def _places(members: Any, here: Path, holder: Json, keyword: str) -> Iterator[Place]:
    for key, member in members:
        if isinstance(member, dict):
            yield Place(cast("Json", member), Path(here, key), holder, keyword)
