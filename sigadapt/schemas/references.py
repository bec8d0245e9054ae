"""Where the references of a JSON Schema lead, and how much work following them is (rule 11).

a. A reference leads to a place in the same document, by pointer, by anchor or by an embedded `$id`. Nothing
   is ever fetched.
b. No schema applies itself to the same value: that never ends.
c. No value is judged more than `MAX_APPLIED` times: schemas that double at each reference cost their reader
   exponential time.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast
from urllib.parse import unquote, urljoin

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json, Path, cut
from sigadapt.schemas.subschemas import SAME_VALUE, Place, subschemas

MAX_APPLIED = 10_000

_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")


References: TypeAlias = dict[tuple[int, object], list[Any]]
"""What a schema refers to, by its `id` and the keyword; the first is what the reference says by itself."""


class _Reference(NamedTuple):
    target: str
    holder: Json
    resource: Json
    path: Path


class _Targets:
    """What can be referred to: resources by identifier, and the anchors in each."""

    __slots__ = ("anchors", "base", "of_schema", "resources")

    def __init__(self) -> None:
        self.base: dict[int, str] = {}
        self.resources: dict[str, Json] = {}
        self.anchors: dict[tuple[int, str], Json] = {}
        self.of_schema: dict[int, Json] = {}


def check_references(places: list[Place], *, tool: str | None) -> References:
    """Refuse references that leave the document or lead nowhere, and schemas that never come to an end.

    Args:
        places: every schema of one document, the root first, as `subschemas` gives them. What stands under a
            keyword of no schema and is referred to is one, and is added.
        tool: the tool's name, for the error.

    Returns:
        What each schema refers to, by the schema's `id` and the keyword. A dynamic reference may lead to
        every schema with its anchor.

    Raises:
        InvalidToolDecl: `remote_ref` or `invalid_schema`, with the path of the reference where there is one.

    Example:
        >>> from sigadapt.schemas.subschemas import subschemas
        >>> schema = {"properties": {"a": {"$ref": "https://example.com/a.json"}}}
        >>> check_references(list(subschemas(schema)), tool="f")
        Traceback (most recent call last):
        sigadapt.errors.InvalidToolDecl: tool 'f', at /properties/a/$ref: 'https://example.com/a.json' is \
outside of this schema, and nothing is fetched. Put what it refers to under `$defs`.
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
    """The schemas under a target that no keyword of schemas leads to."""
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
    """Note a schema's identifier and anchors; return its references, with what they are relative to."""
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
                f"'{cut(reference.target)}' is outside of this schema, and nothing is fetched",
                code="remote_ref",
                tool=tool,
                path=reference.path.pointer(),
                fix="Put what it refers to under `$defs`.",
            )
    try:
        return _at(resource, unquote(fragment), targets)
    except (LookupError, ValueError):
        raise InvalidToolDecl(
            f"'{cut(reference.target)}' refers to nothing",
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
    """Add up, from the leaves, how often each schema has one value judged (rules b and c).

    Args:
        applied: which schemas judge the value of which, by `id`; one that does so twice, twice.
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
            reason = f"its schemas judge one value more than {MAX_APPLIED} times"
            raise InvalidToolDecl(reason, code="invalid_schema", tool=tool)
