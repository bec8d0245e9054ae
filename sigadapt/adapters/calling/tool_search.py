"""Deferred tools, which the model searches for: by its provider's search, or by one that the adapter answers.

The route decides for each request, and nothing is kept but what the turns remember (`Turn.searches`):

 a. Where the model has its provider's search, the tools leave deferred, with that search beside them.
 b. Elsewhere the adapter declares `search_tools`, and answers it. The answer describes the tools found, which
    are called through the fixed `call_tool`: the list of tools never changes, and so the provider's cache
    holds. What comes out are calls of the tools named.
 c. With a search of the user's, the tools found join the request as late tools where the route has these
    (`late_tools.py`), else they are called as in b.
 d. In a conversation that comes from another route, the calls of hidden tools are written as this one has
    them. The answers of searches name tools alone: what they describe is what is declared now.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from inspect import isawaitable
from typing import Any, NamedTuple

from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.request.sendable_tools import is_search
from sigadapt.errors import InvalidToolDecl, SigadaptError
from sigadapt.providers.route import Route
from sigadapt.providers.wire.namespaces import MOST, is_single
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.schemas.arguments import Flaw, parse_arguments
from sigadapt.schemas.json_values import Json, compact, cut, is_object, listed
from sigadapt.signatures.awaiting import Await, Steps
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, Turn, refused
from sigadapt.signatures.calls import SearchRecord as Searched
from sigadapt.signatures.fewer_tools import known_names
from sigadapt.signatures.tool_decl import ToolSearch
from sigadapt.signatures.tool_decls import CanonicalTools, ToolDecls, made_once
from sigadapt.signatures.tool_index import ToolIndex

SEARCH = "search_tools"
CALL = "call_tool"
_SHOWN = 5  # tools that the adapter's own search finds at once
_BY_WORDS = ToolSearch()
_PLACE = re.compile(r"/tools/(\d+)")
_NO_MORE = "There are no more searches in this turn. Answer with what you have."
_NOTHING = "No tool fits these words. Try others, or answer without."
_NO_QUERY = "Give the argument `query`, a text that says what the tool does."
_LISTED = {"description": "This tool is listed above, or is not there any more."}
_CUSTOM = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def _function(name: str, description: str, /, **arguments: tuple[str, str]) -> Json:
    properties = {key: {"type": kind, "description": text} for key, (kind, text) in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _searching(after: str) -> Json:
    text = "Find tools by what they do. Most are not listed here: search before you say that you lack one."
    return _function(SEARCH, f"{text} {after}", query=("string", "What the tool does, in a few words."))


_JOINING = [_searching("You can call the tools that it names from then on.")]
_ROUTING = [
    _searching(f"The answer describes the best matches, which you call with `{CALL}`."),
    _function(
        CALL,
        f"Call a tool that `{SEARCH}` found.",
        name=("string", "The tool's name."),
        arguments=("object", "The tool's arguments, as its `parameters` describe them."),
    ),
]
SCHEMAS: Json = {tool["function"]["name"]: tool["function"]["parameters"] for tool in _ROUTING}
"""The schemas of the adapter's own tools, for calls that are read from text."""


class Offer(NamedTuple):
    """The deferred tools of one request, which the adapter itself finds."""

    tools: Sequence[Json]  # of the canonical Request
    deferred: dict[str, Json]  # their functions, by name
    decls: ToolDecls
    joins: bool  # whether what is found joins the request's tools, or is called through `call_tool`

    def in_places(self, changes: Iterable[Change]) -> Iterator[Change]:
        """Yield changes of the tools that are shown, in the places of the canonical Request."""
        places = [place for place, tool in enumerate(self.tools) if self.shows(tool)]
        for change in changes:
            match = _PLACE.match(change.where)
            rest = places[int(match[1]) :] if match else ()
            yield change._replace(where=_PLACE.sub(f"/tools/{rest[0]}", change.where)) if rest else change

    def shows(self, tool: Json) -> bool:
        """Return whether a tool of the canonical Request is sent as it was declared."""
        return not is_search(tool) and name_in(tool) not in self.deferred

    @property
    def searches(self) -> dict[ToolSearch, list[str]]:
        """The hidden tools by how they are found."""
        names: dict[ToolSearch, list[str]] = {}
        for name in self.deferred:
            search = self.decls[name].search if name in self.decls else None
            names.setdefault(search or _BY_WORDS, []).append(name)
        return names

    def separate(self, calls: ToolCalls, before: tuple[Turn, ...]) -> ToolCalls:
        """Return an answer's calls of the program's tools; the turn has the searches, here and `before`."""
        searches = [*calls.turn.searches]
        raw = {**calls.turn.routed}
        others: list[ToolCall | InvalidToolCall] = []
        for call in calls.in_order():
            if call.name == SEARCH and getattr(call, "code", "") != "truncated":
                query: Any = call.args.get("query") if isinstance(call, ToolCall) else None
                query = query if isinstance(query, str) and query.strip() else ""
                fields: Json = {"id": call.id, "arguments": call.arguments, "index": call.index}
                searches.append(Searched(**fields, name=SEARCH, query=query, note="" if query else _NO_QUERY))
            elif call.name == CALL and isinstance(call, ToolCall) and not self.joins:
                raw[call.id] = call.arguments
                others.append(_call_behind(call, self.decls))
            else:
                others.append(call)
        if not (searches or raw or before):
            return calls
        update = {"searches": tuple(searches), "routed": raw, "before": before}
        return _of_turn(calls, others, calls.turn.model_copy(update=update))

    def with_answers(self, calls: ToolCalls, searches_left: int) -> Steps[ToolCalls]:
        """Return calls whose turn has the answers of its searches, of which `searches_left` may be made."""
        answers: list[Searched] = []
        for search in calls.turn.searches:
            names = ()
            note = search.note
            if not note:
                names = (yield from self._search(search.query)) if searches_left > 0 else ()
                note = "" if names else _NOTHING if searches_left > 0 else _NO_MORE
                searches_left -= 1
            answers.append(search.model_copy(update={"found": names, "note": note}))
        turn = calls.turn.model_copy(update={"searches": tuple(answers)})
        return _of_turn(calls, calls.in_order(), turn)

    def _search(self, query: str) -> Steps[tuple[str, ...]]:
        def refusal() -> SigadaptError:
            fix = "Call the program with `await program.acall(...)`."
            return InvalidToolDecl(f"{subject} has to be awaited", code="async_search", fix=fix)

        subject = f"the search for {cut(repr(query))}"
        names: list[str] = []
        searches = self.searches
        by_words = [
            name for search, tool_names in searches.items() if search.function is None for name in tool_names
        ]
        for search, tool_names in searches.items():
            if search.function is None:
                continue
            try:
                answer: Any = search.function(query, ToolDecls([self.decls[name] for name in tool_names]))
                names += known_names(
                    (yield Await(answer, refusal)) if isawaitable(answer) else answer, self.decls
                )
            except SigadaptError:
                raise
            except Exception as error:
                raise InvalidToolDecl(f"{subject} failed: {error!r}", code="search_failed") from error
        if by_words:
            parts = [self.deferred[name] for name in by_words]
            names += made_once(self.tools, ("index", *by_words), lambda: ToolIndex(parts)).best(query, _SHOWN)
        return tuple(dict.fromkeys(names))


def _of_turn(calls: ToolCalls, every: Sequence[ToolCall | InvalidToolCall], turn: Turn) -> ToolCalls:
    good = [call.model_copy(update={"turn": turn}) for call in every if isinstance(call, ToolCall)]
    bad = tuple(call for call in every if isinstance(call, InvalidToolCall))
    return calls.model_copy(update={"tool_calls": good, "invalid": bad, "turn": turn})


def _call_behind(call: ToolCall, decls: ToolDecls) -> ToolCall | InvalidToolCall:
    """Return the call that a call of `call_tool` makes."""
    name = call.args.get("name")
    args = call.args.get("arguments", {})
    if not isinstance(name, str) or not name:
        return refused(call, Flaw("missing_name", f"{CALL} needs the `name` of a tool"))
    others = call.args.keys() - {"name", "arguments"}
    inner = call.model_copy(update={"name": name, "arguments": call.arguments if others else compact(args)})
    if others:
        extra = listed(map(repr, sorted(others)), 8, ", ")
        return refused(inner, Flaw("schema_mismatch", f"{CALL} takes `name` and `arguments`, not {extra}"))
    if not is_object(args):
        return refused(inner, Flaw("not_an_object", f"the `arguments` of {CALL} are no object"))
    if name in decls and decls[name].format is not None and isinstance(args.get("input"), str):
        return inner.model_copy(update={"args": args, "arguments": args["input"]})  # as of a custom tool
    return inner.model_copy(update={"args": args})


def offer(
    request: Request, decls: ToolDecls, route: Route, *, is_native: bool
) -> tuple[Request, tuple[Change, ...], Offer | None]:
    """Return a canonical Request as it offers its deferred tools, and how the adapter itself finds them."""
    tools: Sequence[Json] = request.get("tools") or ()
    late = [tool for tool in tools if tool.get("defer_loading") and ("function" in tool or "custom" in tool)]
    deferred = made_once(tools, "deferred", lambda: {name_in(tool): _described(tool) for tool in late})
    changes = list(_answers(request["messages"]))
    choice: Any = request.get("tool_choice")
    several: list[Json] = [choice] if is_object(choice) else []
    several = several[0]["allowed_tools"]["tools"] if several and "allowed_tools" in choice else several
    if choices := sorted({name_in(tool) for tool in several} & deferred.keys()):
        why = f"the tool choice names {listed(map(repr, choices), 8, ', ')}, which the model has to see"
        changes.append(Change("/tools", "lowered", why))
        tools = [_without_flag(tool) if name_in(tool) in choices else tool for tool in tools]
        deferred = {name: part for name, part in deferred.items() if name not in choices}
    offering: Any = {**request, "tools": tools}
    if not deferred:
        return (offering if choices else request), tuple(changes), None
    for name in {SEARCH, CALL} & {*map(name_in, tools)}:
        why = "the adapter finds deferred tools with a tool of this name"
        raise InvalidToolDecl(why, code="reserved_name", tool=name, fix="Rename yours, or defer none.")
    offering["messages"] = rows = _in_fewer_words(request["messages"], tools, deferred, changes)
    by_adapter = Offer(tools, deferred, decls, joins=False)
    has_own = any(search.function for search in by_adapter.searches)
    searches = [number for number, tool in enumerate(tools) if is_search(tool)]
    own_search = route.search if is_native and not has_own else None
    if own_search and (searches or own_search.supports(request["model"])):
        if not searches:
            tool_json: Json = dict(own_search.tool)
            offering["tools"] = made_once(
                tools, ("with", tool_json["type"]), lambda: CanonicalTools([*tools, tool_json])
            )
            changes.append(
                Change("/tools", "lowered", f"the provider's search is added: {tool_json['type']!r}")
            )
        if own_search.namespaces and (single := sum(map(is_single, tools))):
            why = f"{single:,} deferred functions are sent in namespaces of at most {MOST}"
            changes.append(Change("/tools", "lowered", why))
        return offering, tuple(changes), None
    offering["tools"] = [tool for tool in tools if by_adapter.shows(tool)]
    if is_native and has_own and route.tools.late and "added" in route.tools.late(request["model"]):
        by_adapter = by_adapter._replace(joins=True)
        how = "and the tools found join"
        loaded = dict.fromkeys(name for row in rows for name in _names_in(row) if name in deferred)
        by_name = {name_in(tool): _without_flag(tool) for tool in late}
        offering["tools"] += [*_JOINING, *map(by_name.__getitem__, loaded)]
    else:
        how = f"{CALL} calls"
        offering["tools"] += _ROUTING
        offering["messages"] = list(_routed_rows(rows, deferred))
    changes += (Change(f"/tools/{number}", "dropped", "the adapter searches itself") for number in searches)
    why = f"the adapter finds the tools with defer_loading itself ({len(deferred):,}): {SEARCH} finds, {how}"
    return offering, (*changes, Change("/tools", "lowered", why)), by_adapter


def _described(tool: Json) -> Json:
    """Return what a search's answer says of a tool; of a custom one, as of a function of one text."""
    part = named_part(tool)
    description = {"name": part["name"], "description": part.get("description", "")}
    return {**description, "parameters": part.get("parameters", _CUSTOM)}


def _without_flag(tool: Json) -> Json:
    return {key: part for key, part in tool.items() if key != "defer_loading"}


def _answers(rows: Iterable[Json]) -> Iterator[Change]:
    for number, search in ((number, row["search"]) for number, row in enumerate(rows) if "search" in row):
        outcome = listed(search.found, _SHOWN, ", ") or search.note
        why = f"the adapter answered the search for {cut(repr(search.query))}: {outcome}"
        yield Change(f"/messages/{number}", "lowered", why)


def _names_in(row: Json) -> Iterator[str]:
    """Yield the tools that a message found or called."""
    yield from row["search"].found if "search" in row else ()
    yield from map(name_in, row.get("tool_calls") or ())


def _in_fewer_words(
    rows: list[Json], tools: Sequence[Json], deferred: dict[str, Json], changes: list[Change]
) -> list[Json]:
    """Return messages in which the sentence of DSPy's agents that names every tool names the loaded ones."""
    names = [f"`{name_in(tool)}`" for tool in tools if "function" in tool or "custom" in tool]
    every, fewer = (
        f"The available tools are: {', '.join(listing)}"
        for listing in (names, [name for name in names if name[1:-1] not in deferred])
    )
    first = rows[0]["content"]
    if not isinstance(first, str) or f"{every}." not in first:
        return rows
    why = "the sentence that names all tools names those that are loaded, and the search"
    changes.append(Change("/messages/0/content", "lowered", why))
    content = first.replace(f"{every}.", f"{fewer}, and those that a search finds.")
    return [{**rows[0], "content": content}, *rows[1:]]


def _routed_rows(rows: Sequence[Json], deferred: dict[str, Json]) -> Iterator[Json]:
    """Yield the messages with calls of hidden tools through `call_tool`, and searches that describe tools."""
    routed_ids: set[str] = set()
    for row in rows:
        if calls := row.get("tool_calls"):
            raw: dict[str, str] = row["turn"].routed if row.get("turn") else {}
            routed_ids = {call["id"] for call in calls if call["id"] in raw or name_in(call) in deferred}
            new_calls = [
                _routed(call, raw.get(call["id"])) if call["id"] in routed_ids else call for call in calls
            ]
            yield {**row, "tool_calls": new_calls} if routed_ids else row
        elif "search" in row and not row["search"].note:
            text = compact([deferred.get(name, {"name": name, **_LISTED}) for name in row["search"].found])
            yield {**row, "content": text, "result": row["result"].model_copy(update={"value": text})}
        else:
            yield {**row, "name": CALL} if row.get("tool_call_id") in routed_ids else row


def _routed(call: Json, raw: str | None) -> Json:
    """Return a call as one of `call_tool`: as it was sent, or anew if the program has changed it."""
    part = named_part(call)
    text = compact({"input": part["input"]}) if "input" in part else part["arguments"]
    original = parse_arguments(raw or "{")
    args = parse_arguments(text)
    if not (raw and is_object(original) and (text == raw or compact(original.get("arguments", {})) == text)):
        raw = compact({"name": part["name"], "arguments": args if is_object(args) else {}})
    return {"id": call["id"], "type": "function", "function": {"name": CALL, "arguments": raw}}
