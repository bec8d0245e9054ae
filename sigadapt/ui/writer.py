"""Write the events of a run as rows of a page's protocol: what both protocols have in common.

Rules:

 a. Writing does not raise. `error_text` says what the page reads of an error; by default, its type, because
    the message may hold what the user of the page must not read. So it is for tools that failed.
 b. What runs inside of a tool is not written; the tool's result is.
 c. The page shows what will run: who is asked about a call sees its arguments with those that have defaults.
 d. The page shows what was output: where a program replaced a text that streamed, or no text streamed, the
    value of the field is written at the end.
 e. Each call has an id of its own (`PageIds`), which its approval and its result name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from sigadapt.json_values import Json, is_object
from sigadapt.runs import events as run
from sigadapt.runs.events import Event
from sigadapt.runs.watching import jsonable, waits_of
from sigadapt.signatures.calls import InvalidToolCall
from sigadapt.signatures.tool_results.tool_output import program_outputs
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.ui.log.chat import PageIds
from sigadapt.ui.page_requests import PageRequest
from sigadapt.ui.page_values import (
    ErrorText,
    words_of_bad_call,
    words_of_error,
    words_of_failure,
    words_of_value,
)
from sigadapt.ui.program import ShownRun

Rows = Iterator[Json]
Phase = Literal["start", "delta", "end"]  # of a text
_NEVER_READY = "The call ended before it was whole."
_REPEATED = "The model sent this call twice. It is run once."


@dataclass
class ShownCall:
    """A call on the page."""

    page_id: str
    call_id: str
    name: str
    state: Literal["begun", "ready", "bad"] = "begun"
    arguments: str = ""  # the pieces that were written
    input: Any = None  # the arguments that the page shows


@dataclass(frozen=True)
class _OpenText:
    """A text that is being written: an output field's or thinking, of one step."""

    kind: Literal["text", "reasoning"]
    field: str | None
    step: int | None


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

    def __init__(self, error_text: ErrorText, request: PageRequest) -> None:
        self.error_text = error_text
        self.request = request
        self.events: list[Json] | None = None
        """What the page shows as events of the chat's log; None where nobody keeps them."""
        self.kept_calls: set[str] = set()
        """The ids on the page of the calls among these events."""
        self.prefix = request.run_id
        """What the ids of texts begin with; in a chat, the number of the run in its log."""
        self.shown_run: ShownRun | None = None
        """Which texts are written while they stream, and the arguments that calls run with; None for all."""
        self.differs = False
        """Whether the page has what it would not have after a reload: a stream takes nothing back."""
        self.ids = PageIds()
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

    def know_waiting_calls(self, calls: Mapping[str, ShownCall], denied: set[str]) -> None:
        """Take over calls that the page shows already, and those of them that a person rejected."""
        self._denied = set(denied)
        for call_id, call in calls.items():
            self.ids.go_on(call_id, call.page_id)
            self._going_on[call_id] = call
            self._calls[call.page_id] = call

    def page_id_of(self, call_id: str) -> str:
        """Return the id on the page of a call that waits."""
        return self.ids.waiting(call_id) or call_id

    def on(self, event: Event) -> Rows:
        """Return what to write for an event."""
        if event.within is not None:
            return
        if self.shown_run is not None and not self.shown_run.shows(event):
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
                self._begin_field_anew(event)
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
        call = ShownCall(self.ids.begin(call_id), call_id, name)
        self._calls[call.page_id] = call
        self._step_ids.add(call_id)
        self._call_steps.add(self._step_number)
        return call

    def _on_ready(self, event: run.CallReady, call: Any) -> Rows:
        yield from self._end_repetitions(before=call.index)
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
        if isinstance(call, InvalidToolCall):
            yield from self._fail(shown, call.arguments, words_of_bad_call(call))
        elif shown.state == "begun":
            shown.state = "ready"
            args = call.args if self.shown_run is None else self.shown_run.args_of(event, call)
            shown.input = jsonable(args)
            self._keep_call(shown)
            yield from self._whole(shown)

    def _fail(self, call: ShownCall, arguments: str, reason: str) -> Rows:
        was_begun = call.state == "begun"
        call.state = "bad"
        call.input = arguments
        self.ids.give_up(call.call_id, call.page_id)
        self._keep_call(call, reason)
        yield from self._bad(call, reason, was_begun=was_begun)

    def _keep(self, event: Json) -> None:
        if self.events is not None:
            self.events.append(event)

    def take_events(self) -> list[Json | str]:
        """Return the events since the last time."""
        events: list[Json | str] = [*(self.events or ())]
        self.events = []
        return events

    def _keep_call(self, call: ShownCall, bad: str | None = None) -> None:
        self.kept_calls.add(call.page_id)
        row: Json = {"type": "call", "page_id": call.page_id, "call_id": call.call_id, "name": call.name}
        self._keep({**row, "input": call.input, "bad": bad})

    def _on_result(self, event: run.ResultReady) -> Rows:
        page_id = self.ids.end(event.call_id)
        self._going_on.pop(event.call_id, None)
        if page_id is None:  # of a bad call, or of one that the page does not have
            return
        denial = words_of_value(event.result.value) if event.call_id in self._denied else None
        self._keep_result(page_id, event.result, denial)
        if denial is not None:
            yield from self._denial(page_id, denial)
        elif event.result.is_error:
            yield from self._failure(page_id, words_of_failure(event.result, self.error_text))
        else:
            yield from self._result(page_id, event.result.value)

    def _keep_result(self, page_id: str, result: ToolResult, denial: str | None) -> None:
        kept: Json = {"call_id": result.call_id, "name": result.name, "is_error": result.is_error}
        kept["value"] = jsonable(result.value)  # now: a tool may change it later
        if result.error_type is not None:
            kept["error_type"] = result.error_type
        row: Json = {"type": "result", "page_id": page_id, "result": kept, "denial": denial}
        if page_id in self.request.result_ids:
            row["id"] = self.request.result_ids[page_id]
        self._keep(row)

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
            texts = self._texts_of(name, _lines(value))
            said.update(text.id for text in texts)
            rest = _lines(value)[len(_text_of(texts)) :] if texts else value.strip()
            if rest:
                yield from self._text(rest, _OpenText("text", name, None))
                yield from self._close()
                said.add(self._written[-1].id)
        unsaid = [text.id for text in self._written if text.id not in said and self._is_output(text, outputs)]
        if unsaid:
            self.differs = True
            self._keep({"type": "unsaid", "ids": unsaid})

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
        if self.shown_run is not None and text.field in self.shown_run.fields:
            return False
        return isinstance(outputs.get(text.field), str) or text.field not in outputs

    def end(self, error: BaseException | None, *, is_stopped: bool = False) -> Rows:
        """Return what to write at the end, once; a run that waits for a person has not failed."""
        if self._has_ended:
            return
        self._has_ended = True
        yield from self.close()
        words = None if error is None or waits_of(error) else words_of_error(error, self.error_text)
        yield from self._end(words, is_stopped=is_stopped)

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
            self._keep({"type": "text", "id": self.text_id, "text": text})
        self._block = None

    @property
    def text_id(self) -> str:
        """The id of the text that is open."""
        return f"{self.prefix}-{self._texts}"

    def _never_ready(self) -> Rows:
        """End the calls that began and never were whole."""
        yield from self._end_repetitions()
        streaming = [call for call in self._streaming.values() if call is not None]
        self._streaming = {}
        for call in streaming:
            yield from self._fail(call, call.arguments, _NEVER_READY)

    def _end_repetitions(self, before: float = inf) -> Rows:
        """End the calls before an index that were an earlier call again."""
        open_calls = {n: call for n, call in self._streaming.items() if call is not None and n < before}
        if not open_calls:
            return
        whole = {(call.name, call.arguments) for call in self._ready.values()}
        for index, call in open_calls.items():
            if (call.name, call.arguments) in whole:
                del self._streaming[index]
                yield from self._fail(call, call.arguments, _REPEATED)

    def _begin_field_anew(self, event: run.TextDelta) -> None:
        """Let a text begin anew: an agent's that came has no step any more, any other was said beside it."""
        is_agents = event.origin is not None and event.origin.agent is not None
        for n, text in enumerate(self._written):
            if (text.field, text.step) == (event.field, event.step):
                self._written[n] = replace(text, step=None) if is_agents else replace(text, field=None)

    def _begin_step(self) -> Rows:
        yield from ()

    def _end_step(self) -> Rows:
        yield from ()

    if TYPE_CHECKING:  # what each protocol writes

        def begin(self) -> Rows:
            """Return what begins every stream."""
            ...

        def _words(self, phase: Phase, text: str = "") -> Rows: ...
        def _call_start(self, call: ShownCall) -> Rows: ...
        def _call_piece(self, page_id: str, text: str) -> Rows: ...
        def _whole(self, call: ShownCall) -> Rows: ...
        def _bad(self, call: ShownCall, reason: str, *, was_begun: bool) -> Rows: ...
        def _result(self, page_id: str, value: Any) -> Rows: ...
        def _failure(self, page_id: str, words: str) -> Rows: ...
        def _denial(self, page_id: str, words: str) -> Rows: ...
        def _request(self, request: Any, call: ShownCall) -> Rows: ...
        def _progress(self, page_id: str, shown: Json) -> Rows: ...
        def _other_event(self, event: Event) -> Rows: ...
        def _end(self, error: str | None, *, is_stopped: bool = False) -> Rows: ...


def _text_of(texts: list[_WrittenText]) -> str:
    return _lines("".join(text.text for text in texts))


def _lines(text: str) -> str:
    r"""Return a text with `\n` for each end of a line, as DSPy reads the fields of an answer."""
    return "\n".join(text.strip().splitlines())
