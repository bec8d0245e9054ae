"""Check a JSON Schema's references: where they lead, and how much work it takes to follow them (no network).

a. A reference leads to a place in the same document, by pointer, by anchor or by an embedded `$id`. Nothing
   is ever fetched.
b. No schema applies itself to the same value: validation would never end.
c. No value and no part of it is judged more than `MAX_APPLIED` times: where each definition refers to the
   next one twice, the work doubles with each definition. What is recursive counts once, because the validator
   remembers its verdicts.
"""

from collections import defaultdict
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote, urljoin

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, Keys, cut, is_object, pointer
from sigadapt.schemas.subschemas import SAME_VALUE, SchemaPlace, subschemas, target_of

MAX_APPLIED = 10_000
"""How many times a schema, with all schemas in it and all it refers to, may judge one value."""

_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")
_OVERLAPPING = frozenset(("patternProperties", "propertyNames", "contains"))
_UNEVALUATED = frozenset(("unevaluatedProperties", "unevaluatedItems"))
_Edges: TypeAlias = "dict[int, set[tuple[str, object, int]]]"
"""What judges a value or a part of it: keyword, key and `id`, by the `id` of the schema that it is in."""


class _Reference(NamedTuple):
    target: str  # what `$ref` says
    holder: Json  # the schema that says it
    resource: Json  # the root that a relative one counts from
    path: Keys  # the keys that lead to it


class _Targets:
    """What references can lead to: resources by identifier, and anchors by resource and name."""

    # A resource, in JSON Schema, is the root or a schema with an `$id`. A reference is relative to the
    # resource around it: `of_schema` maps the `id` of each schema object to its resource.
    def __init__(self) -> None:
        self.base: dict[int, str] = {}
        self.resources: dict[str, Json] = {}
        self.anchors: dict[tuple[int, str], Json] = {}
        self.of_schema: dict[int, Json] = {}


def check_references(schema_places: list[SchemaPlace], *, tool: str | None) -> None:
    """Refuse references that leave the document or lead nowhere, and schemas that take too much work."""
    edges = _edges_of(schema_places, tool)
    same_value_edges: _Edges = {}
    for holder, judged in edges.items():
        same_value_edges[holder] = {edge for edge in judged if edge[0] == "$ref" or edge[0] in SAME_VALUE}
    if _recursive(same_value_edges):
        flaw = "a schema applies itself to the same value without end"
        raise InvalidToolDecl(flaw, code="invalid_schema", tool=tool)
    recursive = _recursive(edges)
    if max(_most_judged(same_value_edges, set()), _most_judged(edges, recursive)) > MAX_APPLIED:
        flaw = f"its schemas judge one value more than {MAX_APPLIED} times"
        raise InvalidToolDecl(flaw, code="invalid_schema", tool=tool)


def _edges_of(schema_places: list[SchemaPlace], tool: str | None) -> _Edges:
    """Return what each schema applies, those included that only references lead to."""
    targets = _Targets()
    references: list[_Reference] = []
    edges: _Edges = defaultdict(set)
    known_places = 0
    known_references = 0
    while known_places < len(schema_places) or known_references < len(references):
        for place in schema_places[known_places:]:
            references += _enter(place, targets)
            edges[id(place.holder)].add((place.keyword, place.path[-1:], id(place.schema)))
        known_places = len(schema_places)
        for reference in references[known_references:]:
            target: Any = _resolve(reference, targets, tool)
            edges[id(reference.holder)].add(("$ref", reference.path[-1], id(target)))
            if is_object(target) and id(target) not in targets.of_schema:  # only references lead to it
                targets.of_schema[id(target)] = reference.resource
                schema_places.extend(subschemas(target))
        known_references = len(references)
    return edges


def _enter(place: SchemaPlace, targets: _Targets) -> list[_Reference]:
    """Record a schema's identifier and anchors. Return its references, each with its resource."""
    schema = place.schema
    identifier = schema.get("$id")
    if place.holder is None:
        resource = targets.of_schema.get(id(schema), schema)
        outer_base = ""
    else:
        resource = targets.of_schema[id(place.holder)]
        outer_base = targets.base.get(id(resource), "")
    if type(identifier) is str and not identifier.startswith("#"):
        base = urljoin(outer_base, identifier).rstrip("#")
        targets.base[id(schema)] = base
        targets.resources[base] = schema
        resource = schema
    targets.of_schema[id(schema)] = resource
    for key in ("$anchor", "$dynamicAnchor"):
        if type(schema.get(key)) is str:
            targets.anchors[id(resource), schema[key]] = schema
    return [
        _Reference(schema[key], schema, resource, (*place.path, key))
        for key in _KEYWORDS
        if type(schema.get(key)) is str
    ]


def _resolve(reference: _Reference, targets: _Targets, tool: str | None) -> object:
    base, _, fragment = reference.target.partition("#")
    resource = reference.resource
    path = pointer(reference.path)
    if base:
        resource = targets.resources.get(urljoin(targets.base.get(id(resource), ""), base))
        if resource is None:
            reason = f"'{cut(reference.target)}' is outside this schema, and schemas are never fetched"
            fix = "Copy the schema it refers to into `$defs`."
            raise InvalidToolDecl(reason, code="remote_ref", tool=tool, path=path, fix=fix)
    target: Any = resource
    if fragment and not fragment.startswith("/"):
        target = targets.anchors.get((id(resource), unquote(fragment)))
    elif fragment:
        target = target_of(f"#{fragment}", resource)
    if target is None:
        reason = f"'{cut(reference.target)}' does not exist in this schema"
        raise InvalidToolDecl(reason, code="invalid_schema", tool=tool, path=path)
    return target


def _most_judged(edges: _Edges, remembered: set[int]) -> int:
    """Return how often a schema judges one value at most; those that are remembered judge it once."""
    cost: dict[int, int] = {}
    for node in _from_the_leaves(edges):
        by_keyword: defaultdict[str, list[int]] = defaultdict(list)
        for keyword, _, child in edges.get(node, ()):
            is_remembered = keyword == "$ref" and child in remembered
            child_cost = 0 if is_remembered else cost.get(child, 0)
            by_keyword[keyword].append(child_cost)
        has_unevaluated = not _UNEVALUATED.isdisjoint(by_keyword)
        times = 3 if has_unevaluated else 1  # measured: these have the others judged 2.7 times
        total = 1
        for keyword, costs in by_keyword.items():
            is_each = keyword in SAME_VALUE or keyword in _OVERLAPPING or keyword == "$ref"
            total += times * sum(costs) if is_each else max(costs)
        cost[node] = total
        if total > MAX_APPLIED:
            return total
    return max(cost.values(), default=0)


def _from_the_leaves(edges: _Edges) -> list[int]:
    order: list[int] = []
    nodes: set[int] = set()
    for root in edges:
        pending = [(root, False)]
        while pending:
            node, is_done = pending.pop()
            if is_done:
                order.append(node)
            elif node not in nodes:
                nodes.add(node)
                pending += [(node, True), *((child, False) for *_, child in edges.get(node, ()))]
    return order


def _recursive(edges: _Edges) -> set[int]:
    """Return the schemas that lead back to themselves (Kosaraju's algorithm)."""
    backwards: defaultdict[int, list[int]] = defaultdict(list)
    for node, judged in edges.items():
        for *_, child in judged:
            backwards[child].append(node)
    nodes: set[int] = set()
    recursive: set[int] = set()
    for root in reversed(_from_the_leaves(edges)):
        component = _unvisited_from(root, backwards, nodes)
        if len(component) > 1 or root in backwards[root]:
            recursive.update(component)
    return recursive


def _unvisited_from(root: int, edges: dict[int, list[int]], visited: set[int]) -> list[int]:
    """Return the nodes that can be reached from one and were not visited, and mark them as visited."""
    component = list[int]()
    pending = [root]
    while pending:
        node = pending.pop()
        if node not in visited:
            visited.add(node)
            component.append(node)
            pending += edges[node]
    return component
