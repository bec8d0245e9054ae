"""The contract that every provider's file fulfils (`Provider`).

A provider's file holds all facts about one wire format, as one subclass of `Provider` whose methods are pure
functions for both directions. `providers/__init__.py` is the table of all of them.

Response -> Reading: `is_body` and `read` are for whole bodies, `is_event` and `assemble` for streams.
`assemble` turns a stream's events into the body that `read` takes, so the same code reads both (whole calls).
Where an answer is a list of blocks, `part_of` alone looks at what a block is: `read` takes the parts of an
answer, and `turn` writes those of a state. Every `read` follows these rules:

 a. A call is what the caller is asked to run. `read` leaves out tools that the provider ran itself (server
    tools, MCP calls, code execution), which are its `work`, and items that are not function calls.
    They stay in `Choice.raw`.
 b. `text` is everything the model said to the user, refusals included, in order. Text blocks that other
    blocks separate are joined by a blank line; neighbours are joined as they are, because citations split a
    sentence into several. `commentary` is the text that the provider marks as said beside the answer.
    `reasoning` is the thinking that the provider showed.
 c. Arguments that may be incomplete are wrapped in `CutOff`: those of a call that is the last item of a
    candidate stopped by a length limit, a filter, a refusal or an error, and those of each call that a stream
    did not finish.
 d. A text or a call in another shape than the documented one is read, or becomes a bad call with its text
    (`wire/values.py`). Any other value of an unexpected type is skipped, and stays in `Choice.raw` (nothing
    silent).

Request -> wire: the provider's file writes the conversation as rows of the body, a turn that goes back with
the blocks that came (the same conversation), and the tools and the tool choice as `fields`. DSPy's engine
writes the settings, such as the temperature, and sends (`adapters/lm/to_lm15.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from sigadapt.json_values import Json
from sigadapt.providers.route import DocumentedMembers, Route
from sigadapt.providers.usage import AnswerUsage, answer_usage, count_in, sum_in
from sigadapt.providers.wire.reading import Part, Reading, ends_in_call, mark_last_cut_off, state_of
from sigadapt.providers.wire.values import an_object, content_parts, in_paragraphs, join_texts
from sigadapt.signatures.server_tools import NO_WORK, ServerWork
from sigadapt.signatures.tool_decls import made_once

Role: TypeAlias = Literal["user", "assistant", "developer"]
"""Who says a message without calls; the developer gives instructions inside of a conversation."""


class Result(NamedTuple):
    """A result as a route takes it."""

    id: str
    name: str
    text: str  # a failure begins with `ERROR: ` where the provider has no flag for it
    is_error: bool  # where the provider has a flag for that
    value: Json  # the result as an object, for providers that take one
    blocks: Sequence[Json] | None = None  # the provider's blocks inside the result, if it is not text alone
    after: Sequence[Json] = ()  # the blocks that no result can hold, behind the turn's last result
    given: Any = None  # what the program gave, as JSON
    failed: bool = False  # whether it failed, with a flag or without
    deferred: Sequence[str] = ()  # the tools of the request that the model does not see yet


class Provider:
    """One provider's wire format, in both directions, and the routes to it."""

    # A provider overrides what differs from these defaults. A `block` is one of a turn's state.
    name: str  # of the wire format, as in `choice_from_response(..., dialect=)`
    telemetry = "openai"  # its name in traces; the registry that `providers/__init__.py` cites has them
    blocks_key = ""  # the member of an answer that holds its blocks, on a wire that lm15 reads
    rows_key = "messages"  # the member of the body in which DSPy's engine writes the conversation
    path = ""  # of the requests, below the server's address, on a wire that DSPy's engine does not speak
    id_key = "id"  # under which a call has its id, on a wire whose streams lm15 reads
    arguments_as_objects = False  # decoded, so that the provider closes those that it cuts off
    not_of_lm15 = ""  # the type of an event that lm15 doesn't know (`event_for_lm15`)
    marks_commentary = False  # as another text than the answer (`Reading.commentary`)
    # The members of a body's `usage` that count the tokens read, written and cached (`usage.py`).
    read_counts: Sequence[str] = ()
    written_counts: Sequence[str] = ()
    cached_count = ""
    errors: frozenset[str] = frozenset()  # members of a body or an event that hold an error, beside `error`
    # The entries of server tools (`signatures/server_tools.py`) by name, by how the model's name begins.
    server_tools: Mapping[str, Mapping[str, Json]] = {}
    headers_of_fields: Mapping[str, Mapping[str, str]] = {}  # for requests with these fields of the body
    headers_of_tools: Mapping[str, Mapping[str, str]] = {}  # for requests with tools of these types
    server_policy = ""  # lm15's type for what differs between the servers that speak this wire
    members = DocumentedMembers()  # which a request documents, for recordings (`trust/masking.py`)
    token: tuple[str, str, str] | None = None  # a list of the body, and an MCP server's name and token there

    def __init__(self, *routes: Route) -> None:
        self.routes = routes

    # Reading

    def is_body(self, body: Json) -> bool:
        """Return whether a body has this format."""
        raise NotImplementedError

    def read(self, body: Json) -> list[Reading]:
        """Return one Reading per candidate, in the provider's order."""
        raise NotImplementedError

    def is_event(self, event: Json) -> bool:
        """Return whether an event of a stream has this format."""
        return self.is_body(event)

    def assemble(self, events: Iterable[Json]) -> Json:
        """Return the whole body that a stream's events make."""
        raise NotImplementedError

    def usage(self, body: Json) -> AnswerUsage | None:
        """Return what the provider counted, as a body says; None if it does not."""
        counts = an_object(body.get("usage"))
        read = sum_in(counts, *self.read_counts)
        written = sum_in(counts, *self.written_counts)
        return answer_usage(counts, read=read, written=written, cached=count_in(counts, self.cached_count))

    def ran_itself(self, call_id: Any) -> bool:
        """Return whether a call has an id that the provider gives to calls which it ran itself."""
        return False

    def event_for_lm15(self, event: Json) -> tuple[Json, str]:
        """Return the event that lm15 takes in place of one that it doesn't know, and the finish reason."""
        raise NotImplementedError

    def without_calls(self, body: Json) -> Json:
        """Return a body without its calls, for readers that refuse a body because of a call."""
        if not self.blocks_key:
            return body
        blocks = [block for block in content_parts(body.get(self.blocks_key)) if not self.is_call(block)]
        return {**body, self.blocks_key: blocks}

    # Requests that somebody recorded

    def is_request(self, body: Json) -> bool:
        """Return whether a body is a request in this format, which later rows of the table may share."""
        return False

    def request(self, body: Json) -> Any:
        """Return what a request says, a `Recording`: the mirror of what is written below."""
        raise NotImplementedError

    # The state of a turn

    def work(self, blocks: Sequence[Json]) -> ServerWork:
        """Return what the tools that the provider ran left in the blocks of a turn."""
        return NO_WORK

    def part_of(self, block: Json) -> Part:
        """Return what a block of an answer, or of a turn that goes back, is."""
        return Part("", "", block)

    def candidate(
        self, parts: Sequence[Part], finish: str | None, why: str | None = None, fields: Json | None = None
    ) -> Reading:
        """Return the candidate that the parts of an answer make; `fields` are those of its state."""
        text = in_paragraphs([part.text for part in parts])
        reasoning = join_texts([part.thinking for part in parts])
        calls = [part.call for part in parts if part.call is not None]
        if ends_in_call(parts):
            calls = mark_last_cut_off(calls, finish)
        state = state_of(self.name, parts, fields, is_paused=finish == "pause")
        work = NO_WORK if state is None else self.work([part.block for part in parts])
        return Reading(text, reasoning, calls, finish, state, why, work=work)

    def is_call(self, block: Json) -> bool:
        """Return whether a block stands for a call."""
        return self.part_of(block).kind == "call"

    def is_thinking(self, block: Json) -> bool:
        """Return whether a block is thinking, which must lead to something."""
        return self.part_of(block).kind == "thinking"

    def reasoning_in(self, state: Json) -> Json | None:
        """Return a state with the reasoning alone that other servers of this wire take; None without any."""
        return None

    def unstored(self, state: Json) -> Json:
        """Return a state without what only names what the provider stores; itself if nothing does."""
        return state

    def extras(self, state: Json, *, in_chat: bool = False) -> Iterator[str]:
        """Yield names of what a state holds beyond text and calls; `in_chat`, beyond a chat message."""
        for part in map(self.part_of, state["blocks"]):
            if part.more and not (in_chat and part.kind == "thinking"):
                yield part.more
        yield from state.get("lost", ())
        yield from state.get("fields", ())

    # Writing

    def turn(self, message: Json, state: Json | None, route: Route) -> list[Json]:
        """Return an assistant message of the canonical Request, with its own state, as rows of the body."""
        raise NotImplementedError

    def results(self, results: Sequence[Result], turn: Sequence[Json], route: Route) -> list[Json]:
        """Return the results of a turn's calls as rows of the body; `turn` is what `turn` returned."""
        raise NotImplementedError

    def message(self, role: Role, content: str | Sequence[Json], route: Route) -> Json:
        """Return a message without calls as a row of the body, given a text or blocks of this wire."""
        raise NotImplementedError

    def fields(self, request: Mapping[str, Any], route: Route) -> Json:
        """Return the members of the body for the tools, the tool choice, and what these need."""
        fields: Json = {}
        tools: Sequence[Json] = request.get("tools") or ()
        if tools:
            fields["tools"] = made_once(tools, ("written", self.name), lambda: self.tools([*tools]))
        if "tool_choice" in request or "parallel_tool_calls" in request:
            choice = request.get("tool_choice")
            fields |= self.tool_choice(choice, parallel=request.get("parallel_tool_calls"))
        return fields | self.settings_for(request)

    def body(self, written: Json) -> Json:
        """Return the body as it is sent, given lm15's settings with the rows and the fields in their places.

        Only a wire that DSPy's engine does not speak needs this: lm15 writes the settings in the words of the
        dialect with which the server was registered, and the instructions as that dialect's first message.
        """
        return written

    def settings_for(self, request: Mapping[str, Any]) -> Json:
        """Return the members of the body that the tools of a canonical Request need together."""
        return {}

    def plain_blocks(self, text: str | None, calls: int) -> list[Json]:
        """Return the blocks of a turn that is text and then calls alone."""
        return []

    def tools(self, tools: list[Json]) -> list[Json]:
        """Return canonical tools as the provider's own JSON; tools that are that already stay unchanged."""
        return tools

    def tool_choice(self, choice: str | Json | None, *, parallel: bool | None = None) -> Json:
        """Return a canonical tool choice, and whether calls may be parallel, as members of the body.

        `fields` asks only for a request that has one of these.
        """
        raise NotImplementedError
