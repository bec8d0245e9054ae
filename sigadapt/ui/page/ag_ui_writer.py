"""Write a run as the events of AG-UI: https://docs.ag-ui.com/concepts/events."""

from typing import Any

from pydantic_core import from_json

from sigadapt.runs import events as run
from sigadapt.runs.events import Event
from sigadapt.runs.watching import jsonable
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.calls import InvalidToolCall
from sigadapt.ui.page.page_values import (
    ErrorText,
    shown_file,
    shown_source,
    words_of_bad_call,
    words_of_value,
)
from sigadapt.ui.page.writer import Phase, Rows, ShownCall, Writer

_PHASES = {"start": "START", "delta": "CONTENT", "end": "END"}
APPROVAL_SCHEMA: Json = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
"""What a page answers to a request for approval."""
_REASONS = {"approval": "confirmation", "answer": "input_required", "result": "result_required"}


class AgUiWriter(Writer):
    """Writes a run for AG-UI."""

    def __init__(self, error_text: ErrorText, thread_id: str, run_id: str) -> None:
        super().__init__(error_text)
        self._run = {"threadId": thread_id, "runId": run_id}
        self._interrupts: list[Json] = []
        self.prefix = run_id

    def begin(self) -> Rows:
        """Return what begins every stream."""
        yield {"type": "RUN_STARTED", **self._run}

    def snapshot(self, messages: list[Json], asked: Any, error: str | None = None) -> Rows:
        """Return all rows of a stream that writes a chat as it is, and what it waits for.

        Args:
            messages: the chat.
            asked: its requests, each with the id of its call on the page.
            error: why a message was not taken.
        """
        yield from self.begin()
        yield {"type": "MESSAGES_SNAPSHOT", "messages": messages}
        if error is not None:
            yield {"type": "CUSTOM", "name": "Refused", "value": error}
        yield from self.finish(asked)

    def finish(self, asked: Any) -> Rows:
        """End a stream with what the chat waits for."""
        self._interrupts = [interrupt_of(request, page_id) for request, page_id in asked]
        yield from self._end(None)

    def _begin_step(self) -> Rows:
        yield from ()

    def _end_step(self) -> Rows:
        yield from ()

    def _words(self, phase: Phase, text: str = "") -> Rows:
        is_text = self._block is not None and self._block.kind == "text"
        kind = "TEXT_MESSAGE" if is_text else "REASONING_MESSAGE"
        message = {"messageId": self.text_id}
        if phase == "start" and not is_text:
            yield {"type": "REASONING_START", **message}
        row = {"type": f"{kind}_{_PHASES[phase]}", **message}
        if phase == "start":
            row["role"] = "assistant" if is_text else "reasoning"
        elif phase == "delta":
            row["delta"] = text
        yield row
        if phase == "end" and not is_text:
            yield {"type": "REASONING_END", **message}

    def _call_start(self, call: ShownCall) -> Rows:
        yield {"type": "TOOL_CALL_START", "toolCallId": call.page_id, "toolCallName": call.name}

    def _call_piece(self, page_id: str, text: str) -> Rows:
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": page_id, "delta": text}

    def _whole(self, call: ShownCall) -> Rows:
        if call.state == "ready" and not _is_whole(call):
            self.differs = True
        yield {"type": "TOOL_CALL_END", "toolCallId": call.page_id}

    def _bad(self, shown: ShownCall, call: InvalidToolCall, *, was_begun: bool) -> Rows:
        if was_begun:
            yield from self._whole(shown)
        yield from self._failure(shown.page_id, words_of_bad_call(call))

    def _incomplete_call(self, call: ShownCall, reason: str) -> Rows:
        yield from self._whole(call)
        yield from self._failure(call.page_id, reason)

    def _result(self, page_id: str, value: Any) -> Rows:
        if page_id not in self.message_ids:
            yield self._result_row(page_id, words_of_value(value))

    def _failure(self, page_id: str, words: str) -> Rows:
        yield self._result_row(page_id, words)

    def _denial(self, page_id: str, result: Any) -> Rows:
        yield self._result_row(page_id, words_of_value(result.value))

    def _result_row(self, page_id: str, content: str) -> Json:
        row = {"messageId": f"{page_id}-result", "toolCallId": page_id, "role": "tool"}
        return {"type": "TOOL_CALL_RESULT", **row, "content": content}

    def _request(self, request: Any, call: ShownCall) -> Rows:
        self._interrupts.append(interrupt_of(request, call.page_id))
        yield from ()

    def _progress(self, page_id: str, shown: Json) -> Rows:
        yield {"type": "CUSTOM", "name": "Progress", "value": {**shown, "toolCallId": page_id}}

    def _other_event(self, event: Event) -> Rows:
        if isinstance(event, run.ServerCall):  # AG-UI has no events for these
            yield {"type": "CUSTOM", "name": "ServerCall", "value": jsonable(event.call)}
        elif isinstance(event, run.SourceReady):
            yield {"type": "CUSTOM", "name": "SourceReady", "value": shown_source(event.source)}
        elif isinstance(event, run.FileReady):
            yield {"type": "CUSTOM", "name": "FileReady", "value": shown_file(event.file)}

    def _stop_rows(self) -> Rows:
        yield {"type": "CUSTOM", "name": "Stopped", "value": {}}

    def _end(self, error: str | None) -> Rows:
        if error is not None:
            yield {"type": "RUN_ERROR", "message": error}
            return
        row: Json = {"type": "RUN_FINISHED", **self._run}
        if self._interrupts:
            row["outcome"] = {"type": "interrupt", "interrupts": self._interrupts}
        yield row


def _is_whole(call: ShownCall) -> bool:
    """Return whether the arguments that were written are those that run, with all defaults."""
    try:
        return bool(from_json(call.arguments or "{}") == call.input)
    except ValueError:
        return False


def interrupt_of(request: Any, page_id: str) -> Json:
    """Return a request as an interrupt, which a page answers with what fits its `responseSchema`."""
    kind = getattr(request, "kind", "approval")
    metadata: Json = {"toolName": request.call.name, "input": jsonable(request.call.args)}
    interrupt: Json = {"id": request.id, "reason": _REASONS[kind], "message": request.hint}
    interrupt |= {"toolCallId": page_id, "metadata": metadata}
    if kind == "approval":
        interrupt["responseSchema"] = APPROVAL_SCHEMA
    elif kind == "answer":
        interrupt["responseSchema"] = request.schema or {}
        if request.payload is not None:
            metadata["payload"] = jsonable(request.payload)
    elif request.pending is not None:
        metadata["pending"] = jsonable(request.pending)
    return interrupt
