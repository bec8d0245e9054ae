"""Write a run as the UI message stream of the AI SDK, which `useChat` reads.

https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol
"""

from typing import Any, Protocol

from sigadapt.runs import events as run
from sigadapt.runs.events import Event
from sigadapt.runs.watching import jsonable
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.calls import InvalidToolCall
from sigadapt.ui.page.page_values import (
    UNKNOWN_TYPE,
    ErrorText,
    address_of_file,
    safe_link,
    safe_media_type,
    shown_file,
    words_of_bad_call,
)
from sigadapt.ui.page.writer import Phase, Rows, ShownCall, Writer

ASK = "ask"
"""The name of the tool that a page shows for a question: `addToolOutput` answers it."""


class AiSdkWriter(Writer):
    """Writes a run for `useChat`."""

    closing_texts = ("data: [DONE]\n\n",)

    def __init__(self, error_text: ErrorText, message_id: str) -> None:
        super().__init__(error_text)
        self.message_id = message_id
        self._is_in_step = False
        self._server_calls = 0  # calls of the provider's tools

    def begin(self) -> Rows:
        """Return what begins every stream."""
        yield {"type": "start", "messageId": self.message_id}

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

    def _call_start(self, call: ShownCall) -> Rows:
        yield {"type": "tool-input-start", **tool_names(call)}

    def _call_piece(self, page_id: str, text: str) -> Rows:
        yield {"type": "tool-input-delta", "toolCallId": page_id, "inputTextDelta": text}

    def _whole(self, call: ShownCall) -> Rows:
        yield {"type": "tool-input-available", **tool_names(call), "input": call.input}

    def _bad(self, shown: ShownCall, call: InvalidToolCall, *, was_begun: bool) -> Rows:
        error = {"input": call.arguments, "errorText": words_of_bad_call(call)}
        yield {"type": "tool-input-error", **tool_names(shown), **error}

    def _incomplete_call(self, call: ShownCall, reason: str) -> Rows:
        yield {"type": "tool-input-error", **tool_names(call), "input": call.arguments, "errorText": reason}

    def _result(self, page_id: str, value: Any) -> Rows:
        row = {"type": "tool-output-available", "toolCallId": page_id, "dynamic": True}
        yield {**row, "output": jsonable(value)}

    def _failure(self, page_id: str, words: str) -> Rows:
        yield {"type": "tool-output-error", "toolCallId": page_id, "dynamic": True, "errorText": words}

    def _denial(self, page_id: str, result: Any) -> Rows:
        yield {"type": "tool-output-denied", "toolCallId": page_id}

    def _request(self, request: Any, call: ShownCall) -> Rows:
        args = jsonable(request.call.args)
        if getattr(request, "kind", "approval") != "answer" and call.input != args:
            call.input = args  # with the arguments that have defaults, which run too
            yield from self._whole(call)
        yield from request_rows(request, call.page_id)

    def _progress(self, page_id: str, shown: Json) -> Rows:
        yield {"type": "data-progress", "id": page_id, "data": {**shown, "toolCallId": page_id}}

    def _other_event(self, event: Event) -> Rows:
        if isinstance(event, run.ServerCall):
            yield from self._server_call(event.call)
        elif isinstance(event, run.SourceReady):
            yield _source_row(event.source)
        elif isinstance(event, run.FileReady):
            yield _file_row(event.file)

    def _server_call(self, call: Any) -> Rows:
        self._server_calls += 1
        call_id = call.id or f"server-{self._server_calls}"
        page_id = self._ids.begin(call_id)
        self._ids.end(call_id)
        row: Json = {"toolCallId": page_id, "dynamic": True, "providerExecuted": True}
        described = {"toolName": call.name, "input": jsonable(call.input)}
        yield {"type": "tool-input-available", **row, **described}
        if call.status == "completed":
            yield {"type": "tool-output-available", **row, "output": None}
        elif call.status == "failed":
            yield {"type": "tool-output-error", **row, "errorText": f"{call.name} failed"}

    def _stop_rows(self) -> Rows:
        yield {"type": "data-stopped", "data": {}}

    def _end(self, error: str | None) -> Rows:
        yield from self._end_step()
        if error is not None:
            yield {"type": "error", "errorText": error}
        yield {"type": "finish"}


def request_rows(request: Any, page_id: str) -> Rows:
    """Return the rows of a request about a call. A result from elsewhere has none: the call waits for it."""
    kind = getattr(request, "kind", "approval")
    if kind == "approval":
        row = {"type": "tool-approval-request", "approvalId": request.id, "toolCallId": page_id}
        yield {**row, "approvalDescriptor": {"hint": request.hint}}
    elif kind == "answer":
        row = {"toolCallId": request.id, "toolName": ASK, "dynamic": True}
        yield {"type": "tool-input-available", **row, "input": question_of(request)}


def question_of(request: Any) -> Json:
    """Return what a tool asks, as the input of the `ask` that a page shows."""
    question: Json = {"question": request.hint, "schema": request.schema}
    if request.payload is not None:
        question["payload"] = jsonable(request.payload)
    return question


class _NamedCall(Protocol):
    @property
    def page_id(self) -> str: ...

    @property
    def name(self) -> str: ...


def tool_names(call: _NamedCall) -> Json:
    """Return the members that name a call in a row that begins it or has its input."""
    return {"toolCallId": call.page_id, "toolName": call.name, "dynamic": True}


def _source_row(source: Any) -> Json:
    title = source.title or source.id or "untitled"
    link = safe_link(source.url)
    if link is not None:
        return {"type": "source-url", "sourceId": link, "url": link, "title": title}
    row = {"type": "source-document", "mediaType": UNKNOWN_TYPE}
    return {**row, "sourceId": source.id or title, "title": title}


def _file_row(file: Any) -> Json:
    address = address_of_file(file)
    if address is None:
        return {"type": "data-file", "data": shown_file(file)}
    return {"type": "file", "url": address, "mediaType": safe_media_type(file.media_type)}
