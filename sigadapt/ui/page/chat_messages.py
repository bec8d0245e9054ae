"""Show a chat after a reload: as messages of `useChat`, or of AG-UI, with the ids that the stream wrote."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sigadapt.schemas.json_values import Json
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.ui.log.chat import CallPart, Chat, ChatTurn, Part, TextPart
from sigadapt.ui.page.ag_ui_writer import interrupt_of
from sigadapt.ui.page.ai_sdk_writer import ASK, question_of
from sigadapt.ui.page.page_files import ag_ui_part, ai_sdk_part
from sigadapt.ui.page.page_values import ErrorText, words_of_failure, words_of_value

_NO_RESULT = "There is no result: the run ended before the call did."


@dataclass(eq=False)
class PageCall:
    """A call on the page: with its result, with what it waits for, or with neither while it runs."""

    page_id: str
    name: str
    input: Any
    output: Any = None
    failure: str | None = None
    denial: str | None = None
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
        turns: those that are shown; None for all.
    """

    def __init__(self, chat: Chat, error_text: ErrorText, turns: Sequence[ChatTurn] | None = None) -> None:
        self._error_text = error_text
        self._last = chat.turns[-1] if chat.turns else None
        self._is_running = chat.run is not None
        error = None if self._is_running else chat.error()
        self.requests: list[ToolCall] = [] if error is None else [*error.requests]
        self._requests: dict[str, list[ToolCall]] = {}  # by the ids on the page
        for request in self.requests:
            self._requests.setdefault(chat.page_id_of(request.call.id), []).append(request)
        self.turns = [*map(self._turn, chat.turns if turns is None else turns)]

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
        """Return a part as the page shows it.

        Args:
            part: the part.
            is_last: whether it is one of the last turn.
        """
        if isinstance(part, TextPart):
            return part
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
            shown.denial = part.denial
        elif result["is_error"]:
            shown.state = "failed"
            shown.failure = words_of_failure(ToolResult.model_validate(result), self._error_text)
        else:
            shown.state = "done"
            shown.output = result["value"]


def ai_sdk_messages(shown_chat: ShownChat) -> list[Json]:
    """Return a chat as messages of `useChat`. An answer under way is left to `Chats.resume`."""
    messages: list[Json] = []
    for shown in shown_chat.turns:
        asked = [{"type": "text", "text": shown.turn.text}, *map(ai_sdk_part, shown.turn.files)]
        messages.append({"id": shown.turn.message_id, "role": "user", "parts": asked})
        parts = [row for part in shown.parts for row in _ai_sdk_parts(part)]
        if parts and not shown.is_under_way:
            messages.append({"id": shown.turn.answer_id, "role": "assistant", "parts": parts})
    return messages


def _ai_sdk_parts(part: PagePart) -> Iterator[Json]:
    if isinstance(part, TextPart):
        yield {"type": "text", "text": part.text, "state": "done"}
        return
    row: Json = {
        "type": "dynamic-tool",
        "toolCallId": part.page_id,
        "toolName": part.name,
        "input": part.input,
    }
    approvals = [request for request in part.requests if request.kind == "approval"]
    if part.state == "done":
        yield {**row, "state": "output-available", "output": part.output}
    elif part.state == "failed":
        yield {**row, "state": "output-error", "errorText": part.failure}
    elif part.state == "denied":
        approval = {"id": part.page_id, "approved": False, "reason": part.denial}
        yield {**row, "state": "output-denied", "approval": approval}
    elif approvals:
        [request, *_] = approvals
        approval = {"id": request.id, "descriptor": {"hint": request.hint}}
        yield {**row, "state": "approval-requested", "approval": approval}
    else:
        yield {**row, "state": "input-available"}
    for request in part.requests:
        if request.kind == "answer":
            ask = {"type": "dynamic-tool", "toolCallId": request.id, "toolName": ASK}
            yield {**ask, "state": "input-available", "input": question_of(request)}


def ag_ui_messages(shown_chat: ShownChat) -> list[Json]:
    """Return a chat as messages of AG-UI. What it waits for is an activity with the interrupts."""
    messages: list[Json] = []
    for shown in shown_chat.turns:
        content: Any = shown.turn.text
        if shown.turn.files:
            content = [{"type": "text", "text": content}, *map(ag_ui_part, shown.turn.files)]
        messages.append({"id": shown.turn.message_id, "role": "user", "content": content})
        for part in shown.parts:
            if isinstance(part, TextPart):
                messages.append({"id": part.id, "role": "assistant", "content": part.text})
            else:
                messages += _ag_ui_call(part)
    if shown_chat.requests:
        interrupts = [interrupt_of(request, page_id) for request, page_id in shown_chat.asked]
        row: Json = {"id": f"{shown_chat.turns[-1].turn.answer_id}-waits", "role": "activity"}
        messages.append({**row, "activityType": "interrupt", "content": {"interrupts": interrupts}})
    return messages


def _ag_ui_call(part: PageCall) -> Iterator[Json]:
    arguments = part.input if isinstance(part.input, str) else words_of_value(part.input)
    function = {"name": part.name, "arguments": arguments}
    call = {"id": part.page_id, "type": "function", "function": function}
    yield {"id": part.page_id, "role": "assistant", "toolCalls": [call]}
    result: Json = {"id": part.result_id, "role": "tool", "toolCallId": part.page_id}
    if part.state == "done":
        yield {**result, "content": words_of_value(part.output)}
    elif part.state in {"failed", "denied"}:
        words = part.failure or part.denial
        yield {**result, "content": words, "error": words}
