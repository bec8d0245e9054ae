"""Show a chat after a reload: as messages of `useChat`, or of AG-UI.

The ids of calls are those that the stream wrote: both count the calls of the chat in their order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sigadapt.adapters.calling.agent_turn import NO_RESULT, NOT_RUN, WAITS
from sigadapt.dspy_boundary.internals import SUBMIT
from sigadapt.errors import InputNeeded
from sigadapt.runs.rounds import rounds
from sigadapt.runs.watching import jsonable
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.calls import InvalidToolCall
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.ui.ag_ui_writer import interrupt_of
from sigadapt.ui.ai_sdk_writer import ASK, question_of
from sigadapt.ui.chat import Chat, ChatTurn, OtherCall
from sigadapt.ui.page_ids import PageIds
from sigadapt.ui.page_values import ErrorText, words_of_bad_call, words_of_failure, words_of_value

_NO_RESULT_YET = (NOT_RUN, NO_RESULT, WAITS)
"""What an agent's history says of calls whose results are to come."""


@dataclass
class CallPart:
    """A call on the page: with its result, with what it waits for, or with neither while it runs."""

    page_id: str
    name: str
    input: Any
    output: Any = None
    failure: str | None = None
    denial: str | None = None
    state: str = "running"  # or: done, failed, denied, waiting
    requests: list[Any] = field(default_factory=list[Any])


Part = str | CallPart
"""A text, or a call."""


@dataclass
class ShownTurn:
    """A message of the user, and the parts of the answer."""

    turn: ChatTurn
    message_id: str
    parts: list[Part]

    @property
    def answer_id(self) -> str:
        """The id of the assistant's message."""
        return answer_id(self.message_id)


def answer_id(message_id: str) -> str:
    """Return the id of the assistant's message that answers a message."""
    return f"{message_id}-answer"


def earlier_ids(chat: Chat) -> PageIds:
    """Return the ids on the page of the calls that a chat has, but for those that wait."""
    ids = PageIds()
    for turn in chat.turns:
        turn_ids = TurnIds(turn, ids)
        for call in turn.calls():
            turn_ids.of_call(call)
        for call in turn.other_calls:
            ids.take(call.call_id, call.page_id)
    return ids


class TurnIds:
    """The ids of the calls of one turn: those that its stream wrote, and those that follow from the chat."""

    def __init__(self, turn: ChatTurn, ids: PageIds) -> None:
        self._shown = {call_id: iter(page_ids) for call_id, page_ids in turn.page_ids.items()}
        self._ids = ids

    def of_call(self, call: Any) -> str:
        """Return the id of the call that comes next."""
        page_id = None
        if not isinstance(call, InvalidToolCall):
            page_id = next(self._shown.get(call.id, iter(())), None)
        if page_id is None:
            page_id = self._ids.begin(call.id)
            self._ids.end(call.id)
        else:
            self._ids.take(call.id, page_id)
        return page_id


class ShownChat:
    """A chat as a page shows it."""

    def __init__(self, chat: Chat, outputs: list[str] | None, error_text: ErrorText) -> None:
        self._outputs = outputs
        self._error_text = error_text
        self._ids = PageIds()
        self._is_running = chat.is_running()
        message_ids = PageIds()  # a page that edits a message sends its id again
        self.turns = [
            ShownTurn(turn, message_ids.begin(turn.message_id), self._parts_of(turn)) for turn in chat.turns
        ]
        error = chat.error()
        self.requests: list[Any] = []
        if error is not None and self.turns:
            self._add_waiting_turn(error, chat)

    def _parts_of(self, turn: ChatTurn) -> list[Part]:
        parts: list[Part] = []
        self._turn_ids = TurnIds(turn, self._ids)
        for event in turn.events:
            for round_ in rounds([event]):
                if round_.text:
                    parts.append(round_.text)
                parts += [
                    self._part(turn, call, result) for call, result in round_.pairs if call.name != SUBMIT
                ]
            if event is turn.events[-1]:
                parts += map(self._other_part, turn.other_calls)
            parts += self._output_texts(event, turn)
        if not turn.events:
            parts += map(self._other_part, turn.other_calls)
        return parts

    def _other_part(self, call: OtherCall) -> CallPart:
        """Return a call that the history does not have."""
        self._ids.take(call.call_id, call.page_id)
        part = CallPart(call.page_id, call.name, jsonable(call.args))
        result = call.result
        if result is None and not self._is_running:
            result = ToolResult(call_id=call.call_id, name=call.name, value=NO_RESULT, is_error=True)
        if result is not None:
            self._show_result(part, result)
        return part

    def _output_texts(self, event: Json, turn: ChatTurn) -> Iterator[str]:
        """Yield the texts of an event's outputs; of a program without a signature, all but the message."""
        for name in event if self._outputs is None else self._outputs:
            value = event.get(name)
            if isinstance(value, str) and value and (self._outputs is not None or value != turn.text):
                yield value

    def _part(self, turn: ChatTurn, call: Any, result: ToolResult) -> CallPart:
        page_id = self._turn_ids.of_call(call)
        part = CallPart(page_id, call.name or "unnamed", jsonable(getattr(call, "args", {})))
        self._finish(part, call, result, turn)
        return part

    def _finish(self, part: CallPart, call: Any, result: ToolResult, turn: ChatTurn) -> None:
        """Put the result of a call into its part."""
        if isinstance(call, InvalidToolCall):
            part.input = call.arguments
            part.failure = words_of_bad_call(call)
            part.state = "failed"
        elif part.page_id in turn.denied:
            part.denial = turn.denied[part.page_id] or words_of_value(result.value)
            part.state = "denied"
        elif self._is_running and result.is_error and result.value in _NO_RESULT_YET:
            part.state = "running"
        else:
            kind = result.error_type or turn.error_types.get(part.page_id)
            self._show_result(part, result.model_copy(update={"error_type": kind}))

    def _show_result(self, part: CallPart, result: ToolResult) -> None:
        if result.is_error:
            part.failure = words_of_failure(result, self._error_text)
            part.state = "failed"
        else:
            part.output = jsonable(result.value)
            part.state = "done"

    def _add_waiting_turn(self, error: InputNeeded, chat: Chat) -> None:
        """Add the turn that waits, or whose decisions are being carried out."""
        shown = self.turns[-1]
        results = {result.call_id: result for result in error.results}
        if chat.run is not None:
            results |= {result.call_id: result for result in chat.run.results}
        if error.calls.text:
            shown.parts.append(error.calls.text)
        self.requests = [] if self._is_running else [*error.requests]
        for call in error.calls.in_order():
            if call.name == SUBMIT:
                continue
            part = CallPart(
                chat.page_id_of(call), call.name or "unnamed", jsonable(getattr(call, "args", {}))
            )
            part.requests = [request for request in self.requests if request.call.id == call.id]
            for request in error.requests:
                if request.call.id == call.id and request.kind != "answer":
                    part.input = jsonable(request.call.args)
            if isinstance(call, InvalidToolCall):
                self._finish(part, call, ToolResult.unanswered(call), shown.turn)
            elif call.id in results:
                self._finish(part, call, results[call.id], shown.turn)
            elif part.requests:
                part.state = "waiting"
            shown.parts.append(part)


def ai_sdk_messages(shown_chat: ShownChat) -> list[Json]:
    """Return a chat as messages of `useChat`."""
    messages: list[Json] = []
    for shown in shown_chat.turns:
        text = {"type": "text", "text": shown.turn.text}
        messages.append({"id": shown.message_id, "role": "user", "parts": [text]})
        parts = [row for part in shown.parts for row in _ai_sdk_parts(part)]
        if parts:
            messages.append({"id": shown.answer_id, "role": "assistant", "parts": parts})
    return messages


def _ai_sdk_parts(part: Part) -> Iterator[Json]:
    if isinstance(part, str):
        yield {"type": "text", "text": part, "state": "done"}
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
        messages.append({"id": shown.message_id, "role": "user", "content": shown.turn.text})
        for number, part in enumerate(shown.parts):
            part_id = f"{shown.answer_id}-{number}"
            if isinstance(part, str):
                messages.append({"id": part_id, "role": "assistant", "content": part})
            else:
                messages += _ag_ui_call(part, part_id)
    if shown_chat.requests:
        interrupts = [
            interrupt_of(request, part.page_id)
            for part in shown_chat.turns[-1].parts
            if isinstance(part, CallPart)
            for request in part.requests
        ]
        content = {"interrupts": interrupts}
        row = {"id": f"{shown_chat.turns[-1].answer_id}-waits", "role": "activity"}
        messages.append({**row, "activityType": "interrupt", "content": content})
    return messages


def _ag_ui_call(part: CallPart, part_id: str) -> Iterator[Json]:
    arguments = part.input if isinstance(part.input, str) else words_of_value(part.input)
    function = {"name": part.name, "arguments": arguments}
    call = {"id": part.page_id, "type": "function", "function": function}
    yield {"id": part_id, "role": "assistant", "toolCalls": [call]}
    result: Json = {"id": f"{part.page_id}-result", "role": "tool", "toolCallId": part.page_id}
    if part.state == "done":
        yield {**result, "content": words_of_value(part.output)}
    elif part.state in {"failed", "denied"}:
        words = part.failure or part.denial
        yield {**result, "content": words, "error": words}
