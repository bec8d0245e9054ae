"""A page of a chat: it writes a run as it happens, and the chat as it is, in the words of its protocol."""

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sigadapt.json_values import Json
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.ui.log.chat import CallPart, Chat, ChatTurn, Part, TextPart
from sigadapt.ui.page_requests import PageRequest
from sigadapt.ui.page_values import ErrorText, without_nan, words_of_failure
from sigadapt.ui.writer import Rows, Writer

_NO_RESULT = "There is no result: the run ended before the call did."


@dataclass(eq=False)
class PageCall:
    """A call on the page: with its result, with what it waits for, or with neither while it runs."""

    page_id: str
    name: str
    input: Any
    output: Any = None
    failure: str | None = None
    """Why there is no output; of a call that was denied, what the user said."""
    state: Literal["running", "done", "failed", "denied", "waiting"] = "running"
    requests: list[ToolCall] = field(default_factory=list[ToolCall])
    result_id: str = ""
    """The id of AG-UI's message with the result."""


PagePart = TextPart | PageCall


@dataclass(eq=False)
class ShownTurn:
    """A message of the user, and the parts of the answer."""

    turn: ChatTurn
    parts: list[PagePart]
    is_under_way: bool


class ShownChat:
    """A chat as a page shows it.

    Args:
        chat: the chat.
        error_text: what the page reads of an error.
        turns: those that are shown.
    """

    def __init__(self, chat: Chat, error_text: ErrorText, turns: Iterable[ChatTurn]) -> None:
        self._error_text = error_text
        self._last = chat.turns[-1] if chat.turns else None
        self._is_running = chat.run is not None
        error = None if self._is_running else chat.error()
        self.requests: list[ToolCall] = [] if error is None else [*error.requests]
        self._requests: dict[str, list[ToolCall]] = {}  # by the ids on the page
        for request in self.requests:
            self._requests.setdefault(chat.page_id_of(request.call.id), []).append(request)
        self.turns = [*map(self._turn, turns)]

    @property
    def asked(self) -> list[tuple[ToolCall, str]]:
        """The requests, each with the id of its call on the page, in the order of the calls there."""
        pairs: list[tuple[ToolCall, str]] = []
        for part in self.turns[-1].parts if self.turns else ():
            if isinstance(part, PageCall):
                pairs += [(request, part.page_id) for request in part.requests]
        return pairs

    def _turn(self, turn: ChatTurn) -> ShownTurn:
        is_last = turn is self._last
        parts = [self.part(part, is_last=is_last) for part in turn.parts]
        return ShownTurn(turn, parts, is_last and self._is_running)

    def part(self, part: Part, *, is_last: bool = True) -> PagePart:
        """Return a part as the page shows it."""
        return part if isinstance(part, TextPart) else self.call(part, is_last=is_last)

    def call(self, part: CallPart, *, is_last: bool = True) -> PageCall:
        """Return a call as the page shows it.

        Args:
            part: the call.
            is_last: whether it is one of the last turn.
        """
        shown = PageCall(part.page_id, part.name, part.input)
        shown.result_id = part.message_id or f"{part.page_id}-result"
        if is_last:
            shown.requests = self._requests.get(part.page_id, [])
        if part.bad is not None:
            shown.state = "failed"
            shown.failure = part.bad
        elif part.result is not None:
            self._finish(shown, part, part.result)
        elif shown.requests:
            shown.state = "waiting"
        elif not is_last or not (self._is_running or self.requests):
            nothing = ToolResult(call_id=part.call_id, name=part.name, value=_NO_RESULT, is_error=True)
            shown.state = "failed"
            shown.failure = words_of_failure(nothing, self._error_text)
        return shown

    def _finish(self, shown: PageCall, part: CallPart, result: Json) -> None:
        if part.denial is not None:
            shown.state = "denied"
            shown.failure = part.denial
        elif result["is_error"]:
            shown.state = "failed"
            shown.failure = words_of_failure(ToolResult.model_validate(result), self._error_text)
        else:
            shown.state = "done"
            shown.output = result["value"]


class Page(Writer):
    """A page that has sent a request.

    Args:
        error_text: what the page reads of an error.
        request: what it has sent.
    """

    shows_last_turn_alone = False
    """Whether what it writes of a chat is the last turn: the page has the others."""

    def __init__(self, error_text: ErrorText, request: PageRequest) -> None:
        super().__init__(error_text, request)
        self._joined_turn = ChatTurn(0, "", "")
        self._shown_parts: dict[Part, None] = {}
        self._open_calls: dict[str, CallPart] = {}

    def shown(self, chat: Chat) -> ShownChat:
        """Return a chat as this page shows it."""
        return ShownChat(chat, self.error_text, chat.turns[-1:] if self.shows_last_turn_alone else chat.turns)

    def begin_answer(self, message_id: str) -> None:
        """Name the message that the answer is, if the page has not named one."""

    def join(self, chat: Chat) -> list[Json]:
        """Return what begins a stream for a page that has loaded the messages of a chat that runs."""
        self._joined_turn = chat.last
        self._shown_parts = dict.fromkeys(chat.last.parts)
        self._open_calls = {page_id: call for page_id, call in chat.last.calls.items() if call.is_open}
        return [*self._begin_joined(chat)]

    def news(self, chat: Chat) -> list[Json]:
        """Return the rows of what came since: calls and texts that are whole, and results.

        If the run is over, they end the stream.
        """
        is_over = chat.run is None
        shown_chat = ShownChat(chat, self.error_text, ())
        rows: list[Json] = []
        for page_id, call in [*self._open_calls.items()]:
            if not call.is_open or is_over:
                del self._open_calls[page_id]
                rows += self.outcome(shown_chat.call(call))
        new_parts = [part for part in self._joined_turn.parts if part not in self._shown_parts]
        self._shown_parts.update(dict.fromkeys(new_parts))
        for part in new_parts:
            rows += self.part(shown_chat.part(part))
            if not isinstance(part, TextPart) and part.is_open:
                self._open_calls[part.page_id] = part
        return [*rows, *self._end_joined(chat)] if is_over else rows

    if TYPE_CHECKING:  # what each protocol writes

        def messages(self, chat: Chat) -> list[Json]:
            """Return a chat as messages, with the ids that the stream wrote."""
            ...

        def as_it_is(self, chat: Chat) -> Rows:
            """Write the chat as it is."""
            ...

        def refuse_request(self, chat: Chat, reason: str) -> Rows:
            """Write why the request was not taken, and what the chat waits for."""
            ...

        def part(self, part: PagePart) -> Rows:
            """Write a part that the page does not have."""
            ...

        def outcome(self, part: PageCall) -> Rows:
            """Write what came of a call that the page has."""
            ...

        def _begin_joined(self, chat: Chat) -> Rows: ...
        def _end_joined(self, chat: Chat) -> Rows: ...


def row_text(row: Json) -> str:
    """Return a row as a server-sent event."""
    try:
        text = json.dumps(row, separators=(",", ":"), allow_nan=False)
    except ValueError:  # no page reads NaN
        text = json.dumps(without_nan(row), separators=(",", ":"))
    return f"data: {text}\n\n"


def run_texts(page: Page, events: Any) -> Any:
    """Return the texts of a run; an async iterator for async events."""
    return _texts_later(page, events) if hasattr(events, "__aiter__") else _texts(page, events)


async def _texts_later(page: Page, events: Any) -> AsyncIterator[str]:
    for row in page.begin():
        yield row_text(row)
    try:
        async for event in events:
            for row in page.on(event):
                yield row_text(row)
    except Exception as error:  # noqa: BLE001  (written, if `Failed` has not written it)
        for row in page.end(error):
            yield row_text(row)
    finally:
        if hasattr(events, "aclose"):
            await events.aclose()
    for text in page.closing_texts:
        yield text


def _texts(page: Page, events: Any) -> Iterator[str]:
    yield from map(row_text, page.begin())
    try:
        for event in events:
            yield from map(row_text, page.on(event))
    except Exception as error:  # noqa: BLE001  (as above)
        yield from map(row_text, page.end(error))
    finally:
        if hasattr(events, "close"):
            events.close()
    yield from page.closing_texts
