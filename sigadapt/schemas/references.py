"""Check a JSON Schema's references: where they lead, and how much work it takes to follow them (rule 11).

a. A reference leads to a place in the same document, by pointer, by anchor or by an embedded `$id`. Nothing
   is ever fetched.
b. No schema applies itself to the same value: validation would never end.
c. No value is validated more than `MAX_APPLIED` times: where each definition refers to the next one twice,
   the work doubles with each definition.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urljoin

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json, Path, cut
from sigadapt.schemas.subschemas import SAME_VALUE, Place

MAX_APPLIED = 10_000
"""How many times a schema, with all schemas it refers to, may validate one value."""

_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")


class _Reference(NamedTuple):
    target: str
    holder: Json
    resource: Json
    path: Path


class _Targets:
    """What references can lead to: resources by identifier, and anchors by resource and name.

    A resource, in JSON Schema, is the root or a schema with an `$id`. A reference is relative to the resource
    around it: `of_schema` maps the `id` of each schema object to its resource.
    """

    __slots__ = ("anchors", "of_schema", "outer", "resources")

    def __init__(self, root: Json) -> None:
        identifier = root.get("$id")
        self.outer = identifier if type(identifier) is str else ""
        self.resources: dict[str, Json] = {}
        self.anchors: dict[tuple[int, str], Json] = {}
        self.of_schema: dict[int, Json] = {}


def check_references(places: Sequence[Place], *, tool: str | None) -> None:
    """Refuse references that leave the document or lead nowhere, and schemas that take too much work.

    Args:
        places: all schemas of one document, the root first, as `subschemas` yields them.
        tool: the tool's name, for the error.

    Raises:
        InvalidToolDecl: `remote_ref` or `invalid_schema`, with the path of the reference if one is at fault.

    Example:
        >>> from sigadapt.schemas.subschemas import subschemas
        >>> schema = {"properties": {"a": {"$ref": "https://example.com/a.json"}}}
        >>> check_references(list(subschemas(schema)), tool="f")
        Traceback (most recent call last):
        sigadapt.errors.InvalidToolDecl: tool 'f', at /properties/a/$ref: 'https://example.com/a.json' is \
outside this schema, and schemas are never fetched. Copy the schema it refers to into `$defs`.
    """
    targets = _Targets(places[0].schema)
    references: list[_Reference] = []
    applied: defaultdict[int, list[int]] = defaultdict(list)
    for place in places:
        schema, holder = place.schema, place.holder
        resource = _enter(place, targets)
        references += [
            _Reference(schema[key], schema, resource, Path(place.path, key))
            for key in _KEYWORDS
            if type(schema.get(key)) is str
        ]
        if place.keyword in SAME_VALUE:
            applied[id(holder)].append(id(schema))
    for reference in references:
        target = _resolved(reference, targets, tool)
        applied[id(reference.holder)].append(id(target))
    _check_cost(applied, tool)


def _enter(place: Place, targets: _Targets) -> Json:
    """Record a schema's identifier and anchors. Return the resource that its references are relative to."""
    schema, identifier = place.schema, place.schema.get("$id")
    resource = schema if place.holder is None else targets.of_schema[id(place.holder)]
    if type(identifier) is str and not identifier.startswith("#"):
        resource = schema
        for name in (identifier, urljoin(targets.outer, identifier)):
            targets.resources[name.rstrip("#")] = schema
    targets.of_schema[id(schema)] = resource
    for key in ("$anchor", "$dynamicAnchor"):
        if type(schema.get(key)) is str:
            targets.anchors[id(resource), schema[key]] = schema
    return resource


def _resolved(reference: _Reference, targets: _Targets, tool: str | None) -> object:
    base, _, fragment = reference.target.partition("#")
    resource = reference.resource
    if base:
        joined = urljoin(targets.outer, base)
        resource = targets.resources.get(base) or targets.resources.get(joined)
        if resource is None:
            raise InvalidToolDecl(
                f"'{cut(reference.target)}' is outside this schema, and schemas are never fetched",
                code="remote_ref",
                tool=tool,
                path=reference.path.pointer(),
                fix="Copy the schema it refers to into `$defs`.",
            )
    try:
        return _at(resource, unquote(fragment), targets)
    except (LookupError, ValueError):
        raise InvalidToolDecl(
            f"'{cut(reference.target)}' leads to no place in this schema",
            code="invalid_schema",
            tool=tool,
            path=reference.path.pointer(),
        ) from None


def _at(resource: Json, fragment: str, targets: _Targets) -> object:
    if fragment and not fragment.startswith("/"):
        return targets.anchors[id(resource), fragment]
    place: Any = resource
    for token in fragment.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if type(place) is list:
            place = cast("list[Any]", place)[int(key)]
        elif isinstance(place, dict):
            place = cast("Json", place)[key]
        else:
            raise LookupError(key)
    return place


def _check_cost(applied: Mapping[int, list[int]], tool: str | None) -> None:
    """Add up, from the leaves, how often each schema validates one value; refuse cycles (b) and excess (c).

    Args:
        applied: for each schema, the schemas that it applies to the same value, all by `id`. A schema that is
            applied twice is listed twice.
        tool: the tool's name, for the error.
    """
    cost: dict[int, int] = {}
    opened: set[int] = set()
    pending = list(applied)
    while pending:
        node = pending[-1]
        if node in cost:
            pending.pop()
            continue
        children = applied.get(node, [])
        unknown = [child for child in children if child not in cost]
        if not unknown:
            cost[node] = 1 + sum(cost[child] for child in children)
        elif node in opened and not opened.isdisjoint(unknown):
            raise InvalidToolDecl(
                "a schema applies itself to the same value without end", code="invalid_schema", tool=tool
            )
        else:
            opened.add(node)
            pending += unknown
        if cost.get(node, 0) > MAX_APPLIED:
            reason = f"its schemas validate one value more than {MAX_APPLIED} times"
            raise InvalidToolDecl(reason, code="invalid_schema", tool=tool)
