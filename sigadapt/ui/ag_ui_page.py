"""A page with AG-UI: its events, and its messages: https://docs.ag-ui.com/concepts/events."""

from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from sigadapt.json_values import Json
from sigadapt.runs import events as run
from sigadapt.runs.events import Event
from sigadapt.runs.watching import jsonable
from sigadapt.ui.log.chat import Chat, TextPart
from sigadapt.ui.page import Page, PageCall, PagePart, ShownChat
from sigadapt.ui.page_requests import PageFile, PageRequest
from sigadapt.ui.page_values import ErrorText, shown_file, shown_source, words_of_value
from sigadapt.ui.writer import Phase, Rows, ShownCall

_PHASES = {"start": "START", "delta": "CONTENT", "end": "END"}
APPROVAL_SCHEMA: Json = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
"""What a page answers to a request for approval."""
_REASONS = {"approval": "confirmation", "answer": "input_required", "result": "result_required"}


class AgUiPage(Page):
    """A page with AG-UI."""

    def __init__(self, error_text: ErrorText, request: PageRequest) -> None:
        super().__init__(error_text, request)
        self._run = {"threadId": request.chat_id, "runId": request.run_id}
        self._interrupts: list[Json] = []

    def begin(self) -> Rows:
        """Return what begins every stream."""
        yield {"type": "RUN_STARTED", **self._run}

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

    def _call_start(self, call: ShownCall | PageCall) -> Rows:
        yield {"type": "TOOL_CALL_START", "toolCallId": call.page_id, "toolCallName": call.name}

    def _call_piece(self, page_id: str, text: str) -> Rows:
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": page_id, "delta": text}

    def _whole(self, call: ShownCall) -> Rows:
        self.differs |= call.state == "ready" and not _is_whole(call)
        yield {"type": "TOOL_CALL_END", "toolCallId": call.page_id}

    def _bad(self, call: ShownCall, reason: str, *, was_begun: bool) -> Rows:
        if was_begun:
            yield from self._whole(call)
        yield from self._failure(call.page_id, reason)

    def _result(self, page_id: str, value: Any) -> Rows:
        if page_id not in self.request.result_ids:
            yield _result_row(page_id, f"{page_id}-result", words_of_value(value))

    def _failure(self, page_id: str, words: str) -> Rows:
        yield _result_row(page_id, f"{page_id}-result", words)

    _denial = _failure

    def _request(self, request: Any, call: ShownCall) -> Rows:
        self._interrupts.append(_interrupt_of(request, call.page_id))
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

    def _end(self, error: str | None, *, is_stopped: bool = False) -> Rows:
        if is_stopped:
            yield {"type": "CUSTOM", "name": "Stopped", "value": {}}
        if error is not None:
            yield {"type": "RUN_ERROR", "message": error}
            return
        row: Json = {"type": "RUN_FINISHED", **self._run}
        if self._interrupts:
            row["outcome"] = {"type": "interrupt", "interrupts": self._interrupts}
        yield row

    # The chat as it is.

    def messages(self, chat: Chat) -> list[Json]:
        """Return a chat as messages of AG-UI. What it waits for is an activity with the interrupts."""
        shown_chat = self.shown(chat)
        messages: list[Json] = []
        for shown in shown_chat.turns:
            content: Any = shown.turn.text
            if shown.turn.files:
                content = [{"type": "text", "text": content}, *map(_file_part, shown.turn.files)]
            messages.append({"id": shown.turn.message_id, "role": "user", "content": content})
            for part in shown.parts:
                if isinstance(part, TextPart):
                    messages.append({"id": part.id, "role": "assistant", "content": part.text})
                else:
                    messages += _call_messages(part)
        if shown_chat.requests:
            row: Json = {"id": f"{chat.last.answer_id}-waits", "role": "activity"}
            content = {"interrupts": _interrupts_of(shown_chat)}
            messages.append({**row, "activityType": "interrupt", "content": content})
        return messages

    def as_it_is(self, chat: Chat) -> Rows:
        """Write the whole chat in the place of what the page has, and what it waits for."""
        yield from self._begin_joined(chat)
        yield from self._end_joined(chat)

    def refuse_request(self, chat: Chat, reason: str) -> Rows:
        """Write why the request was not taken, and what the chat waits for."""
        if not self.shown(chat).requests:
            yield from self.refuse(reason)
            return
        yield from self._begin_joined(chat)
        yield {"type": "CUSTOM", "name": "Refused", "value": reason}
        yield from self._end_joined(chat)

    def _begin_joined(self, chat: Chat) -> Rows:
        yield from self.begin()
        yield {"type": "MESSAGES_SNAPSHOT", "messages": self.messages(chat)}

    def _end_joined(self, chat: Chat) -> Rows:
        self._interrupts = _interrupts_of(self.shown(chat))
        yield from self._end(None)

    def part(self, part: PagePart) -> Rows:
        """Write a part that the page does not have."""
        if isinstance(part, PageCall):
            yield from self._call_start(part)
            yield from self._call_piece(part.page_id, words_of_value(part.input))
            yield {"type": "TOOL_CALL_END", "toolCallId": part.page_id}
            yield from self.outcome(part)
            return
        row = {"messageId": part.id}
        yield {"type": "TEXT_MESSAGE_START", **row, "role": "assistant"}
        yield {"type": "TEXT_MESSAGE_CONTENT", **row, "delta": part.text}
        yield {"type": "TEXT_MESSAGE_END", **row}

    def outcome(self, part: PageCall) -> Rows:
        """Write what came of a call that the page has."""
        if part.state == "done":
            yield _result_row(part.page_id, part.result_id, words_of_value(part.output))
        elif part.state in {"failed", "denied"}:
            yield _result_row(part.page_id, part.result_id, part.failure)


def _result_row(page_id: str, message_id: str, content: str | None) -> Json:
    row = {"messageId": message_id, "toolCallId": page_id, "role": "tool"}
    return {"type": "TOOL_CALL_RESULT", **row, "content": content}


def _is_whole(call: ShownCall) -> bool:
    """Return whether the arguments that were written are those that run, with all defaults."""
    try:
        return bool(from_json(call.arguments or "{}") == call.input)
    except ValueError:
        return False


def _interrupts_of(shown_chat: ShownChat) -> list[Json]:
    """Return what a chat waits for."""
    return [_interrupt_of(request, page_id) for request, page_id in shown_chat.asked]


def _interrupt_of(request: Any, page_id: str) -> Json:
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


def _call_messages(part: PageCall) -> Iterator[Json]:
    function = {"name": part.name, "arguments": words_of_value(part.input)}
    call = {"id": part.page_id, "type": "function", "function": function}
    yield {"id": part.page_id, "role": "assistant", "toolCalls": [call]}
    result: Json = {"id": part.result_id, "role": "tool", "toolCallId": part.page_id}
    if part.state == "done":
        yield {**result, "content": words_of_value(part.output)}
    elif part.state in {"failed", "denied"}:
        yield {**result, "content": part.failure, "error": part.failure}


def _file_part(file: PageFile) -> Json:
    """Return a file as a part of the user's message."""
    kind = file.media_type.partition("/")[0]
    source = {"type": "data", "value": file.data, "mimeType": file.media_type}
    return {"type": kind if kind in {"image", "audio", "video"} else "document", "source": source}
