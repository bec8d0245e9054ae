"""The search for deferred tools that the adapter itself answers, where the provider has none.

The adapter declares `search_tools`, whose answer describes the tools found, and the fixed `call_tool`, which
calls them: the list of tools never changes, and so the provider's cache holds. A user's own function may find
the tools (`Toolset.deferred(search=...)`).
"""

from collections.abc import Sequence
from inspect import isawaitable
from typing import Any, NamedTuple

from sigadapt.errors import InvalidToolDecl, SigadaptError
from sigadapt.json_values import Json, compact, cut, is_object, listed
from sigadapt.providers.wire.values import is_search, name_in
from sigadapt.schemas.arguments import Flaw
from sigadapt.signatures.awaiting import Await, Steps
from sigadapt.signatures.calls import (
    InvalidToolCall,
    SearchRecord,
    ToolCall,
    ToolCalls,
    Turn,
    in_turn,
    refused,
)
from sigadapt.signatures.fewer_tools import ToolIndex, known_names
from sigadapt.signatures.tool_decl import ToolSearch
from sigadapt.signatures.tool_decls import CanonicalTools, ToolDecls, made_once

SEARCH = "search_tools"
CALL = "call_tool"
MOST_FOUND = 5
"""How many tools a search by words finds at once."""

_BY_WORDS = ToolSearch()
_NO_MORE = "There are no more searches in this turn. Answer with what you have."
_NOTHING = "No tool fits these words. Try others, or answer without."
_NO_QUERY = "Give the argument `query`, a text that says what the tool does."


def _function(name: str, description: str, /, **arguments: tuple[str, str]) -> Json:
    properties = {key: {"type": kind, "description": text} for key, (kind, text) in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


ADAPTER_TOOLS = [
    _function(
        SEARCH,
        "Find tools by what they do. Most are not listed here: search before you say that you lack one. "
        f"The answer describes the best matches, which you call with `{CALL}`.",
        query=("string", "What the tool does, in a few words."),
    ),
    _function(
        CALL,
        f"Call a tool that `{SEARCH}` found.",
        name=("string", "The tool's name."),
        arguments=("object", "The tool's arguments, as its `parameters` describe them."),
    ),
]
"""The tools that a request declares for the adapter."""

SCHEMAS: Json = {tool["function"]["name"]: tool["function"]["parameters"] for tool in ADAPTER_TOOLS}
"""Their schemas, for calls that are read from text."""


class AdapterSearch(NamedTuple):
    """The deferred tools of one request, which the adapter finds."""

    tools: Sequence[Json]  # of the canonical Request
    deferred: dict[str, Json]  # their functions, by name
    decls: ToolDecls
    first_change: int = 0  # the changes from here on count the tools that are sent

    @property
    def places(self) -> list[int]:
        """The places of the tools of the canonical Request that are sent as they were declared."""

        def find() -> list[int]:
            tools = enumerate(self.tools)
            return [
                place for place, tool in tools if not is_search(tool) and name_in(tool) not in self.deferred
            ]

        return made_once(self.tools, "places", find)

    @property
    def offered(self) -> Sequence[Json]:
        """The tools that are sent: these, and the adapter's own."""
        what = "offered with a search"
        return made_once(
            self.tools,
            what,
            lambda: CanonicalTools([*map(self.tools.__getitem__, self.places), *ADAPTER_TOOLS]),
        )

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
        routed = {**calls.turn.routed}
        program_calls: list[ToolCall | InvalidToolCall] = []
        for call in calls.in_order():
            if call.name == SEARCH and getattr(call, "code", "") != "truncated":
                searches.append(_search_of(call))
            elif call.name == CALL and isinstance(call, ToolCall):
                routed[call.id] = call.arguments
                program_calls.append(_inner_call(call, self.decls))
            else:
                program_calls.append(call)
        if not (searches or routed or before):
            return calls
        update = {"searches": tuple(searches), "routed": routed, "before": before}
        return _of_turn(calls, program_calls, calls.turn.model_copy(update=update))

    def with_answers(self, calls: ToolCalls, searches_left: int) -> Steps[ToolCalls]:
        """Return calls whose turn has the answers of its searches, of which `searches_left` may be made."""
        answers: list[SearchRecord] = []
        for search in calls.turn.searches:
            if search.note:
                answers.append(search)
                continue
            names = ()
            note = _NO_MORE
            if searches_left > 0:
                names = yield from self._search(search.query)
                note = "" if names else _NOTHING
            searches_left -= 1
            answers.append(search.model_copy(update={"found": names, "note": note}))
        turn = calls.turn.model_copy(update={"searches": tuple(answers)})
        return _of_turn(calls, calls.in_order(), turn)

    def _search(self, query: str) -> Steps[tuple[str, ...]]:
        by_words: list[str] = []
        names: list[str] = []
        for search, tool_names in self.searches.items():
            if search.function is None:
                by_words += tool_names
            else:
                names += yield from self._search_with(search.function, query, tool_names)
        if by_words:
            parts = [self.deferred[name] for name in by_words]
            index = made_once(self.tools, ("index", *by_words), lambda: ToolIndex(parts))
            names += index.best(query, MOST_FOUND)
        return tuple(dict.fromkeys(names))

    def _search_with(self, function: Any, query: str, tool_names: list[str]) -> Steps[list[str]]:
        """Return what the user's function finds among the tools that it was given for."""
        subject = f"the search for {cut(repr(query))}"

        def refusal() -> SigadaptError:
            fix = "Call the program with `await program.acall(...)`."
            return InvalidToolDecl(f"{subject} has to be awaited", code="async_search", fix=fix)

        try:
            answer: Any = function(query, ToolDecls([self.decls[name] for name in tool_names]))
            if isawaitable(answer):
                answer = yield Await(answer, refusal)
            return [*known_names(answer, self.decls)]
        except SigadaptError:
            raise
        except Exception as error:
            raise InvalidToolDecl(f"{subject} failed: {error!r}", code="search_failed") from error


def _search_of(call: ToolCall | InvalidToolCall) -> SearchRecord:
    """Return the search that a call of `search_tools` asks for."""
    query: Any = call.args.get("query") if isinstance(call, ToolCall) else None
    if not isinstance(query, str) or not query.strip():
        query = ""
    note = "" if query else _NO_QUERY
    return SearchRecord(
        id=call.id, name=SEARCH, arguments=call.arguments, index=call.index, query=query, note=note
    )


def _of_turn(calls: ToolCalls, items: Sequence[ToolCall | InvalidToolCall], turn: Turn) -> ToolCalls:
    good = [call for call in items if isinstance(call, ToolCall)]
    bad = tuple(call for call in items if isinstance(call, InvalidToolCall))
    return in_turn(calls.model_copy(update={"tool_calls": good, "invalid": bad}), turn)


def _inner_call(call: ToolCall, decls: ToolDecls) -> ToolCall | InvalidToolCall:
    """Return the call that a call of `call_tool` makes."""
    name = call.args.get("name")
    args = call.args.get("arguments", {})
    if not isinstance(name, str) or not name:
        return refused(call, Flaw("missing_name", f"{CALL} needs the `name` of a tool"))
    unknown_keys = call.args.keys() - {"name", "arguments"}
    arguments = call.arguments if unknown_keys else compact(args)
    inner = call.model_copy(update={"name": name, "arguments": arguments})
    if unknown_keys:
        extra = listed(map(repr, sorted(unknown_keys)), 8, ", ")
        return refused(inner, Flaw("schema_mismatch", f"{CALL} takes `name` and `arguments`, not {extra}"))
    if not is_object(args):
        return refused(inner, Flaw("not_an_object", f"the `arguments` of {CALL} are no object"))
    if name in decls and decls[name].format is not None and isinstance(args.get("input"), str):
        return inner.model_copy(update={"args": args, "arguments": args["input"]})  # as of a custom tool
    return inner.model_copy(update={"args": args})
