"""Emit what happens in one run as events, in order, from DSPy's callbacks and streams.

A `Watch` is the stream and a callback of the run's settings, so DSPy reports every predictor, model and tool
to it, in any thread. DSPy's id of what runs leads to its `Frame`. Rules:

 a. A step is the call of one predictor. `Steps` (`events.py`) has the order of those side by side.
 b. What did not stream, such as an answer from DSPy's cache, is emitted when its predictor ends.
 c. The run of a tool belongs to the call that who runs it says, else to one that is guessed
    (`unanswered.py`). If a tool runs without one, as in `dspy.ReAct`, its call is emitted first.
 d. A call that no tool ran, such as a bad one, has its result when the next turn or the end shows it.
 e. Once the reader has left, every chunk, predictor, request and tool raises `LeftError`.
 f. A call of an agent's own `submit` is text (`field_texts.py`). No event has the call or its result.
 g. Words of an agent that may be its answer are held until a call follows, or the answer ends without one:
    the text of a field is what the output holds.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import Any
from uuid import uuid4

import dspy
from dspy.utils.callback import BaseCallback
from pydantic_core import to_jsonable_python

from sigadapt.adapters.calling.agent_words import answer_field
from sigadapt.adapters.listeners import PartialCall
from sigadapt.adapters.plan import plan_of
from sigadapt.adapters.response.choice import Choice
from sigadapt.dspy_boundary.contract import ReActV2
from sigadapt.dspy_boundary.current_run import current_ledger, open_turn, running_call
from sigadapt.dspy_boundary.internals import SUBMIT, StreamResponse, running_id, settings
from sigadapt.errors import InputNeeded, SigadaptError
from sigadapt.json_values import Json
from sigadapt.runs import events
from sigadapt.runs.events import Event, Origin, Step, Steps
from sigadapt.runs.field_texts import (
    NOWHERE,
    NoText,
    Piece,
    SubmitTexts,
    field_texts,
    submit_texts,
    text_fields,
)
from sigadapt.runs.unanswered import AnyCall, Frame, UnansweredCall, call_of_id, call_to_run
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.tool_results.pairing import failed_result
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.turns.agent_turn import AgentTurn, result_of_row
from sigadapt.turns.running import result_of_end


class ToolGate(BaseCallback):
    """A callback of a run that is called before each tool of the run, in the tool's thread.

    An error that is no `Exception` ends the run, and the tool does not begin.
    """

    def before_tool(self, call: AnyCall) -> None:
        """Do what must be done before the tool of a call begins."""


class LeftError(BaseException):
    """Ends a program whose reader has left; no `except Exception` of it goes on."""


@dataclass(eq=False, kw_only=True)
class _AgentStep(Step):
    """One call of a predictor, and what was emitted of it."""

    owner: Frame  # what called the predictor
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    has_tools: bool = True  # whether a subscription to calls sends its chunks
    texts: Any = field(default_factory=NoText)  # what splits its text into fields
    submit_texts: SubmitTexts | None = None  # what reads the agent's outputs; None outside of an agent
    words: list[str] = field(default_factory=list[str])  # until it is known whether a call follows them
    # By the answer that came last; pieces, because a text that grew with each one would be copied each time.
    pieces: dict[str | None, list[str]] = field(default_factory=dict[str | None, list[str]])
    earlier_fields: set[str | None] = field(default_factory=set[str | None])
    thoughts: bool = False  # whether thinking was emitted
    open_calls: set[int] = field(default_factory=set[int])  # the calls of which a piece was emitted
    calls: dict[str, AnyCall] = field(default_factory=dict[str, AnyCall])
    kept_calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])  # of answers before a reask
    usage: Counter[str] = field(default_factory=Counter[str])  # tokens, by DSPy's names

    @cached_property
    def answer_field(self) -> str | None:
        """The output that words without a call are; None for another predictor than an agent's own."""
        agent: Any = None if self.origin is None else self.origin.agent
        is_agents = agent is not None and self.origin is not None and self.origin.predictor is agent.react
        return answer_field(agent) if is_agents else None


class Watch(BaseCallback):
    """The watcher of one run. `deliver` takes each event, in the thread in which it happens."""

    is_direct = True  # `send` never waits

    def __init__(self, deliver: Callable[[Event], None]) -> None:
        self.steps = Steps(deliver)
        self._lock = RLock()
        self._root = Frame()
        self._frames: dict[str, Frame] = {}
        self._answered: set[str] = set()  # the ids of calls whose results were emitted
        self.is_left = False

    def refuse_left(self) -> None:
        """End the program, if the reader of its events has left."""
        if self.is_left:
            raise LeftError

    def _current_frame(self) -> Frame:
        return self._frames.get(running_id.get() or "", self._root)

    # The chunks of DSPy's own adapters, and those of a subscription to calls.

    async def send(self, item: Any) -> None:
        """Emit a chunk of a predictor without tools; a subscription sends those of all others."""
        self.refuse_left()
        step = self._current_frame().step
        if step is not None and not step.has_tools:
            self.emit_chunk(step, step.texts, item)
            if getattr(item, "choices", None) and item.choices[0].get("finish_reason"):
                step.texts = NoText()  # what follows is another candidate

    def begin_answer(
        self, calls: str, text_signature: Any, marker: str, default: str | None
    ) -> "_AnswerListener":
        """Return the listener to the answer of one request, whose calls are typed."""
        frame = self._current_frame()
        self.refuse_left()
        step = frame.step or self._step_between(frame)
        step.earlier_fields |= step.pieces.keys()  # an answer to a reask is another answer
        step.pieces.clear()
        with self._lock:  # the calls of an answer that another one replaces get no results
            step.owner.calls[:] = [call for call in step.owner.calls if call.step is not step]
        step.kept_calls |= {key: call for key, call in step.calls.items() if isinstance(call, ToolCall)}
        step.calls.clear()
        step.open_calls.clear()
        return _AnswerListener(self, step, calls, field_texts(text_signature.output_fields, marker, default))

    def emit_chunk(self, step: _AgentStep, texts: Any, chunk: Any) -> bool:
        """Emit the text and the thinking of a chunk, and return whether it had text."""
        try:
            delta: Json = chunk["choices"][0]["delta"]
        except (TypeError, KeyError, IndexError):
            return False
        if thinking := delta.get("reasoning_content"):
            step.thoughts = True
            self.steps.emit(step, events.ReasoningDelta, thinking)
        text: str = delta.get("content") or ""
        if text:
            self.emit_text(step, texts.take(text))
        return bool(text)

    def emit_text(self, step: _AgentStep, pieces: Iterable[Piece]) -> None:
        """Emit pieces of the texts of fields."""
        for piece in pieces:
            if piece.field is None and step.answer_field is not None:
                step.words.append(piece.text)
                continue
            # A field of which an earlier answer of the step said something begins anew in this one.
            replaces_answer = piece.field in step.earlier_fields and piece.field is not None
            is_anew = piece.is_anew or (replaces_answer and piece.field not in step.pieces)
            if is_anew:
                step.pieces.pop(piece.field, None)
            step.pieces.setdefault(piece.field, []).append(piece.text)
            self.steps.emit(step, events.TextDelta, piece.text, piece.field, is_anew)

    def emit_held(self, step: _AgentStep) -> None:
        """Emit words that are not the agent's answer."""
        held = step.words
        step.words = []
        for piece in held:
            self.steps.emit(step, events.TextDelta, piece, None)

    def _emit_answer_in_words(self, step: _AgentStep, agent: Any) -> None:
        """Emit the agent's output, if the model said it without a call, in the pieces that came."""
        turn = open_turn.get()
        answer = turn.answer if isinstance(turn, AgentTurn) and turn.agent is agent else None
        if answer is None or step.answer_field is None:
            return
        value: str = answer[step.answer_field]
        start = "".join(step.words).find(value)
        pieces = [value] if start < 0 else _cut_pieces(step.words, start, start + len(value))
        step.words = []
        for piece in pieces:
            self.steps.emit(step, events.TextDelta, piece, step.answer_field)

    def emit_submit_text(self, step: _AgentStep, pieces: Iterable[Piece]) -> None:
        """Emit pieces of the texts that an agent submits."""
        for piece in pieces:
            self.steps.emit(step, events.TextDelta, piece.text, piece.field, piece.is_anew)

    def emit_call(self, step: _AgentStep, item: Any) -> None:
        """Emit a whole call, once; a good one may turn out bad later."""
        self.emit_held(step)
        call: AnyCall = item.as_invalid() if isinstance(item, RefusedToolCall) else item
        submit_texts = step.submit_texts if call.name == SUBMIT else None
        if submit_texts is not None and isinstance(call, ToolCall):
            self.emit_submit_text(step, submit_texts.rest_of(call))
        earlier = step.calls.get(call.id)
        if earlier is not None and (isinstance(earlier, InvalidToolCall) or isinstance(call, ToolCall)):
            return
        step.calls[call.id] = call
        with self._lock:
            if earlier is not None:
                step.owner.calls[:] = [other for other in step.owner.calls if other.call is not earlier]
            is_submit = submit_texts is not None
            step.owner.calls.append(UnansweredCall(call, step, step.owner, is_submit))
        if is_submit:
            return
        if not isinstance(call, ToolCall) or not _is_same(call, step.kept_calls.get(call.id)):
            self.steps.emit(step, events.CallReady, call)

    # DSPy's callbacks.

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Begin a step, if it is a predictor."""
        self.refuse_left()
        parent = self._current_frame()
        frame = Frame(parent, parent.within, instance=instance, agent=parent.agent)
        if isinstance(instance, ReActV2):
            frame.agent = frame
        self._frames[call_id] = frame
        values: dict[str, Any] = inputs.get("kwargs") or {}
        frame.texts = frozenset(value for value in values.values() if isinstance(value, str))
        if not isinstance(instance, dspy.Predict):
            return
        self._emit_results(parent, values.values())
        signature: Any = values.get("signature") or instance.signature
        try:
            has_tools = plan_of(signature) is not None
        except SigadaptError:  # which the adapter raises
            has_tools = True
        fields = signature.output_fields
        agent = None if frame.agent is None else frame.agent.instance
        origin = Origin(instance, agent, (frame.agent or frame).texts, has_tools)
        step = _AgentStep(parent.within, origin, owner=parent, fields=fields, has_tools=has_tools)
        if not has_tools:
            step.texts = field_texts(fields, getattr(settings.adapter, "field_marker", ""), NOWHERE)
        elif agent is not None:
            step.submit_texts = submit_texts(agent, instance, values)
        frame.step = step
        self.steps.begin(step)

    def _step_between(self, owner: Frame) -> _AgentStep:
        """Return a step for what no predictor did."""
        return _AgentStep(owner.within, number=self.steps.last_number, owner=owner)

    def on_module_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """Emit what a predictor gave that did not stream, and what waited for its end."""
        frame = self._frames.pop(call_id, self._root)
        step = frame.step
        values: Any = outputs if isinstance(outputs, dspy.Prediction) else {}
        if frame.calls:
            self._emit_results(frame, [values.get("history")])
        if step is None:
            return
        if exception is None:
            self._emit_answer_in_words(step, step.owner.instance)
        self.emit_held(step)
        for name in step.fields:
            self._emit_output(step, name, values.get(name))
        if isinstance(exception, InputNeeded) and _waits_before_calls(exception):
            for call in exception.calls:
                self.emit_call(step, call)
        if step.usage:
            self.steps.emit(step, events.Used, dict(step.usage))
        self.steps.end(step)

    def _emit_output(self, step: _AgentStep, name: str, value: Any) -> None:
        """Emit what did not stream of an output field."""
        if isinstance(value, dspy.ToolCalls):
            for call in value.in_order() if isinstance(value, ToolCalls) else value.tool_calls:
                self.emit_call(step, call)
            return
        if isinstance(value, dspy.Reasoning):
            value = None if step.thoughts else value.content
        if not isinstance(value, str) or name not in text_fields(step.fields):
            return
        text = "".join(step.pieces.get(name, ()))
        if not text and name in step.earlier_fields:
            return
        if not value.startswith(text):
            value = value.lstrip()
        if value.startswith(text) and len(value) > len(text):
            self.emit_text(step, [Piece(name, value[len(text) :])])

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Stop the request of a run that was left."""
        self.refuse_left()
        parent = self._current_frame()
        self._frames[call_id] = Frame(parent, parent.within, parent.step, instance, parent.agent)

    def on_lm_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Forget a request."""
        self._frames.pop(call_id, None)

    def count_usage(self, usage: Mapping[str, Any]) -> None:
        """Add up the tokens of a step, of which DSPy tells before a request ends."""
        step = self._current_frame().step
        if step is not None:
            step.usage.update({name: n for name, n in usage.items() if isinstance(n, int)})

    def on_tool_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Find the call that a tool answers."""
        args: Any = inputs.get("kwargs") or {}
        self._begin_tool(call_id, str(instance.name), args, running_call.get())

    def _begin_tool(self, dspy_id: str, name: str, args: Any, call_id: str | None) -> None:
        self.refuse_left()
        parent = self._current_frame()
        with self._lock:
            open_call = call_to_run(parent, call_id, name, args)
            if open_call is None:
                call = ToolCall(id=call_id or f"call_{dspy_id[:22]}", name=name, args=jsonable(args))
                self.emit_call(self._step_between(parent), call)
                open_call = next(open_call for open_call in parent.calls if open_call.call is call)
            open_call.has_begun = True
        self._frames[dspy_id] = Frame(parent, open_call.call.id, answers=open_call)
        if open_call.step.within is None and not open_call.is_submit:
            for callback in settings.callbacks or ():
                if isinstance(callback, ToolGate):
                    callback.before_tool(open_call.call)

    def on_tool_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Emit the result of a tool."""
        frame = self._frames.pop(call_id, self._root)
        if frame.answers is None or not (exception is None or isinstance(exception, Exception)):
            return
        result = result_of_end(frame.answers.call, outputs, exception)
        if result is None:
            return
        ledger = current_ledger()
        owner = frame.answers.owner
        if ledger is not None and owner is owner.agent:  # who gets the event may save the run's history
            ledger.note_result(frame.answers.call.id, result)
        self._result(frame.answers, result)
        self._leave(frame)

    def run_and_emit(self, call: ToolCall, function: Callable[..., Any], /, **args: Any) -> Any:
        """Run the function of a call for a program that runs its calls itself, and emit the result."""
        dspy_id = uuid4().hex
        self._begin_tool(dspy_id, call.name, call.args, call.id)
        token = running_id.set(dspy_id)
        try:
            value = function(**args)
        except BaseException as error:
            self.on_tool_end(dspy_id, None, error)
            raise
        finally:
            running_id.reset(token)
        if inspect.isawaitable(value):
            return self._await_run(dspy_id, value)
        self.on_tool_end(dspy_id, value)
        return value

    async def _await_run(self, dspy_id: str, running: Any) -> Any:
        token = running_id.set(dspy_id)
        try:
            value = await running
        except BaseException as error:
            self.on_tool_end(dspy_id, None, error)
            raise
        finally:
            running_id.reset(token)
        self.on_tool_end(dspy_id, value)
        return value

    def emit_progress(self, call_id: str, message: str, fraction: float | None) -> None:
        """Emit how far a tool has come."""
        open_call = self._current_frame().answers
        if open_call is not None:
            self.steps.emit(open_call.step, events.Progress, call_id or open_call.call.id, message, fraction)

    # The calls that `calls.run` or a resumed turn runs (`turns/running.py`).

    def begin(self, call: ToolCall) -> None:
        """Note that a call begins to run here."""
        dspy_id = uuid4().hex
        self._begin_tool(dspy_id, call.name, call.args, call.id)
        running_id.set(dspy_id)

    def stop(self, call: ToolCall, stop: object) -> None:
        """Note that a call waits."""
        self._end_run(call.id)

    def cancel(self, call: ToolCall) -> None:
        """Note that a call was cancelled with its turn."""
        self._end_run(call.id)

    def take_result(self, result: ToolResult) -> None:
        """Emit the result of a call, which its function or a person gave; what comes later is none."""
        frame = self._end_run(result.call_id)
        open_call = call_of_id(self._current_frame(), result.call_id) if frame is None else frame.answers
        if open_call is None:
            self.emit_rest([result])
            return
        self._result(open_call, result)
        if frame is not None:
            self._leave(frame)

    def _end_run(self, call_id: str) -> Frame | None:
        """Return the frame of a call, if its function runs: here, or in a thread that is left to itself."""
        with self._lock:
            current = self._current_frame()
            for dspy_id in (running_id.get() or "", *self._frames):
                frame = self._frames.get(dspy_id)
                if frame is None or frame.answers is None or frame.answers.call.id != call_id:
                    continue
                if frame.is_inside(current):
                    return self._frames.pop(dspy_id, None)
        return None

    def _leave(self, frame: Frame) -> None:
        """End the steps of a tool that has its result: one that it left in a thread holds back no others."""
        for step in self.steps.running():
            if isinstance(step, _AgentStep) and step.owner.is_inside(frame):
                self.steps.end(step)

    def emit_rest(self, results: Iterable[ToolResult]) -> None:
        """Emit those results of a turn that no tool gave here, such as those of rejected calls."""
        step = self._step_between(self._current_frame())
        for result in results:
            if result.call_id not in self._answered:
                self._answered.add(result.call_id)
                self.steps.emit(step, events.ResultReady, result.call_id, result)

    def _result(self, call: UnansweredCall, result: ToolResult) -> None:
        with self._lock:
            calls = call.owner.calls
            if call not in calls:
                return
            calls.remove(call)
            self._answered.add(call.call.id)
            if not call.is_submit:
                self.steps.emit(call.step, events.ResultReady, call.call.id, result)

    def _emit_results(self, owner: Frame, values: Iterable[Any]) -> None:
        """Emit the results of calls that no tool answered, as the next turn sends them."""
        for value in values:
            for row in _result_rows(value):
                unrun = [call for call in owner.calls if call.call.id == row.call_id and not call.has_begun]
                for open_call in unrun:
                    call = open_call.call
                    is_bad = isinstance(call, InvalidToolCall)
                    self._result(open_call, failed_result(call) if is_bad else result_of_row(row))

    # The end of the run.

    def end(self, prediction: Any = None, error: BaseException | None = None) -> None:
        """Emit the end: a prediction, or the error; before it, whom a run waits for."""
        for step in self.steps.running():
            self.steps.end(step)
        last = self._step_between(self._root)
        if error is None:
            self.steps.emit(last, events.Ended, prediction)
            return
        if waits_of(error):
            self.steps.emit(last, events.Confirm, waits_of(error))
        self.steps.emit(last, events.Failed, error)


class _AnswerListener:
    """Takes the answer to one request: the listener of its subscription, and the stream beside it."""

    is_direct = True  # as its watch
    partial = True
    predict_name = ""
    stream_start = stream_end = False

    def __init__(self, watch: Watch, step: _AgentStep, calls: str, texts: Any) -> None:
        self.signature_field_name = calls
        self._watch = watch
        self._step = step
        self._texts = texts
        self.refuse_left = watch.refuse_left  # before the program asks again
        self._has_text = False

    async def send(self, item: Any) -> None:
        """Take a chunk, a call that is whole or not, or the whole answer."""
        watch = self._watch
        step = self._step
        watch.refuse_left()
        if isinstance(item, Choice):
            self._emit_choice(item)
        elif not isinstance(item, StreamResponse):
            self._has_text |= watch.emit_chunk(step, self._texts, item)
        elif isinstance(item.chunk, ToolCalls):
            for call in item.chunk.in_order():
                watch.emit_call(step, call)
        else:
            self._emit_parts(item.chunk)

    def _emit_parts(self, part: PartialCall) -> None:
        """Emit a part of a call, or the text in it, and parts that have waited for it."""
        watch = self._watch
        step = self._step
        watch.emit_held(step)
        submit_texts = step.submit_texts
        parts = [part]
        if submit_texts is not None and part.index not in submit_texts.other_calls:
            parts, pieces = submit_texts.take(part)
            watch.emit_submit_text(step, pieces)
        for call in parts:
            if call.arguments or call.index not in step.open_calls:
                step.open_calls.add(call.index)
                watch.steps.emit(step, events.CallDelta, call.index, call.id, call.name, call.arguments)

    def _emit_choice(self, choice: Choice) -> None:
        """Emit what of a whole answer did not stream."""
        watch = self._watch
        step = self._step
        if choice.reasoning and not step.thoughts:
            step.thoughts = True
            watch.steps.emit(step, events.ReasoningDelta, choice.reasoning)
        if choice.text and not self._has_text:
            watch.emit_text(step, self._texts.take(choice.text))
        for call in choice.server_calls or ():
            watch.steps.emit(step, events.ServerCall, call)
        for source in choice.sources or ():
            watch.steps.emit(step, events.SourceReady, source)
        for file in choice.files or ():
            watch.steps.emit(step, events.FileReady, file)


def _cut_pieces(pieces: Iterable[str], start: int, end: int) -> list[str]:
    """Return the pieces of a text that are between two places of it."""
    cut: list[str] = []
    offset = 0
    for piece in pieces:
        cut.append(piece[max(start - offset, 0) : max(end - offset, 0)])
        offset += len(piece)
    return [*filter(None, cut)]


def _result_rows(value: Any) -> Iterable[Any]:
    """Return the results in an input, or in the latest event of a history."""
    if isinstance(value, ToolResults):
        return value
    rows: list[Any] = []
    if isinstance(value, dspy.History) and value.messages:
        for field_value in value.messages[-1].values():
            collection = getattr(field_value, "tool_call_results", None)
            if collection:
                rows += collection.tool_call_results
    return rows


def waits_of(error: object) -> ToolCalls | None:
    """Return the requests for confirmation that an error waits for; None for any other error."""
    return error.requests if isinstance(error, InputNeeded) else None


def _waits_before_calls(error: InputNeeded) -> bool:
    """Return whether a turn waits before any of its calls has run, so that no event has them yet."""
    kinds = {request.kind for request in error.requests}
    return kinds == {"approval"} and not error.results and not error.progress


def jsonable(value: Any) -> Any:
    """Return a value as JSON has it; what has no JSON form as its text."""
    try:
        return to_jsonable_python(value, fallback=str, inf_nan_mode="strings", bytes_mode="base64")
    except (ValueError, TypeError, RecursionError):
        return str(value)


def _is_same(call: ToolCall, kept_call: ToolCall | None) -> bool:
    return kept_call is not None and (call.name, call.args) == (kept_call.name, kept_call.args)
