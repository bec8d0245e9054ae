"""AgentTurn: one turn of an agent, from its request to the results of its calls, readable at every moment.

`dspy.ReActV2` writes a turn into its history when the turn is over. Until then this object has what is known:
the inputs, the answer, and each result at the moment at which its call ends, in whatever thread. A call that
the run left has a failed result, so that the history can be sent: providers refuse a call without one.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import RLock
from typing import Any

import dspy
from dspy.utils.exceptions import format_error_for_lm

from sigadapt.dspy_boundary.current_run import (
    ToolCallSpan,
    agents_around,
    inside_tool,
    open_turn,
    tracer_here,
)
from sigadapt.dspy_boundary.internals import SUBMIT, innermost_module, refuse_left
from sigadapt.errors import InputNeeded, LimitExceeded, SigadaptError
from sigadapt.json_values import without_halves
from sigadapt.signatures.awaiting import Outcome
from sigadapt.signatures.calls import RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.confirmation import REJECTED
from sigadapt.signatures.sources.runnable import RefusedRun
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_functions.open_call import (
    NO_PROGRESS,
    CallStop,
    LaterCallStop,
    OpenCall,
    need_of,
    open_call,
)
from sigadapt.signatures.tool_results.function_calls import on_thread_end, outcome_at_cancel, runs_on
from sigadapt.signatures.tool_results.pairing import failed_result
from sigadapt.signatures.tool_results.tool_result import (
    FailedResult,
    ToolResult,
    agent_result,
    failure_in,
    message_in,
    message_of,
    type_of_error,
)
from sigadapt.signatures.transcript import read, with_events, without_tracebacks
from sigadapt.turns.running import TurnResults, requests_of_stop

NOT_RUN = "This call was not run: the run ended before it began."
NO_RESULT = "There is no result: the run ended while this call ran. It may still be running."
WAITS = "There is no result: this call waits for a person, or for a result from elsewhere."
CANCELLED = "This call was cancelled when the run ended. It is not known whether it had an effect."

_LOG = logging.getLogger("sigadapt")
_NO_DECLS = ToolDecls()


class AgentTurn:
    """One turn of an agent.

    Args:
        history: the agent's own history, to which the agent appends the turn once it is over.
        inputs: the inputs of the request, which the history does not hold yet.
        agent: the agent.
    """

    def __init__(self, history: Any, inputs: Mapping[str, Any], agent: Any = None) -> None:
        self.decls = _NO_DECLS
        self.agent = agent
        self.count_calls: Callable[[int], None] = lambda _: None
        """Called with the number of the calls that begin to run now. It raises why they may not."""
        self.is_one_by_one = False
        """Whether the agent runs the calls of its turns one by one."""
        self.keeps_tracebacks = False
        """Whether a failed tool has a traceback in the history, because the model is to read it."""
        self.answer: dict[str, Any] | None = None
        """The agent's outputs, if the model answered in words."""
        self.refusal: LimitExceeded | None = None
        """Raised in a program inside of a tool of the turn, which may have swallowed it."""
        self._depth = len(agents_around())
        self._history = read(dspy.History, history, None)
        self._length = len(self._history.messages)
        self._event = dict(inputs)
        self._lock = RLock()
        self._field = ""  # the name of the calls in the event
        self._calls = ToolCalls()
        self._calls_by_id: dict[str, ToolCall] = {}
        self._waiting: dict[str, ToolCall] = {}  # the calls that have not begun, by id
        self._results: dict[str, dspy.ToolCallResults.ToolCallResult] = {}
        self._stops: dict[str, CallStop] = {}  # of the calls that wait, by id
        self._error_types: dict[str, str | None] = {}  # of the calls that failed, which DSPy's rows lack
        self._refusal: Callable[[str], SigadaptError] | None = None

    @classmethod
    def of_waiting(cls, error: InputNeeded) -> "AgentTurn":
        """Return the turn of a run that waited, as far as it had come, to go on with."""
        turn = cls(error.history, error.event)
        turn._take_calls(error.calls, error.field)
        for result in error.results:
            turn.take_result(result)
        for request in error.requests:
            call = request.call
            turn.stop(call, CallStop([], error.progress.get(call.id, NO_PROGRESS)))
        return turn

    def take_answer(self, calls: ToolCalls, decls: ToolDecls, outputs: Mapping[str, Any], field: str) -> None:
        """Take the answer to the turn's request: its calls, and what the model said beside them."""
        with self._lock:
            self.decls = decls
            self._event.update(outputs)
            self._take_calls(calls, field)
        open_turn.set(self)

    def is_before(self, turn: "AgentTurn") -> bool:
        """Return whether another turn is of the same run of the agent."""
        return self.agent is None or self._history is turn._history  # noqa: SLF001  (its own class)

    def say(self, answer: dict[str, Any] | None) -> None:
        """Take what the first candidate says without a call: the agent's outputs, or None."""
        if not self._field:
            self.answer = answer

    @property
    def has_words(self) -> bool:
        """Whether the answer to the turn's request was words without a call, and the agent keeps those."""
        return not self._calls and bool(self._calls.text)

    def words(self) -> dict[str, Any]:
        """Return the event of a turn in words."""
        return {**self._event, self._field: self._calls, **(self.answer or {})}

    def leave_to_agent(self) -> None:
        """Note that the agent's own history has the turn."""
        self._length = -1

    def _take_calls(self, calls: ToolCalls, field: str) -> None:
        self._field = field
        self._calls = calls
        self._calls_by_id = {call.id: call for call in reversed([*calls])}
        for call in calls:
            if isinstance(call, RefusedToolCall):
                self._results[call.id] = agent_result(failed_result(call))
            else:
                self._waiting[call.id] = call

    def begin(self, call: dspy.ToolCalls.ToolCall) -> None:
        """Note that a call begins to run."""
        with self._lock:
            self._waiting.pop(call.id or "", None)
            self._stops.pop(call.id or "", None)

    def take_result(self, result: ToolResult) -> None:
        """Keep the result of a call that was run outside of the agent."""
        with self._lock:
            self._waiting.pop(result.call_id, None)
            self._stops.pop(result.call_id, None)
            self._results[result.call_id] = agent_result(result)
            self._error_types[result.call_id] = result.error_type

    def cancel(self, call: dspy.ToolCalls.ToolCall) -> None:
        """Note that a call was cancelled with its turn."""
        self.end(call, CANCELLED, is_error=True)

    def end(self, call: dspy.ToolCalls.ToolCall, value: Any, *, is_error: bool) -> None:
        """Keep what a call returned, or why it failed, as the agent writes it."""
        result = _as_failure(
            dspy.ToolCallResults.ToolCallResult(
                call_id=call.id, name=call.name, value=value, is_error=is_error
            )
        )
        with self._lock:
            self._results[call.id or ""] = result

    def note_result(self, call_id: str, result: ToolResult) -> None:
        """Keep a result that the agent does not have yet, if its own tool gave it."""
        if len(agents_around()) != self._depth + 1:  # a program inside of its tool gave it
            return
        with self._lock:
            if call_id in self._calls_by_id and call_id not in self._results:
                self._results[call_id] = agent_result(result)

    def refuse_waiting(self, refusal: Callable[[str], SigadaptError]) -> None:
        """Let no call of the turn wait; `refusal` makes the error by the name of the tool."""
        self._refusal = refusal

    def open_call(self, call: dspy.ToolCalls.ToolCall) -> OpenCall:
        """Return a call that begins to run, as its context shows it."""
        typed_call = self._calls_by_id.get(call.id or "")
        if typed_call is None:
            typed_call = ToolCall(id=call.id or "", name=call.name, args=call.args or {})
        return OpenCall(typed_call, refusal=self._refusal)

    def run(self, name: str, arguments: Mapping[str, Any], start: Callable[[], Any]) -> Any:
        """Run a tool of an agent of DSPy's, for the first call of its name that has not begun."""
        call = self._call_of(name, arguments)
        if call is None:
            with inside_tool(self.agent):
                return start()
        if not self._stops:
            with self._running(call) as keep:
                value = start()
                keep(value)
                return value
        return RefusedRun(self.input_needed())

    async def arun(self, name: str, arguments: Mapping[str, Any], start: Callable[[], Any]) -> Any:
        """Do the same as `run` in async code."""
        call = self._call_of(name, arguments)
        if call is None:
            with inside_tool(self.agent):
                return await start()
        if not self._stops:
            with self._running(call) as keep:
                value = await start()
                keep(value)
                return value
        return RefusedRun(self.input_needed())

    @contextmanager
    def _running(self, call: ToolCall) -> Generator[Callable[[Any], None]]:
        """Note that a call runs, and how it ends. If it waits, what follows the block goes on.

        Yields:
            The function that takes what the tool returned.
        """
        name = call.name
        current = OpenCall(call, refusal=self._refusal)
        call_token = open_call.set(current)
        tracer = tracer_here.get().tracer
        span = None if tracer is None or name == SUBMIT else tracer.call(call)
        try:
            refuse_left()
            if name != SUBMIT:
                self.count_calls(1)
            self.begin(call)
            with inside_tool(self.agent):
                yield partial(self._keep, current, span)
        except CallStop as stop:
            _end_span(span, stop)
            self.count_calls(-1)
            self.stop(call, stop)
        except Exception as error:
            _end_span(span, error)
            self._fail(call, error)
            raise
        except BaseException as error:
            _end_span(span, error)
            outcome = outcome_at_cancel(error)
            if outcome is not None:
                self.take_outcome(call, outcome)
            elif isinstance(error, asyncio.CancelledError) and not runs_on(error):
                self.cancel(call)
            on_thread_end(error, partial(self.take_outcome, call))
            raise
        finally:
            if span is not None:
                span.leave()
            open_call.reset(call_token)
            if not self._waiting and not self._stops:  # it is over, and nothing else would let go of it
                open_turn.set(None)

    def _keep(self, current: OpenCall, span: ToolCallSpan | None, value: Any) -> None:
        """Keep what a tool returned; stop its call if the result of a tool of DSPy's own comes later."""
        need = None if isinstance(value, str) else need_of(value, current.call.name)
        if need is not None:
            current.wait_for_result(need)
        if span is not None:
            span.end(value, failure_in(value))
        self.end(current.call, value, is_error=False)

    def stop(self, call: dspy.ToolCalls.ToolCall, stop: CallStop) -> None:
        """Note that a call waits, or has not begun because an earlier one waits."""
        with self._lock:
            if isinstance(stop, LaterCallStop):
                return
            self._stops[call.id or ""] = stop

    @property
    def has_calls(self) -> bool:
        """Whether the answer has come, with calls."""
        return bool(self._calls)

    @property
    def is_waiting(self) -> bool:
        """Whether a call of the turn waits."""
        return bool(self._stops)

    @property
    def is_over(self) -> bool:
        """Whether all calls of the turn have begun, and none waits."""
        return bool(self._calls) and not self._waiting and not self._stops

    def input_needed(self) -> InputNeeded:
        """Make the error of a turn that waits, with what it has brought."""
        with self._lock:
            requests: list[ToolCall] = []
            for call in self._calls:
                if call.id in self._stops:
                    requests += requests_of_stop(call, self._stops[call.id], self.decls)
            history = self._history.model_copy(update={"messages": self._history.messages[: self._length]})
            history = with_events(history) if self.keeps_tracebacks else without_tracebacks(history)
            rows = [row for row in self._results.values() if row.name != SUBMIT]
            progress = {call_id: stop.progress for call_id, stop in self._stops.items()}
            results = [result_of_row(row, self._error_types.get(row.call_id or "")) for row in rows]
            turn = TurnResults(self._calls, results, requests, progress)
            place = {"event": self._event, "field": self._field}
            return turn.input_needed(history, parallel=not self.is_one_by_one, **place)

    @property
    def has_success(self) -> bool:
        """Whether a call of the turn has a result that is no failure."""
        with self._lock:
            return any(not row.is_error for row in self._results.values())

    @property
    def last_failure(self) -> str | None:
        """What the last call that failed says; None if none did. A rejected call is no failure."""
        with self._lock:
            rows = [*self._results.values()]
        texts = [f"{row.name}: {message_in(row.value, row.name or '')}" for row in rows if row.is_error]
        failures = [text for text in texts if REJECTED not in text]
        return failures[-1] if failures else None

    def leave_out(self) -> None:
        """Take the turn out of the agent's own history, which has it without the results to come."""
        del self._history.messages[self._length :]

    def take_outcome(self, call: dspy.ToolCalls.ToolCall, outcome: Outcome) -> None:
        """Keep the outcome of a call: what it returned, or the exception that it failed with."""
        if outcome.error is None:
            self.end(call, outcome.value, is_error=False)
        elif isinstance(outcome.error, Exception):
            _LOG.debug("the tool %s failed", call.name, exc_info=outcome.error)
            self._fail(call, outcome.error)

    def _fail(self, call: dspy.ToolCalls.ToolCall, error: Exception) -> None:
        """Keep the exception that a call failed with."""
        self._error_types[call.id or ""] = type_of_error(error)
        self.end(call, self.failure_value(call.name, error), is_error=True)

    def failure_value(self, name: str, error: Exception) -> Any:
        """Return what the history has of a tool that failed: what the model reads."""
        value = failure_value(name, error)
        return value if self.keeps_tracebacks else message_in(value, name)

    def _call_of(self, name: str, arguments: Mapping[str, Any]) -> ToolCall | None:
        if innermost_module() is not self.agent:
            return None
        with self._lock:
            waiting = [call for call in self._waiting.values() if call.name == name]
            return min(waiting, key=lambda call: call.args != arguments, default=None)

    def leave_history(self) -> None:
        """Keep the events as they are: later runs may append to the same history."""
        with self._lock:
            self._history = with_events(self._history)

    def history(self) -> dspy.History:
        """Return a copy of the agent's history, with this turn as far as it has come."""
        with self._lock:
            events = [_with_refusals_as_failures(event) for event in self._history.messages]
            event = dict(self._event)
            if self._calls:
                results = [self._result_of(call) for call in self._calls.in_order()]
                rows = dspy.ToolCallResults(tool_call_results=results)
                event[self._field] = self._calls.model_copy(update={"tool_call_results": rows})
            elif self.has_words:
                event = self.words()
        if len(events) == self._length and event:
            events.append(event)
        return self._history.model_copy(update={"messages": events})

    def _result_of(self, call: Any) -> dspy.ToolCallResults.ToolCallResult:
        if call.id in self._results:
            return self._results[call.id]
        reason = NO_RESULT
        if call.id in self._waiting:
            reason = NOT_RUN
        if call.id in self._stops:
            reason = WAITS
        return agent_result(ToolResult.failed(call, reason))


def _with_refusals_as_failures(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of an event that can be read and saved, also if a tool refused to run here."""
    copied = dict(event)
    for name, value in event.items():
        results = getattr(value, "tool_call_results", None)
        if results is None or not any(isinstance(row.value, RefusedRun) for row in results.tool_call_results):
            continue
        rows = [*map(_as_failure, results.tool_call_results)]
        update = {"tool_call_results": results.model_copy(update={"tool_call_results": rows})}
        copied[name] = value.model_copy(update=update)
    return copied


def _as_failure(row: dspy.ToolCallResults.ToolCallResult) -> dspy.ToolCallResults.ToolCallResult:
    if not isinstance(row.value, RefusedRun):
        return row
    return row.model_copy(update={"value": message_of(row.value.error), "is_error": True})


def result_of_row(row: Any, error_type: str | None = None) -> ToolResult:
    """Return a result as the agent has it, without the traceback of a failed one."""
    if isinstance(row, ToolResult):
        return row
    name = row.name or "unnamed"
    value = message_in(row.value, name) if row.is_error else row.value
    call_id = row.call_id or ""
    return ToolResult(
        call_id=call_id, name=name, value=value, is_error=bool(row.is_error), error_type=error_type
    )


def _end_span(span: ToolCallSpan | None, error: BaseException) -> None:
    """End the span of a call, if it is traced."""
    if span is not None:
        span.end(error=error)


def failure_value(name: str, error: Exception) -> Any:
    """Return what DSPy's agents write of a tool that failed, with its traceback."""
    if isinstance(error, FailedResult):  # it came as a result, and is kept as one
        return error.value
    return without_halves(f"Execution error in {name}: {format_error_for_lm(error, traceback_frames=5)}")
