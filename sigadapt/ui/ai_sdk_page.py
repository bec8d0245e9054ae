"""A page with `useChat` of the AI SDK: the UI message stream, and messages for after a reload.

https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol
"""

from collections.abc import Iterator
from typing import Any

from sigadapt.json_values import Json
from sigadapt.runs import events as run
from sigadapt.runs.events import Event
from sigadapt.runs.watching import jsonable
from sigadapt.ui.log.chat import Chat, TextPart
from sigadapt.ui.page import Page, PageCall, PagePart, ShownChat
from sigadapt.ui.page_requests import PageFile, PageRequest
from sigadapt.ui.page_values import (
    UNKNOWN_TYPE,
    ErrorText,
    address_of_file,
    safe_link,
    safe_media_type,
    shown_file,
)
from sigadapt.ui.writer import Phase, Rows, ShownCall

ASK = "ask"
"""The name of the tool that a page shows for a question: `addToolOutput` answers it."""


class AiSdkPage(Page):
    """A page with `useChat`."""

    closing_texts = ("data: [DONE]\n\n",)
    shows_last_turn_alone = True

    def __init__(self, error_text: ErrorText, request: PageRequest) -> None:
        super().__init__(error_text, request)
        self._message_id = request.message_id or ""
        self._part_number = 0
        self._is_in_step = False
        self._server_calls = 0  # calls of the provider's tools

    def begin(self) -> Rows:
        """Return what begins every stream."""
        yield {"type": "start", "messageId": self._message_id}

    def _begin_step(self) -> Rows:
        if not self._is_in_step:
            self._is_in_step = True
            yield {"type": "start-step"}

    def _end_step(self) -> Rows:
        yield from self._close()
        if self._is_in_step:
            self._is_in_step = False
            yield {"type": "finish-step"}

    def _words(self, phase: Phase, text: str = "") -> Rows:
        kind = self._block.kind if self._block is not None else "text"
        row: Json = {"type": f"{kind}-{phase}", "id": f"text-{self._texts}"}
        if phase == "delta":
            row["delta"] = text
        yield row

    def _call_start(self, call: ShownCall | PageCall) -> Rows:
        yield {"type": "tool-input-start", **_names(call)}

    def _call_piece(self, page_id: str, text: str) -> Rows:
        yield {"type": "tool-input-delta", "toolCallId": page_id, "inputTextDelta": text}

    def _whole(self, call: ShownCall | PageCall) -> Rows:
        yield {"type": "tool-input-available", **_names(call), "input": call.input}

    def _bad(self, call: ShownCall, reason: str, *, was_begun: bool) -> Rows:
        yield {"type": "tool-input-error", **_names(call), "input": call.input, "errorText": reason}

    def _result(self, page_id: str, value: Any) -> Rows:
        row = {"type": "tool-output-available", "toolCallId": page_id, "dynamic": True}
        yield {**row, "output": jsonable(value)}

    def _failure(self, page_id: str, words: str) -> Rows:
        yield {"type": "tool-output-error", "toolCallId": page_id, "dynamic": True, "errorText": words}

    def _denial(self, page_id: str, words: str) -> Rows:
        yield {"type": "tool-output-denied", "toolCallId": page_id}

    def _request(self, request: Any, call: ShownCall) -> Rows:
        args = jsonable(request.call.args)
        if getattr(request, "kind", "approval") != "answer" and call.input != args:
            call.input = args  # with the arguments that have defaults, which run too
            yield from self._whole(call)
        yield from _request_rows(request, call.page_id)

    def _progress(self, page_id: str, shown: Json) -> Rows:
        yield {"type": "data-progress", "id": page_id, "data": {**shown, "toolCallId": page_id}}

    def _other_event(self, event: Event) -> Rows:
        if isinstance(event, run.ServerCall):
            yield from self._server_call(event.call)
        elif isinstance(event, run.SourceReady):
            yield _source_row(event.source)
        elif isinstance(event, run.FileReady):
            address = address_of_file(event.file)
            if address is None:
                yield {"type": "data-file", "data": shown_file(event.file)}
            else:
                media_type = safe_media_type(event.file.media_type)
                yield {"type": "file", "url": address, "mediaType": media_type}

    def _server_call(self, call: Any) -> Rows:
        self._server_calls += 1
        call_id = call.id or f"server-{self._server_calls}"
        page_id = self.ids.begin(call_id)
        self.ids.end(call_id)
        row: Json = {"toolCallId": page_id, "dynamic": True, "providerExecuted": True}
        described = {"toolName": call.name, "input": jsonable(call.input)}
        yield {"type": "tool-input-available", **row, **described}
        if call.status == "completed":
            yield {"type": "tool-output-available", **row, "output": None}
        elif call.status == "failed":
            yield {"type": "tool-output-error", **row, "errorText": f"{call.name} failed"}

    def _end(self, error: str | None, *, is_stopped: bool = False) -> Rows:
        if is_stopped:
            yield {"type": "data-stopped", "data": {}}
        yield from self._end_step()
        if error is not None:
            yield {"type": "error", "errorText": error}
        yield {"type": "finish"}

    # The chat as it is.

    def begin_answer(self, message_id: str) -> None:
        """Name the message that the answer is, if the page has not named one."""
        self._message_id = self.request.message_id or message_id

    def messages(self, chat: Chat) -> list[Json]:
        """Return a chat as messages of `useChat`. An answer under way is left to `Chats.resume`."""
        messages: list[Json] = []
        for shown in ShownChat(chat, self.error_text, chat.turns).turns:
            asked = [{"type": "text", "text": shown.turn.text}, *map(_file_part, shown.turn.files)]
            messages.append({"id": shown.turn.message_id, "role": "user", "parts": asked})
            parts = [row for part in shown.parts for row in _message_parts(part)]
            if parts and not shown.is_under_way:
                messages.append({"id": shown.turn.answer_id, "role": "assistant", "parts": parts})
        return messages

    def as_it_is(self, chat: Chat) -> Rows:
        """Write the last turn again: of what the page has already, the outcome of calls alone."""
        parts: list[PagePart] = []
        for shown in self.shown(chat).turns:
            parts = shown.parts
            self.begin_answer(shown.turn.answer_id)
        yield from self.begin()
        for part in parts:
            if self._has(part) and isinstance(part, PageCall):
                if part.state == "waiting":  # the button of another tab may have changed the part
                    yield from self._whole(part)
                yield from self.outcome(part)
        for part in parts:
            if not self._has(part):
                yield from self._begin_step()
                yield from self.part(part)
        yield from self._end(None)

    def _has(self, part: PagePart) -> bool:
        if isinstance(part, TextPart):
            return part.text in self.request.shown_texts
        return part.page_id in self.request.shown_calls

    def refuse_request(self, chat: Chat, reason: str) -> Rows:
        """Write why the request was not taken, and what the chat waits for."""
        if self.request.message is not None:
            self.begin_answer(f"{self.request.message.id}-refused")
        return self.refuse(reason, self.shown(chat).requests)

    def _begin_joined(self, chat: Chat) -> Rows:
        [shown] = self.shown(chat).turns  # whose answer the messages leave out
        self.begin_answer(shown.turn.answer_id)
        yield from self.begin()
        yield from self._begin_step()
        for part in shown.parts:
            yield from self.part(part)

    def _end_joined(self, chat: Chat) -> Rows:
        return self._end(None)

    def part(self, part: PagePart) -> Rows:
        """Write a part that the page does not have."""
        if isinstance(part, PageCall):
            yield from self._call_start(part)
            yield from self._whole(part)
            yield from self.outcome(part)
            return
        self._part_number += 1
        text_id = f"text-{self._part_number}"
        yield {"type": "text-start", "id": text_id}
        yield {"type": "text-delta", "id": text_id, "delta": part.text}
        yield {"type": "text-end", "id": text_id}

    def outcome(self, part: PageCall) -> Rows:
        """Write what came of a call that the page has."""
        if part.state == "done":
            yield from self._result(part.page_id, part.output)
        elif part.state == "failed":
            yield from self._failure(part.page_id, part.failure or "")
        elif part.state == "denied":
            yield from self._denial(part.page_id, "")
        for request in part.requests:
            yield from _request_rows(request, part.page_id)


def _request_rows(request: Any, page_id: str) -> Rows:
    """Return the rows of a request about a call. A result from elsewhere has none: the call waits for it."""
    kind = getattr(request, "kind", "approval")
    if kind == "approval":
        row = {"type": "tool-approval-request", "approvalId": request.id, "toolCallId": page_id}
        yield {**row, "approvalDescriptor": {"hint": request.hint}}
    elif kind == "answer":
        row = {"toolCallId": request.id, "toolName": ASK, "dynamic": True}
        yield {"type": "tool-input-available", **row, "input": _question_of(request)}


def _question_of(request: Any) -> Json:
    """Return what a tool asks, as the input of the `ask` that a page shows."""
    question: Json = {"question": request.hint, "schema": request.schema}
    if request.payload is not None:
        question["payload"] = jsonable(request.payload)
    return question


def _names(call: ShownCall | PageCall) -> Json:
    """Return the members that name a call in a row that begins it or has its input."""
    return {"toolCallId": call.page_id, "toolName": call.name, "dynamic": True}


def _source_row(source: Any) -> Json:
    title = source.title or source.id or "untitled"
    link = safe_link(source.url)
    if link is not None:
        return {"type": "source-url", "sourceId": link, "url": link, "title": title}
    row = {"type": "source-document", "mediaType": UNKNOWN_TYPE}
    return {**row, "sourceId": source.id or title, "title": title}


def _file_part(file: PageFile) -> Json:
    """Return a file as a part of the user's message."""
    named = {} if file.name is None else {"filename": file.name}
    return {"type": "file", "mediaType": file.media_type, "url": file.address, **named}


def _message_parts(part: PagePart) -> Iterator[Json]:
    if isinstance(part, TextPart):
        yield {"type": "text", "text": part.text, "state": "done"}
        return
    row: Json = {"type": "dynamic-tool", "toolCallId": part.page_id, "toolName": part.name}
    row["input"] = part.input
    approvals = [request for request in part.requests if request.kind == "approval"]
    if part.state == "done":
        yield {**row, "state": "output-available", "output": part.output}
    elif part.state == "failed":
        yield {**row, "state": "output-error", "errorText": part.failure}
    elif part.state == "denied":
        approval = {"id": part.page_id, "approved": False, "reason": part.failure}
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
            yield {**ask, "state": "input-available", "input": _question_of(request)}
