"""Emit what happens in one run as events, in order, from DSPy's callbacks and streams.

A `Watch` is the stream and a callback of the run's settings, so DSPy reports every predictor, model and tool
to it, in any thread. DSPy's id of what runs leads to its `_Place`. Rules:

 a. A step is the call of one predictor. If steps run side by side, the events of the later one wait until the
    earlier one has ended: texts do not mix, and the numbers of steps never fall.
 b. What did not stream, such as an answer from DSPy's cache, is emitted when its predictor ends.
 c. The run of a tool belongs to the first call of its name that was emitted and has not begun. If a tool runs
    without one, as in `dspy.ReAct`, its call is emitted first.
 d. A call that no tool ran, such as a bad one, has its result when the next turn or the end shows it.
 e. Once the reader has left, every chunk, predictor, request and tool raises `LeftError`.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import RLock
from typing import Any
from uuid import uuid4

import dspy
from dspy.utils.callback import BaseCallback
from pydantic_core import to_jsonable_python

from sigadapt.adapters.plan import plan_of
from sigadapt.adapters.response.choice import Choice
from sigadapt.dspy_boundary.internals import StreamResponse, running_id, settings
from sigadapt.errors import ConfirmationNeeded, SigadaptError
from sigadapt.runs import events
from sigadapt.runs.events import Event
from sigadapt.runs.field_texts import NOWHERE, NoText, Piece, field_texts, text_fields
from sigadapt.schemas.json_values import Json, is_array
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.tool_results.failures import message_of
from sigadapt.signatures.tool_results.pairing import failed_result, result_of
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult

AnyCall = ToolCall | InvalidToolCall


class LeftError(BaseException):
    """Ends a program whose events nobody reads any more; no `except Exception` of it goes on."""


@dataclass(eq=False)
class _Step:
    """One call of a predictor, and what was emitted of it."""

    number: int
    within: str | None
    owner: "_Place"
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    has_tools: bool = True
    texts: Any = field(default_factory=NoText)
    waiting: list[tuple[type[Event], tuple[Any, ...]]] = field(default_factory=list[Any])
    is_open: bool = True
    # By the answer that came last; pieces, because a text that grew with each one would be copied each time.
    pieces: dict[str | None, list[str]] = field(default_factory=dict[str | None, list[str]])
    earlier_fields: set[str | None] = field(default_factory=set[str | None])
    thoughts: bool = False
    open_calls: set[int] = field(default_factory=set[int])  # the calls of which a piece was emitted
    calls: dict[str, AnyCall] = field(default_factory=dict[str, AnyCall])
    usage: Counter[str] = field(default_factory=Counter[str])


@dataclass(eq=False)
class _Open:
    """A call that was emitted, and whose result was not."""

    call: AnyCall
    step: _Step
    has_begun: bool = False


@dataclass(eq=False)
class _Place:
    """A module, model or tool that runs: where it stands in the program."""

    parent: "_Place | None" = None
    within: str | None = None
    step: _Step | None = None
    instance: Any = None
    calls: list[_Open] = field(default_factory=list[_Open])  # of the predictors that a module has called
    run: _Open | None = None


class Watch(BaseCallback):
    """The watcher of one run. `deliver` takes each event, in the thread in which it happens."""

    is_direct = True  # `send` never waits

    def __init__(self, deliver: Callable[[Event], None]) -> None:
        self._deliver = deliver
        self._lock = RLock()
        self._root = _Place()
        self._places: dict[str, _Place] = {}
        self._steps: list[_Step] = []  # those that run, and later ones that wait for them
        self._count = self._number = 0
        self.is_left = False

    def refuse_left(self) -> None:
        """End the program, if nobody reads its events any more."""
        if self.is_left:
            raise LeftError

    def _here(self) -> _Place:
        return self._places.get(running_id.get() or "", self._root)

    def emit(self, step: _Step, kind: type[Event], *values: Any) -> None:
        """Send an event, or hold it back until the steps before it have ended."""
        with self._lock:
            if step in self._steps and step is not self._steps[0]:
                step.waiting.append((kind, values))
                return
            self._number = max(self._number, step.number)
            self._deliver(kind(*values, step=self._number, within=step.within))

    # The chunks of DSPy's own adapters, and those of a subscription to calls.

    async def send(self, item: Any) -> None:
        """Hear a chunk of a predictor without tools; a subscription sends those of all others."""
        self.refuse_left()
        step = self._here().step
        if step is not None and not step.has_tools:
            self.hear_chunk(step, step.texts, item)
            if getattr(item, "choices", None) and item.choices[0].get("finish_reason"):
                step.texts = NoText()  # what follows is another candidate

    def begin_answer(self, calls: str, rest: Any, marker: str, default: str | None) -> "_Answer":
        """Return what hears the answer of one request, whose calls are typed."""
        here = self._here()
        self.refuse_left()
        step = here.step or self._step_between(here)
        step.earlier_fields |= step.pieces.keys()  # an answer to a reask is another answer
        step.pieces.clear()
        return _Answer(self, step, calls, field_texts(rest.output_fields, marker, default))

    def hear_chunk(self, step: _Step, texts: Any, chunk: Any) -> bool:
        """Tell the text and the thinking of a chunk, and return whether it had text."""
        try:
            delta: Json = chunk["choices"][0]["delta"]
        except (TypeError, KeyError, IndexError):
            return False
        if thinking := delta.get("reasoning_content"):
            step.thoughts = True
            self.emit(step, events.ReasoningDelta, thinking)
        text: str = delta.get("content") or ""
        if text:
            self.hear_text(step, texts.take(text))
        return bool(text)

    def hear_text(self, step: _Step, pieces: Iterable[Piece]) -> None:
        """Tell pieces of the texts of fields."""
        for name, piece in pieces:
            step.pieces.setdefault(name, []).append(piece)
            self.emit(step, events.TextDelta, piece, name)

    def hear_call(self, step: _Step, item: Any) -> None:
        """Emit a whole call, once; a good one may turn out bad later."""
        call: AnyCall = item.as_invalid() if isinstance(item, RefusedToolCall) else item
        before = step.calls.get(call.id)
        if before is not None and isinstance(before, InvalidToolCall) >= isinstance(call, InvalidToolCall):
            return
        step.calls[call.id] = call
        with self._lock:
            step.owner.calls[:] = [each for each in step.owner.calls if each.call is not before]
            step.owner.calls.append(_Open(call, step))
        self.emit(step, events.CallReady, call)

    # DSPy's callbacks.

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Begin a step, if it is a predictor."""
        self.refuse_left()
        parent = self._here()
        place = _Place(parent, parent.within, instance=instance)
        self._places[call_id] = place
        if isinstance(instance, dspy.Predict):
            values: dict[str, Any] = inputs.get("kwargs") or {}
            self._hear_results(parent, values.values())
            signature: Any = values.get("signature") or instance.signature
            try:
                has_tools = plan_of(signature) is not None
            except SigadaptError:  # which the adapter raises
                has_tools = True
            marker = "" if has_tools else getattr(settings.adapter, "field_marker", "")
            fields = signature.output_fields
            with self._lock:
                self._count += 1
                texts = field_texts(fields, marker, NOWHERE)
                place.step = _Step(self._count, parent.within, parent, fields, has_tools, texts)
                self._steps.append(place.step)

    def _step_between(self, owner: _Place) -> _Step:
        """Return a step for what no predictor did."""
        return _Step(max(self._count, 1), owner.within, owner)

    def on_module_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """Tell what a predictor gave that did not stream, and what was kept for its end."""
        place = self._places.pop(call_id, self._root)
        step = place.step
        values: Any = outputs if isinstance(outputs, dspy.Prediction) else {}
        if place.calls:
            self._hear_results(place, [values.get("history")])
        if step is None:
            return
        texts = text_fields(step.fields)
        for name in step.fields:
            value: Any = values.get(name)
            if isinstance(value, dspy.Reasoning):
                value = None if step.thoughts else value.content
            if isinstance(value, dspy.ToolCalls):
                for call in value.in_order() if isinstance(value, ToolCalls) else value.tool_calls:
                    self.hear_call(step, call)
            elif isinstance(value, str) and name in texts:
                text = "".join(step.pieces.get(name, ()))
                if not text and name in step.earlier_fields:
                    continue
                start = value if value.startswith(text) else value.lstrip()
                if start.startswith(text) and len(start) > len(text):
                    self.hear_text(step, [(name, start[len(text) :])])
        for call in exception.calls if isinstance(exception, ConfirmationNeeded) else ():
            self.hear_call(step, call)
        if step.usage:
            self.emit(step, events.Used, dict(step.usage))
        self._end_step(step)

    def _end_step(self, step: _Step) -> None:
        with self._lock:
            step.is_open = False
            while self._steps and not self._steps[0].is_open:
                self._steps.pop(0)
                if self._steps:
                    waiting = self._steps[0].waiting
                    self._steps[0].waiting = []
                    for kind, values in waiting:
                        self.emit(self._steps[0], kind, *values)

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Stop the request of a run that was left."""
        self.refuse_left()
        parent = self._here()
        self._places[call_id] = _Place(parent, parent.within, parent.step, instance)

    def on_lm_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Add up the tokens of a step, which are in the model's history."""
        place = self._places.pop(call_id, self._root)
        if outputs is None or place.step is None:
            return
        # Its entry is among the latest, behind those of threads that share the model.
        for entry in reversed(place.instance.history[-50:]):
            responses: Any = entry.get("response")
            candidates = [entry.get("outputs"), *(responses if is_array(responses) else [responses])]
            if any(each is outputs for each in candidates):
                usage: Json = entry.get("usage") or {}
                place.step.usage.update({n: count for n, count in usage.items() if isinstance(count, int)})
                return

    def on_tool_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Find the call that a tool answers."""
        args: Any = inputs.get("kwargs") or {}
        self._begin_tool(call_id, str(instance.name), args)

    def _begin_tool(self, run_id: str, name: str, args: Any, call_id: str = "") -> None:
        self.refuse_left()
        parent = self._here()
        with self._lock:
            run = _waiting(parent, name, args, call_id)
            if run is None:
                call = ToolCall(id=call_id or f"call_{run_id[:22]}", name=name, args=jsonable(args))
                self.hear_call(self._step_between(parent), call)
                run = next(each for each in parent.calls if each.call is call)
            run.has_begun = True
        self._places[run_id] = _Place(parent, run.call.id, run=run)

    def on_tool_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Tell the result of a tool."""
        place = self._places.pop(call_id, self._root)
        if place.run is not None and (exception is None or isinstance(exception, Exception)):
            self._result(place.run, _result(place.run.call, outputs, exception))

    def run_and_emit(self, call: ToolCall, function: Callable[..., Any], /, **args: Any) -> Any:
        """Run the function of a call for a program that runs its calls itself, and emit the result."""
        run_id = uuid4().hex
        self._begin_tool(run_id, call.name, call.args, call.id)
        before = running_id.set(run_id)
        try:
            value = function(**args)
        except BaseException as error:
            self.on_tool_end(run_id, None, error)
            raise
        finally:
            running_id.reset(before)
        if inspect.isawaitable(value):
            return self._awaited_run(run_id, value)
        self.on_tool_end(run_id, value)
        return value

    async def _awaited_run(self, run_id: str, running: Any) -> Any:
        before = running_id.set(run_id)
        try:
            value = await running
        except BaseException as error:
            self.on_tool_end(run_id, None, error)
            raise
        finally:
            running_id.reset(before)
        self.on_tool_end(run_id, value)
        return value

    def emit_result(self, call_id: str, result: ToolResult) -> None:
        """Emit the result of a call whose function has not ended; what it returns later is none."""
        with self._lock:
            running = [place.run for place in self._places.values() if place.run is not None]
            for each in [*running, *self._here().calls]:
                if each.call.id == call_id:
                    self._result(each, result)

    def _result(self, call: _Open, result: ToolResult) -> None:
        with self._lock:
            calls = call.step.owner.calls
            if call in calls:
                calls.remove(call)
                self.emit(call.step, events.ResultReady, call.call.id, result)

    def _hear_results(self, owner: _Place, values: Iterable[Any]) -> None:
        """Tell the results of calls that no tool answered, as the next turn sends them."""
        for value in values:
            rows: Iterable[Any] = value if isinstance(value, ToolResults) else ()
            if isinstance(value, dspy.History) and value.messages:
                parts = value.messages[-1].values()
                collections = [getattr(part, "tool_call_results", None) for part in parts]
                rows = [row for each in collections if each for row in each.tool_call_results]
            for row in rows:
                name = row.name or "unnamed"
                is_error = bool(row.is_error)
                for each in [
                    each for each in owner.calls if each.call.id == row.call_id and not each.has_begun
                ]:
                    if isinstance(each.call, InvalidToolCall):
                        result = failed_result(each.call)
                    else:
                        result = ToolResult(
                            call_id=row.call_id, name=name, value=row.value, is_error=is_error
                        )
                    self._result(each, result)

    # The end of the run.

    def end(self, prediction: Any = None, error: BaseException | None = None) -> None:
        """Tell the end: a prediction, or the error; before it, whom a run waits for."""
        with self._lock:
            for step in [*self._steps]:
                self._end_step(step)
            last = self._step_between(self._root)
            if error is None:
                self.emit(last, events.Ended, prediction)
                return
            if waits_of(error):
                self.emit(last, events.Confirm, waits_of(error))
            self.emit(last, events.Failed, error)


class _Answer:
    """Hears the answer to one request: the listener of its subscription, and the stream behind it."""

    is_direct = True  # as its watch
    partial = True
    predict_name = ""
    stream_start = stream_end = False

    def __init__(self, watch: Watch, step: _Step, calls: str, texts: Any) -> None:
        self.signature_field_name = calls
        self._watch = watch
        self._step = step
        self._texts = texts
        self.refuse_left = watch.refuse_left  # before the program asks again
        self._has_text = False

    async def send(self, item: Any) -> None:
        """Hear a chunk, a call that is whole or not, or the whole answer."""
        watch = self._watch
        step = self._step
        watch.refuse_left()
        if isinstance(item, Choice):
            if item.reasoning and not step.thoughts:
                step.thoughts = True
                watch.emit(step, events.ReasoningDelta, item.reasoning)
            if item.text and not self._has_text:
                watch.hear_text(step, self._texts.take(item.text))
            kinds = (
                (events.ServerCall, "server_calls"),
                (events.SourceReady, "sources"),
                (events.FileReady, "files"),
            )
            for kind, name in kinds:
                for each in getattr(item, name) or ():
                    watch.emit(step, kind, each)
        elif not isinstance(item, StreamResponse):
            self._has_text |= watch.hear_chunk(step, self._texts, item)
        elif isinstance(item.chunk, ToolCalls):
            for call in item.chunk.in_order():
                watch.hear_call(step, call)
        elif item.chunk.arguments or item.chunk.index not in step.open_calls:
            call = item.chunk
            step.open_calls.add(call.index)
            watch.emit(step, events.CallDelta, call.index, call.id, call.name, call.arguments)


def waits_of(error: object) -> ToolCalls | None:
    """Return the requests for confirmation that an error waits for; None for any other error."""
    return error.requests if isinstance(error, ConfirmationNeeded) else None


def jsonable(value: Any) -> Any:
    """Return a value as JSON has it; what has no JSON form as its text."""
    try:
        return to_jsonable_python(value, fallback=str, inf_nan_mode="strings", bytes_mode="base64")
    except (ValueError, TypeError, RecursionError):
        return str(value)


def _waiting(place: _Place | None, name: str, args: Any, call_id: str) -> _Open | None:
    """Return the first call of a tool that waits to be run here; this one or one with these arguments."""
    while place is not None:
        calls = [
            each
            for each in place.calls
            if each.call.name == name and not each.has_begun and isinstance(each.call, ToolCall)
        ]
        if calls or place.run is not None:  # inside of a tool, nothing answers a call outside of it
            fits = [each for each in calls if call_id in ("", each.call.id)]
            return min(fits, key=lambda each: getattr(each.call, "args", None) != args, default=None)
        place = place.parent
    return None


def _result(call: AnyCall, value: Any, error: Exception | None) -> ToolResult:
    try:
        if error is None:
            return result_of(call, value)
    except Exception as unreadable:  # noqa: BLE001  (the tool has run; what it gave cannot be a result)
        error = unreadable
    return ToolResult.failed(call, message_of(error))
