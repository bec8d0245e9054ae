"""Check a JSON Schema's references: where they lead, and how much work it takes to follow them (no network).

a. A reference leads to a place in the same document, by pointer, by anchor or by an embedded `$id`. Nothing
   is ever fetched.
b. No schema applies itself to the same value: validation would never end.
c. No value is validated more than `MAX_APPLIED` times: where each definition refers to the next one twice,
   the work doubles with each definition.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast
from urllib.parse import unquote, urljoin

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json, Path, cut
from sigadapt.schemas.subschemas import SAME_VALUE, Place, subschemas

MAX_APPLIED = 10_000
"""How many times a schema, with all schemas it refers to, may validate one value."""

_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")


References: TypeAlias = dict[tuple[int, object], list[Any]]
"""What a schema refers to, by its `id` and the keyword; the first is what the reference says by itself."""


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

    __slots__ = ("anchors", "base", "of_schema", "resources")

    def __init__(self) -> None:
        self.base: dict[int, str] = {}
        self.resources: dict[str, Json] = {}
        self.anchors: dict[tuple[int, str], Json] = {}
        self.of_schema: dict[int, Json] = {}


def target_of(reference: str, root: Json) -> Any:
    """Return what a reference within a document leads to; None if it leads nowhere or out of the document."""
    # For readers of schemas that were checked, or that nobody checks: nothing is raised.
    place: Any = root if reference.startswith("#") else None
    for token in reference.split("/")[1:]:
        known = cast("Json", place) if isinstance(place, dict) else {}
        place = known.get(key_of(token))
    return place


def check_references(places: list[Place], *, tool: str | None) -> References:
    """Refuse references that leave the document or lead nowhere, and schemas that take too much work.

    Raises:
        InvalidToolDecl: `remote_ref` or `invalid_schema`, with the path of the reference if one is at fault.
    """
    targets = _Targets()
    references: list[_Reference] = []
    applied: defaultdict[int, list[int]] = defaultdict(list)
    resolved: References = {}
    entered = followed = 0
    while entered < len(places) or followed < len(references):
        for place in places[entered:]:
            references += _enter(place, targets)
            if place.keyword in SAME_VALUE:
                applied[id(place.holder)].append(id(place.schema))
        entered = len(places)
        for reference in references[followed:]:
            target: Any = _resolved(reference, targets, tool)
            applied[id(reference.holder)].append(id(target))
            resolved[id(reference.holder), reference.path.key] = [target]
            if isinstance(target, dict):
                places.extend(_hidden(cast("Json", target), reference, targets))
        followed = len(references)
    _check_cost(applied, tool)
    _add_dynamic(references, targets, resolved)
    return resolved


def _hidden(target: Json, reference: _Reference, targets: _Targets) -> Iterable[Place]:
    """Yield the schemas of a target that only references lead to."""
    if id(target) in targets.of_schema:
        return ()
    targets.of_schema[id(target)] = reference.resource
    return subschemas(target)


def _add_dynamic(references: Iterable[_Reference], targets: _Targets, resolved: References) -> None:
    for reference in references:
        if reference.path.key == "$dynamicRef":
            found = resolved[id(reference.holder), "$dynamicRef"]
            name = reference.target.partition("#")[2]
            others = (schema for (_, anchor), schema in targets.anchors.items() if anchor == name)
            found += [schema for schema in others if schema is not found[0] and "$dynamicAnchor" in schema]


def _enter(place: Place, targets: _Targets) -> list[_Reference]:
    """Record a schema's identifier and anchors. Return its references, each with its resource."""
    schema, identifier = place.schema, place.schema.get("$id")
    at_home = targets.of_schema.get(id(schema), schema)
    resource = at_home if place.holder is None else targets.of_schema[id(place.holder)]
    if type(identifier) is str and not identifier.startswith("#"):
        base = urljoin(targets.base.get(id(resource), "") if place.holder else "", identifier).rstrip("#")
        targets.base[id(schema)] = base
        targets.resources[base] = resource = schema
    targets.of_schema[id(schema)] = resource
    for key in ("$anchor", "$dynamicAnchor"):
        if type(schema.get(key)) is str:
            targets.anchors[id(resource), schema[key]] = schema
    return [
        _Reference(schema[key], schema, resource, Path(place.path, key))
        for key in _KEYWORDS
        if type(schema.get(key)) is str
    ]


def _resolved(reference: _Reference, targets: _Targets, tool: str | None) -> object:
    base, _, fragment = reference.target.partition("#")
    resource = reference.resource
    if base:
        resource = targets.resources.get(urljoin(targets.base.get(id(resource), ""), base))
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
        key = key_of(token)
        if type(place) is list:
            place = cast("list[Any]", place)[int(key)]
        elif isinstance(place, dict):
            place = cast("Json", place)[key]
        else:
            raise LookupError(key)
    return place


def key_of(token: str) -> str:
    """Return the key that a token of a JSON Pointer says (RFC 6901)."""
    return token.replace("~1", "/").replace("~0", "~")


def _check_cost(applied: Mapping[int, list[int]], tool: str | None) -> None:
    """Count, from the leaves, how often each schema validates one value; refuse cycles (b), excess (c)."""
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
