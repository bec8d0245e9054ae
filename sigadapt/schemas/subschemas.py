"""Walk over the schemas inside a JSON Schema. The table of keywords that hold schemas is here.

The table covers Draft 2020-12, and the keywords of Drafts 4 to 2019-09 that it replaced, because servers
still send those. The value of any other keyword (`default`, `enum`, `examples`, extensions) is data.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from sigadapt.schemas.json_values import Json, Path

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
    """A schema, and where it is.

    Args:
        schema: the schema itself.
        path: its place in the document; None for the root.
        holder: the schema that directly holds it; None for the root.
        keyword: the holder's keyword that it is under; empty for the root.
    """

    schema: Json
    path: Path | None
    holder: Json | None
    keyword: str


def subschemas(root: Json) -> Iterator[Place]:
    """Yield every schema object of a document, the root first."""
    # The schemas `true` and `false` are left out.
    pending = [Place(root, None, None, "")]
    while pending:
        place = pending.pop()
        yield place
        pending.extend(children(place.schema, place.path))


def children(schema: Json, path: Path | None = None) -> Iterator[Place]:
    """Walk over the schemas that stand directly in one."""
    for keyword, value in schema.items():
        if isinstance(value, dict):
            held = cast("Json", value)
            if keyword in _NAMED:
                yield from _places(held.items(), Path(path, keyword), schema, keyword)
            elif keyword in _ONE:
                yield Place(held, Path(path, keyword), schema, keyword)
        elif keyword in _LIST and type(value) is list:
            members = enumerate(cast("list[Any]", value))
            yield from _places(members, Path(path, keyword), schema, keyword)


def _places(members: Any, here: Path, holder: Json, keyword: str) -> Iterator[Place]:
    for key, member in members:
        if isinstance(member, dict):
            yield Place(cast("Json", member), Path(here, key), holder, keyword)
