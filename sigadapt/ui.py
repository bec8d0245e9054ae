"""Write the events of a run as the server-sent events that web pages read.

`ai_sdk` writes the UI message stream of the AI SDK (`useChat`), `ag_ui` the events of AG-UI. Both turn
`sigadapt.stream(...)` into an async iterator of texts, and `sigadapt.stream_sync(...)` into an iterator.
Rules:

 a. They do not raise. An error of the run is written as its type, because its message may hold what the user
    of the page must not read. `error_text` writes another text.
 b. What runs inside of a tool is not written; the tool's result is.
 c. An output that did not stream, such as a `Literal`, is written as a text at the end.
"""

import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, overload
from uuid import uuid4

from sigadapt.runs import events as run
from sigadapt.runs.events import Event
from sigadapt.runs.watching import jsonable, waits_of
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.calls import InvalidToolCall
from sigadapt.signatures.tool_results.tool_output import program_outputs

Rows = Iterator[Json]
Phase = Literal["start", "delta", "end"]  # of a text
ErrorText = Callable[[BaseException], str]
_BYTES = "application/octet-stream"

AI_SDK_HEADERS = {"Content-Type": "text/event-stream", "x-vercel-ai-ui-message-stream": "v1"}
"""The headers of a response with what `ai_sdk` writes."""


def _type_of(error: BaseException) -> str:
    return type(error).__name__


@overload
def ai_sdk(
    events: AsyncIterable[Event], *, message_id: str | None = ..., error_text: ErrorText = ...
) -> AsyncIterator[str]: ...
@overload
def ai_sdk(
    events: Iterable[Event], *, message_id: str | None = ..., error_text: ErrorText = ...
) -> Iterator[str]: ...
def ai_sdk(events: Any, *, message_id: str | None = None, error_text: ErrorText = _type_of) -> Any:
    """Write a run for `useChat` of the AI SDK (`ai` 6).

    Args:
        events: what `sigadapt.stream` or `stream_sync` returned.
        message_id: the id of the assistant's message; None for a new one.
        error_text: returns what the page reads of an error; by default, its type.

    Returns:
        The texts to send, with the headers `AI_SDK_HEADERS`. A bad call is a `tool-input-error`, a wait a
        `tool-approval-request` whose `approvalId` is the request's id.

    Example:
        >>> from sigadapt.events import Ended, TextDelta
        >>> events = [TextDelta("Sun", "answer", step=1), Ended(None, step=1)]
        >>> for text in ai_sdk(events, message_id="m1"):
        ...     print(text.strip())
        data: {"type":"start","messageId":"m1"}
        data: {"type":"start-step"}
        data: {"type":"text-start","id":"text-1"}
        data: {"type":"text-delta","id":"text-1","delta":"Sun"}
        data: {"type":"text-end","id":"text-1"}
        data: {"type":"finish-step"}
        data: {"type":"finish"}
        data: [DONE]
    """
    return _run_texts(_AiSdk(error_text, message_id or f"msg_{uuid4().hex}"), events)


@overload
def ag_ui(
    events: AsyncIterable[Event],
    *,
    thread_id: str | None = ...,
    run_id: str | None = ...,
    error_text: ErrorText = ...,
) -> AsyncIterator[str]: ...
@overload
def ag_ui(
    events: Iterable[Event],
    *,
    thread_id: str | None = ...,
    run_id: str | None = ...,
    error_text: ErrorText = ...,
) -> Iterator[str]: ...
def ag_ui(
    events: Any, *, thread_id: str | None = None, run_id: str | None = None, error_text: ErrorText = _type_of
) -> Any:
    """Write a run for AG-UI (`@ag-ui/core` 1).

    Args:
        events: what `sigadapt.stream` or `stream_sync` returned.
        thread_id: the id of the conversation, which the page sent; None for a new one.
        run_id: the id of the run, which the page sent; None for a new one.
        error_text: returns what the page reads of an error; by default, its type.

    Returns:
        The texts to send. A run that waits for a person finishes with an interrupt for each request, under
        the request's id.

    Example:
        >>> from sigadapt.events import Ended
        >>> for text in ag_ui([Ended(None, step=1)], thread_id="t", run_id="r"):
        ...     print(text.strip())
        data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        data: {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
    """
    return _run_texts(_AgUi(error_text, thread_id or uuid4().hex, run_id or uuid4().hex), events)


def _run_texts(writer: "_Writer", events: Any) -> Any:
    return _texts_later(writer, events) if hasattr(events, "__aiter__") else _texts(writer, events)


async def _texts_later(writer: "_Writer", events: Any) -> AsyncIterator[str]:
    for row in writer.begin():
        yield _data(row)
    try:
        async for event in events:
            for row in writer.on(event):
                yield _data(row)
    except Exception as error:  # noqa: BLE001  (written, if `Failed` has not written it)
        for row in writer.end(error):
            yield _data(row)
    finally:
        if hasattr(events, "aclose"):
            await events.aclose()
    for text in writer.closing_texts:
        yield text


def _texts(writer: "_Writer", events: Any) -> Iterator[str]:
    yield from map(_data, writer.begin())
    try:
        for event in events:
            yield from map(_data, writer.on(event))
    except Exception as error:  # noqa: BLE001  (as above)
        yield from map(_data, writer.end(error))
    finally:
        if hasattr(events, "close"):
            events.close()
    yield from writer.closing_texts


def _data(row: Json) -> str:
    return f"data: {json.dumps(row, separators=(',', ':'))}\n\n"


class _Writer:
    """What both forms have in common: one text is open at a time, and a call begins once."""

    closing_texts: tuple[str, ...] = ()

    def __init__(self, error_text: ErrorText) -> None:
        self._error_text = error_text
        self._texts = 0
        self._open: tuple[Any, ...] | None = None  # the text that is being written: kind, field and step
        self._fields_sent: set[str | None] = set()  # the fields whose text was written
        self._calls: dict[str, str] = {}  # those that have begun: `begun`, `written`, `ready` or `bad`
        self._has_ended = False

    def on(self, event: Event) -> Rows:
        """Return what to write for an event."""
        if event.within is not None:
            return
        if isinstance(event, run.Ended):
            outputs: Json = program_outputs(event.prediction) or {}
            for name, value in outputs.items():
                if isinstance(value, str) and value and name not in self._fields_sent:
                    yield from self._text(value, (True, name, None))
            yield from self.end(None)
        elif isinstance(event, run.Failed):
            yield from self.end(event.error)
        else:
            yield from self._step(event.step)
            yield from self._on_step(event)

    def _on_step(self, event: Event) -> Rows:
        if isinstance(event, run.TextDelta):
            self._fields_sent.add(event.field)
            yield from self._text(event.text, (True, event.field, event.step))
            return
        if isinstance(event, run.ReasoningDelta):
            yield from self._text(event.text, (False, None, event.step))
            return
        yield from self._close()
        if isinstance(event, run.CallDelta):
            if event.id and event.name:
                yield from self._call(event.id, event.name, event.arguments)
        elif isinstance(event, run.CallReady):
            call = event.call
            if self._calls.get(call.id, "begun") == "begun":
                yield from self._call(call.id, call.name or "unnamed", call.arguments)
            self._calls[call.id] = "bad" if isinstance(call, InvalidToolCall) else "ready"
            yield from self._ready(call)
        elif not isinstance(event, run.ResultReady):
            yield from self._other_event(event)
        elif self._calls.get(event.call_id, "ready") == "ready":  # told here, or before a person decided
            yield from self._result(event.call_id, event.result)

    def end(self, error: BaseException | None) -> Rows:
        """Return what to write at the end, once; a run that waits for a person has not failed."""
        if self._has_ended:
            return
        self._has_ended = True
        yield from self._close()
        text = None
        if error is not None and not waits_of(error):
            text = self._error_text(error)
        yield from self._end(text)

    def _text(self, text: str, which: tuple[Any, ...]) -> Rows:
        if self._open != which:
            yield from self._close()
            self._open = which
            self._texts += 1
            yield from self._words("start")
        yield from self._words("delta", text)

    def _close(self) -> Rows:
        if self._open is not None:
            yield from self._words("end")
            self._open = None

    def _call(self, call_id: str, name: str, arguments: str) -> Rows:
        """Begin a call, if it has not begun, and write a piece of its arguments."""
        if call_id not in self._calls:
            self._calls[call_id] = "begun"
            yield from self._call_piece(call_id, name=name)
        if arguments and self._calls[call_id] in {"begun", "written"}:
            self._calls[call_id] = "written"
            yield from self._call_piece(call_id, arguments)

    def _step(self, number: int) -> Rows:
        yield from ()

    if TYPE_CHECKING:  # what each form writes

        def begin(self) -> Rows: ...
        def _words(self, phase: Phase, text: str = "") -> Rows: ...
        def _call_piece(self, call_id: str, text: str = "", *, name: str | None = None) -> Rows: ...
        def _ready(self, call: Any) -> Rows: ...
        def _result(self, call_id: str, result: Any) -> Rows: ...
        def _other_event(self, event: Event) -> Rows: ...
        def _end(self, error: str | None) -> Rows: ...


class _AiSdk(_Writer):
    """The UI message stream of the AI SDK (https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol)."""

    closing_texts = ("data: [DONE]\n\n",)

    def __init__(self, error_text: ErrorText, message_id: str) -> None:
        super().__init__(error_text)
        self._message_id = message_id
        self._number: int | None = None  # of the step that is open
        self._server_calls = 0  # calls of the provider's tools

    def begin(self) -> Rows:
        yield {"type": "start", "messageId": self._message_id}

    def _step(self, number: int) -> Rows:
        if number != self._number:
            yield from self._end_step()
            self._number = number
            yield {"type": "start-step"}

    def _end_step(self) -> Rows:
        yield from self._close()
        if self._number is not None:
            yield {"type": "finish-step"}

    def _words(self, phase: Phase, text: str = "") -> Rows:
        kind = "text" if self._open and self._open[0] else "reasoning"
        delta = {"delta": text} if phase == "delta" else {}
        yield {"type": f"{kind}-{phase}", "id": f"text-{self._texts}", **delta}

    def _call_piece(self, call_id: str, text: str = "", *, name: str | None = None) -> Rows:
        if name is not None:
            yield {"type": "tool-input-start", "toolCallId": call_id, "toolName": name, "dynamic": True}
        else:
            yield {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": text}

    def _ready(self, call: Any) -> Rows:
        row: Json = {"toolCallId": call.id, "toolName": call.name or "unnamed", "dynamic": True}
        if isinstance(call, InvalidToolCall):
            yield {"type": "tool-input-error", **row, "input": call.arguments, "errorText": _flaw(call)}
        else:
            yield {"type": "tool-input-available", **row, "input": jsonable(call.args)}

    def _result(self, call_id: str, result: Any) -> Rows:
        row: Json = {"toolCallId": call_id, "dynamic": True}
        if result.is_error:
            yield {"type": "tool-output-error", **row, "errorText": _text_of(result.value)}
        else:
            yield {"type": "tool-output-available", **row, "output": jsonable(result.value)}

    def _other_event(self, event: Event) -> Rows:
        if isinstance(event, run.Confirm):
            for request in event.requests:
                ids = {"approvalId": request.id, "toolCallId": request.call.id}
                yield {"type": "tool-approval-request", **ids}
        elif isinstance(event, run.ServerCall):
            yield from self._server_call(event.call)
        elif isinstance(event, run.SourceReady):
            source = event.source
            title = source.title or source.id or "untitled"
            if source.url:
                yield {"type": "source-url", "sourceId": source.url, "url": source.url, "title": title}
            else:
                kind = {"type": "source-document", "mediaType": _BYTES}
                yield {**kind, "sourceId": source.id or title, "title": title}
        elif isinstance(event, run.FileReady):
            file = event.file
            url = file.url or f"data:{file.media_type};base64,{file.data}"
            if file.url or file.data:
                yield {"type": "file", "url": url, "mediaType": file.media_type or _BYTES}
            else:
                yield {"type": "data-file", "data": file.model_dump(exclude_none=True)}

    def _server_call(self, call: Any) -> Rows:
        self._server_calls += 1
        call_id = call.id or f"server-{self._server_calls}"
        row: Json = {"toolCallId": call_id, "dynamic": True, "providerExecuted": True}
        values = {"toolName": call.name, "input": jsonable(call.input)}
        yield {"type": "tool-input-available", **row, **values}
        if call.status == "completed":
            yield {"type": "tool-output-available", **row, "output": None}
        elif call.status == "failed":
            yield {"type": "tool-output-error", **row, "errorText": f"{call.name} failed"}

    def _end(self, error: str | None) -> Rows:
        yield from self._end_step()
        if error is not None:
            yield {"type": "error", "errorText": error}
        yield {"type": "finish"}


_AG_UI_PHASES = {"start": "START", "delta": "CONTENT", "end": "END"}


class _AgUi(_Writer):
    """The events of AG-UI (https://docs.ag-ui.com/concepts/events)."""

    def __init__(self, error_text: ErrorText, thread_id: str, run_id: str) -> None:
        super().__init__(error_text)
        self._run = {"threadId": thread_id, "runId": run_id}
        self._interrupts: list[Json] = []

    def begin(self) -> Rows:
        yield {"type": "RUN_STARTED", **self._run}

    def _words(self, phase: Phase, text: str = "") -> Rows:
        is_text = bool(self._open and self._open[0])
        kind = "TEXT_MESSAGE" if is_text else "REASONING_MESSAGE"
        message = {"messageId": f"{self._run['runId']}-{self._texts}"}
        if phase == "start" and not is_text:
            yield {"type": "REASONING_START", **message}
        row = {"type": f"{kind}_{_AG_UI_PHASES[phase]}", **message}
        if phase == "start":
            row["role"] = "assistant" if is_text else "reasoning"
        elif phase == "delta":
            row["delta"] = text
        yield row
        if phase == "end" and not is_text:
            yield {"type": "REASONING_END", **message}

    def _call_piece(self, call_id: str, text: str = "", *, name: str | None = None) -> Rows:
        if name is not None:
            yield {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name}
        else:
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": text}

    def _ready(self, call: Any) -> Rows:
        yield {"type": "TOOL_CALL_END", "toolCallId": call.id}
        if isinstance(call, InvalidToolCall):
            yield from self._result(call.id, _flaw(call))

    def _result(self, call_id: str, result: Any) -> Rows:
        content = _text_of(getattr(result, "value", result))
        row: Json = {"messageId": f"{call_id}-result", "toolCallId": call_id, "role": "tool"}
        yield {"type": "TOOL_CALL_RESULT", **row, "content": content}

    def _other_event(self, event: Event) -> Rows:
        if isinstance(event, run.Confirm):
            for request in event.requests:
                row = {"id": request.id, "reason": "confirmation", "message": request.hint}
                self._interrupts.append({**row, "toolCallId": request.call.id})
        for name in ("call", "source", "file"):  # AG-UI has no events for these
            if hasattr(event, name):
                value = jsonable(getattr(event, name))
                yield {"type": "CUSTOM", "name": type(event).__name__, "value": value}

    def _end(self, error: str | None) -> Rows:
        for call_id, state in self._calls.items():
            if state in {"begun", "written"}:
                yield {"type": "TOOL_CALL_END", "toolCallId": call_id}
        if error is not None:
            yield {"type": "RUN_ERROR", "message": error}
            return
        row: Json = {"type": "RUN_FINISHED", **self._run}
        if self._interrupts:
            row["outcome"] = {"type": "interrupt", "interrupts": self._interrupts}
        yield row


def _flaw(call: InvalidToolCall) -> str:
    return f"{call.code}: {call.message}"


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(jsonable(value))
