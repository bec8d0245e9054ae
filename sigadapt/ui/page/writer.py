"""Write the events of a run as rows of a page's protocol: what both protocols have in common.

Rules:

 a. Writing does not raise. `error_text` says what the page reads of an error; by default, its type, because
    the message may hold what the user of the page must not read. So it is for tools that failed.
 b. What runs inside of a tool is not written; the tool's result is.
 c. The page shows what will run: who is asked about a call sees its arguments with those that have defaults.
 d. The page shows what was output: where a program replaced a text that streamed, or no text streamed, the
    value of the field is written at the end.
 e. Each call has an id of its own (`page_ids.py`), which its approval and its result name.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from sigadapt.runs import events as run
from sigadapt.runs.events import Event
from sigadapt.runs.watching import jsonable, waits_of
from sigadapt.schemas.json_values import Json, is_object
from sigadapt.signatures.calls import InvalidToolCall, ToolCall
from sigadapt.signatures.tool_results.tool_output import program_outputs
from sigadapt.ui.page.page_ids import PageIds
from sigadapt.ui.page.page_values import (
    ErrorText,
    without_nan,
    words_of_bad_call,
    words_of_error,
    words_of_failure,
    words_of_value,
)
from sigadapt.ui.page.shown_texts import ShownTexts

Rows = Iterator[Json]
Phase = Literal["start", "delta", "end"]  # of a text
_NEVER_READY = "The call ended before it was whole."


@dataclass
class ShownCall:
    """A call on the page."""

    page_id: str
    call_id: str
    name: str
    state: Literal["begun", "ready", "bad"] = "begun"
    arguments: str = ""  # the pieces that were written
    input: Any = None  # the arguments that the page shows


_Kind = Literal["text", "reasoning"]


@dataclass(frozen=True)
class _OpenText:
    """A text that is being written: an output field's or thinking, of one step."""

    kind: _Kind
    field: str | None
    step: int | None


class Record:
    """Takes what a writer has put on the page, for those who look later. This one forgets it."""

    def text(self, text_id: str, text: str) -> None:
        """Take a text that is whole."""

    def call(self, call: ShownCall, bad: str | None = None) -> None:
        """Take a call, with its input, or with what is wrong with it."""

    def result(self, page_id: str, result: Any, denial: str | None) -> None:
        """Take the result of a call."""

    def unsaid(self, text_ids: list[str]) -> None:
        """Take the ids of texts that the program has put something else out for."""


@dataclass(frozen=True)
class _WrittenText:
    """A text on the page, whole."""

    id: str
    field: str | None
    step: int | None
    text: str


class Writer:
    """What both protocols have in common: one text is open at a time, and a call begins once."""

    closing_texts: tuple[str, ...] = ()

    def __init__(self, error_text: ErrorText) -> None:
        self.error_text = error_text
        self.record = Record()
        self.message_ids: dict[str, str] = {}
        """By the ids of calls on the page: the messages of the page that hold their results already."""
        self.prefix = ""
        """What the ids of texts begin with: the number of the run in the log of its chat."""
        self.shown_texts: ShownTexts | None = None
        """Which texts are written while they stream; None for all."""
        self.differs = False
        """Whether the page has what it would not have after a reload: a stream takes nothing back."""
        self.args_of: Callable[[run.CallReady, ToolCall], Any] = _args_of
        """What the page shows of the arguments of a good call."""
        self._ids = PageIds()
        self._texts = 0
        self._block: _OpenText | None = None
        self._block_pieces: list[str] = []
        self._written: list[_WrittenText] = []
        self._echo: tuple[_OpenText, str] | None = None  # an output that may be what was said before
        self._call_steps: set[int | None] = set()  # the numbers of steps with calls
        self._streaming: dict[int, ShownCall | None] = {}  # by index; None where the id is another call's
        self._ready: dict[str, ShownCall] = {}  # by the call's id: those of the step
        self._step_ids: set[str] = set()  # the ids of the step's calls
        self._step_number: int | None = None
        self._calls: dict[str, ShownCall] = {}  # by the id on the page
        self._going_on: dict[str, ShownCall] = {}  # calls that waited, by their ids
        self._denied: set[str] = set()  # the ids of calls that a person rejected
        self._has_ended = False

    def know_earlier_calls(self, ids: PageIds) -> None:
        """Count the calls that the chat has before this run."""
        self._ids = ids

    def know_waiting_calls(self, calls: Mapping[str, ShownCall], denied: set[str]) -> None:
        """Take over calls that the page shows already, and those of them that a person rejected."""
        self._denied = set(denied)
        for call_id, call in calls.items():
            self._ids.go_on(call_id, call.page_id)
            self._going_on[call_id] = call
            self._calls[call.page_id] = call

    def page_id_of(self, call_id: str) -> str:
        """Return the id on the page of a call that waits."""
        return self._ids.waiting(call_id) or call_id

    def on(self, event: Event) -> Rows:
        """Return what to write for an event."""
        if event.within is not None:
            return
        if self.shown_texts is not None and not self.shown_texts.shows(event):
            return
        if isinstance(event, run.Ended):
            yield from self.outputs(event.prediction)
            yield from self.end(None)
        elif isinstance(event, run.Failed):
            yield from self.end(event.error)
        else:
            yield from self._step(event.step)
            yield from self._in_step(self._on_step(event))

    def _step(self, number: int) -> Rows:
        """Begin a step, if it has not begun."""
        if number == self._step_number:
            return
        yield from self._never_ready()
        yield from self._end_step()
        self._step_number = number
        self._ready = {}
        self._step_ids = set()

    def _in_step(self, rows: Rows) -> Rows:
        """Yield rows of a step, which begins on the page with the first of them."""
        for row in rows:
            yield from self._begin_step()
            yield row

    def _on_step(self, event: Event) -> Rows:
        if isinstance(event, run.TextDelta):
            if event.is_anew:
                yield from self._close()
                self._written = [_replaced(text, event) for text in self._written]
            yield from self._text(event.text, _OpenText("text", event.field, event.step))
            return
        if isinstance(event, run.ReasoningDelta):
            yield from self._text(event.text, _OpenText("reasoning", None, event.step))
            return
        yield from self._close()
        if isinstance(event, run.CallDelta):
            yield from self._on_delta(event)
        elif isinstance(event, run.CallReady):
            yield from self._on_ready(event, event.call)
        elif isinstance(event, run.ResultReady):
            yield from self._on_result(event)
        elif isinstance(event, run.Confirm):
            for request in event.requests:
                yield from self._request(request, self._call_of(request))
        elif isinstance(event, run.Progress):
            shown: Json = jsonable({"message": event.message, "fraction": event.fraction})
            yield from self._progress(self.page_id_of(event.call_id), shown)
        else:
            yield from self._other_event(event)

    def _on_delta(self, event: run.CallDelta) -> Rows:
        if event.index not in self._streaming:
            if not event.id or not event.name:
                return
            self._streaming[event.index] = None
            if event.id not in self._step_ids:  # else the call gets another id when it is whole
                begun = self._new_call(event.id, event.name)
                self._streaming[event.index] = begun
                yield from self._call_start(begun)
        call = self._streaming[event.index]
        if call is not None and event.arguments:
            call.arguments += event.arguments
            yield from self._call_piece(call.page_id, event.arguments)

    def _new_call(self, call_id: str, name: str) -> ShownCall:
        """Return a call that begins on the page."""
        call = ShownCall(self._ids.begin(call_id), call_id, name)
        self._calls[call.page_id] = call
        self._step_ids.add(call_id)
        self._call_steps.add(self._step_number)
        return call

    def _on_ready(self, event: run.CallReady, call: Any) -> Rows:
        streamed = self._streaming.pop(call.index, None)
        if call.id in self._going_on:
            self._going_on.pop(call.id)
            return
        shown = streamed or self._ready.get(call.id)  # one that was good may turn out bad
        if shown is None:
            shown = self._new_call(call.id, call.name or "unnamed")
            yield from self._call_start(shown)
        self._ready[call.id] = shown
        if not shown.arguments and call.arguments:
            shown.arguments = call.arguments
            yield from self._call_piece(shown.page_id, call.arguments)
        was_begun = shown.state == "begun"
        if isinstance(call, InvalidToolCall):
            shown.state = "bad"
            self._ids.give_up(call.id, shown.page_id)
            shown.input = call.arguments
            self.record.call(shown, words_of_bad_call(call))
            yield from self._bad(shown, call, was_begun=was_begun)
        elif was_begun:
            shown.state = "ready"
            shown.input = self.args_of(event, call)
            self.record.call(shown)
            yield from self._whole(shown)

    def _on_result(self, event: run.ResultReady) -> Rows:
        page_id = self._ids.end(event.call_id)
        self._going_on.pop(event.call_id, None)
        if page_id is None:  # of a bad call, or of one that the page does not have
            return
        denial = words_of_value(event.result.value) if event.call_id in self._denied else None
        self.record.result(page_id, event.result, denial)
        if denial is not None:
            yield from self._denial(page_id, event.result)
        elif event.result.is_error:
            yield from self._failure(page_id, words_of_failure(event.result, self.error_text))
        else:
            yield from self._result(page_id, event.result.value)

    def _call_of(self, request: Any) -> ShownCall:
        """Return the call that a request is about, as the page shows it."""
        page_id = self.page_id_of(request.call.id)
        return self._calls.setdefault(
            page_id, ShownCall(page_id, request.call.id, request.call.name, "ready")
        )

    def outputs(self, prediction: Any) -> Rows:
        """Write what is left of an answer. `end` follows."""
        yield from self.close()
        outputs = program_outputs(prediction)
        yield from self._in_step(self._rest_of_outputs(outputs if is_object(outputs) else {}))

    def close(self) -> Rows:
        """End the text and the calls that have begun."""
        yield from self._close()
        yield from self._never_ready()

    def _rest_of_outputs(self, outputs: Json) -> Rows:
        """Write what was output and is not on the page, and record which texts were not output."""
        said: set[str] = set()
        for name, value in outputs.items():
            if not isinstance(value, str) or not value.strip():
                continue
            texts = self._texts_of(name, value.strip())
            said.update(text.id for text in texts)
            rest = value.strip()[len(_text_of(texts)) :] if texts else value.strip()
            if rest:
                yield from self._text(rest, _OpenText("text", name, None))
                yield from self._close()
                said.add(self._written[-1].id)
        unsaid = [text.id for text in self._written if text.id not in said and self._is_output(text, outputs)]
        if unsaid:
            self.differs = True
            self.record.unsaid(unsaid)

    def _texts_of(self, name: str, value: str) -> list[_WrittenText]:
        """Return the texts of a step that are what an output begins with; its own, or of another name."""
        groups: dict[tuple[str | None, int | None], list[_WrittenText]] = {}
        for text in self._written:
            groups.setdefault((text.field, text.step), []).append(text)
        own = [texts for (field, _), texts in groups.items() if field == name]
        if own and value.startswith(_text_of(own[-1])):
            return own[-1]
        same = [texts for texts in groups.values() if _text_of(texts) == value]
        return same[-1] if same else []

    def _is_output(self, text: _WrittenText, outputs: Json) -> bool:
        """Return whether a text is that of an output, not of what is said beside calls or shown by name."""
        if text.field is None or text.step in self._call_steps:
            return False
        if self.shown_texts is not None and text.field in self.shown_texts.fields:
            return False
        return isinstance(outputs.get(text.field), str) or text.field not in outputs

    def end(self, error: BaseException | None, *, is_stopped: bool = False) -> Rows:
        """Return what to write at the end, once; a run that waits for a person has not failed."""
        if self._has_ended:
            return
        self._has_ended = True
        yield from self.close()
        if is_stopped:
            yield from self._stop_rows()
        if error is None or waits_of(error):
            yield from self._end(None)
        else:
            yield from self._end(words_of_error(error, self.error_text))

    @property
    def last_step(self) -> int:
        """The number of the step that was written last."""
        return 1 if self._step_number is None else self._step_number

    def requests(self, requests: Any) -> Rows:
        """Write what a chat waits for."""
        for request in requests:
            yield from self._step(self.last_step)
            yield from self._in_step(self._request(request, self._call_of(request)))

    def refuse(self, reason: str, requests: Any = ()) -> Rows:
        """Return all rows of a stream that says only why nothing was done, and what the chat waits for."""
        yield from self.begin()
        yield from self.requests(requests)
        yield from self._end(reason)

    def _text(self, text: str, block: _OpenText) -> Rows:
        """Write a piece of a text, but hold back an output as long as it repeats the words before it."""
        if not text:
            return
        echo = self._echo
        if echo is not None and echo[0] == block:
            text = echo[1] + text
        elif self._block == block:
            yield from self._new_text(text, block)
            return
        else:
            yield from self._close()
        self._echo = (block, text) if self._repeats(text, block) else None
        if self._echo is None:
            yield from self._new_text(text, block)

    def _repeats(self, text: str, block: _OpenText) -> bool:
        """Return whether an output begins as the words that an earlier step ended with, without a call."""
        said = self._written[-1] if self._written else None
        if said is None or block.kind != "text" or block.field is None or said.field is not None:
            return False
        is_earlier = said.step != block.step and said.step not in self._call_steps
        return is_earlier and said.text.strip().startswith(text.strip())

    def _new_text(self, text: str, block: _OpenText) -> Rows:
        if self._block != block:
            yield from self._close()
            self._block = block
            self._block_pieces = []
            self._texts += 1
            yield from self._words("start")
        self._block_pieces.append(text)
        yield from self._words("delta", text)

    def _close(self) -> Rows:
        if self._echo is not None:
            echo, text = self._echo
            self._echo = None
            if text.strip() != self._written[-1].text.strip():
                yield from self._new_text(text, echo)
        block = self._block
        if block is None:
            return
        yield from self._words("end")
        if block.kind == "text":
            text = "".join(self._block_pieces)
            self._written.append(_WrittenText(self.text_id, block.field, block.step, text))
            self.record.text(self.text_id, text)
        self._block = None

    @property
    def text_id(self) -> str:
        """The id of the text that is open."""
        return f"{self.prefix}-{self._texts}"

    def _never_ready(self) -> Rows:
        """End the calls that began and never were whole."""
        streaming = [call for call in self._streaming.values() if call is not None]
        self._streaming = {}
        for call in streaming:
            call.state = "bad"
            self._ids.give_up(call.call_id, call.page_id)
            call.input = call.arguments
            self.record.call(call, _NEVER_READY)
            yield from self._incomplete_call(call, _NEVER_READY)

    if TYPE_CHECKING:  # what each protocol writes

        def begin(self) -> Rows:
            """Return what begins every stream."""
            ...

        def _begin_step(self) -> Rows: ...
        def _end_step(self) -> Rows: ...
        def _words(self, phase: Phase, text: str = "") -> Rows: ...
        def _call_start(self, call: ShownCall) -> Rows: ...
        def _call_piece(self, page_id: str, text: str) -> Rows: ...
        def _whole(self, call: ShownCall) -> Rows: ...
        def _bad(self, shown: ShownCall, call: InvalidToolCall, *, was_begun: bool) -> Rows: ...
        def _incomplete_call(self, call: ShownCall, reason: str) -> Rows: ...
        def _result(self, page_id: str, value: Any) -> Rows: ...
        def _failure(self, page_id: str, words: str) -> Rows: ...
        def _denial(self, page_id: str, result: Any) -> Rows: ...
        def _request(self, request: Any, call: ShownCall) -> Rows: ...
        def _progress(self, page_id: str, shown: Json) -> Rows: ...
        def _other_event(self, event: Event) -> Rows: ...
        def _stop_rows(self) -> Rows: ...
        def _end(self, error: str | None) -> Rows: ...


def _args_of(_: run.CallReady, call: ToolCall) -> Any:
    return jsonable(call.args)


def _replaced(text: _WrittenText, event: run.TextDelta) -> _WrittenText:
    """Return a text of a field that begins anew: of an agent's no more the field's, else said beside it."""
    if (text.field, text.step) != (event.field, event.step):
        return text
    is_agents = event.origin is not None and event.origin.agent is not None
    return replace(text, step=None) if is_agents else replace(text, field=None)


def _text_of(texts: list[_WrittenText]) -> str:
    return "".join(text.text for text in texts).strip()


def row_text(row: Json) -> str:
    """Return a row as a server-sent event."""
    try:
        text = json.dumps(row, separators=(",", ":"), allow_nan=False)
    except ValueError:  # no page reads NaN
        text = json.dumps(without_nan(row), separators=(",", ":"))
    return f"data: {text}\n\n"


def run_texts(writer: Writer, events: Any) -> Any:
    """Return the texts of a run; an async iterator for async events."""
    return _texts_later(writer, events) if hasattr(events, "__aiter__") else _texts(writer, events)


async def _texts_later(writer: Writer, events: Any) -> AsyncIterator[str]:
    for row in writer.begin():
        yield row_text(row)
    try:
        async for event in events:
            for row in writer.on(event):
                yield row_text(row)
    except Exception as error:  # noqa: BLE001  (written, if `Failed` has not written it)
        for row in writer.end(error):
            yield row_text(row)
    finally:
        if hasattr(events, "aclose"):
            await events.aclose()
    for text in writer.closing_texts:
        yield text


def _texts(writer: Writer, events: Any) -> Iterator[str]:
    yield from map(row_text, writer.begin())
    try:
        for event in events:
            yield from map(row_text, writer.on(event))
    except Exception as error:  # noqa: BLE001  (as above)
        yield from map(row_text, writer.end(error))
    finally:
        if hasattr(events, "close"):
            events.close()
    yield from writer.closing_texts
