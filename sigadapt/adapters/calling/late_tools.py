"""Tools that a conversation adds or takes away: declared where they change, so that the prompt's cache stays.

A changed list of tools makes the cached beginning of a prompt new, and some providers take a change as a row
of the conversation instead. A turn remembers the tools that it was asked with (`Turn.offered`): as JSON, or
by the hash of the JSON that an earlier turn has. If the tools are others now, the request keeps those of the
conversation's beginning, and a row with the key `late` stands wherever they changed.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.errors import SigadaptError
from sigadapt.providers.route import Route
from sigadapt.providers.wire.values import name_in
from sigadapt.schemas.json_values import Json, compact
from sigadapt.signatures.tool_decls import ToolDecls, made_once

_ANEW = "the tools changed in this conversation; they are sent anew, and the provider's cache begins anew"


def offered_tools(request: Request, route: Route) -> str | None:
    """Return what a turn remembers of the tools that it was asked with; None if its provider wants a list."""
    tools = request.get("tools")
    if not tools or not _changes_taken(request, route):
        return None
    text, name = _identity(tools)
    return name if name in dict(map(_identity_of, _offers(request).values())) else text


def with_late_tools(request: Request, route: Route) -> tuple[Request, tuple[Change, ...]]:
    """Return a request with the tools of the conversation's beginning, and rows where they changed."""
    offers = _offers(request)
    tools = request.get("tools")
    if not offers or not tools:
        return request, ()
    now = _identity(tools)[1]
    names = {place: _identity_of(offer)[0] for place, offer in offers.items()}
    if set(names.values()) == {now}:
        return request, ()
    lists = {name: _declare(text) for name, text in map(_identity_of, offers.values()) if text}
    rows = request["messages"]
    end = len(rows) - (rows[-1]["role"] == "assistant")  # a paused turn stays the last one
    steps = {**names, end: now}
    union_and_rows = _place({place: lists.get(name, []) for place, name in steps.items()} | {end: tools})
    kinds_of_change = _changes_taken(request, route)
    union, changes = union_and_rows if union_and_rows is not None else (None, dict[int, Json]())
    for place, change in changes.items():  # taken only behind a question or behind results
        kinds = {kind for kind in ("added", "removed") if change["late"][kind]}
        if not (kinds <= kinds_of_change and place > 0 and rows[place - 1]["role"] in ("user", "tool")):
            union = None
    if union is None:
        return request, (Change("/tools", "lowered", _ANEW),)
    messages: list[dict[str, Any]] = []
    for place, row in enumerate([*rows, None]):
        messages += [changes[place]] if place in changes else []
        messages += [row] if row is not None else []
    why = f"the tools changed; the provider is told where, at {len(changes)} places, and its cache stays"
    return {**request, "messages": messages, "tools": union}, (Change("/tools", "lowered", why),)


def _place(lists: Mapping[int, Sequence[Json]]) -> tuple[list[Json], dict[int, Json]] | None:
    """Return all tools of the lists and the rows that change them; None for what no row can say."""
    first, *later = sorted(lists.items())
    union = _by_name(first[1])
    current = _by_name(first[1])
    rows = dict[int, Json]()
    if not union:
        return None
    root = [{"name": name} for name in union]
    for place, tools in later:
        latest = _by_name(tools)
        additions = [name for name in latest if name not in current]
        removals = [name for name in current if name not in latest]
        if not latest or any(union.setdefault(name, latest[name]) != latest[name] for name in latest):
            return None
        if additions or removals:
            late = {"root": root, "added": _as_names(additions), "removed": _as_names(removals)}
            words = f"Tools from here on: {', '.join(latest)}."
            rows[place] = {"role": "system", "content": words, "late": late}
        current = latest
    return list(union.values()), rows


def _changes_taken(request: Request, route: Route) -> frozenset[str]:
    return frozenset() if route.tools.late is None else route.tools.late(request["model"])


def _declare(text: str) -> list[Json]:
    """Return the tools of a saved turn; none if they are no declarations: anybody may have written them."""
    try:
        return ToolDecls(orjson.loads(text)).to_openai()
    except (ValueError, SigadaptError):
        return []


def _by_name(tools: Sequence[Json]) -> dict[str, Json]:
    """Return tools by their names; none if one of them has no name."""
    by_name = {str(name_in(tool)): tool for tool in tools}
    return by_name if "None" not in by_name and len(by_name) == len(tools) else {}


def _as_names(names: Iterable[str]) -> list[Json]:
    return [{"name": name} for name in names]


def _offers(request: Request) -> dict[int, str]:
    turns = ((place, row.get("turn")) for place, row in enumerate(request["messages"]))
    return {place: turn.offered for place, turn in turns if turn is not None and turn.offered}


def _identity(tools: Sequence[Json]) -> tuple[str, str]:
    """Return tools as JSON, and its hash."""

    def make() -> tuple[str, str]:
        text = compact(list(tools))
        return text, _hash(text)

    return made_once(tools, "offered", make)


def _identity_of(offer: str) -> tuple[str, str]:
    """Return the hash of remembered tools, and their JSON, which is empty if only the hash is remembered."""
    return (_hash(offer), offer) if offer.startswith("[") else (offer, "")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
