"""Run the calls of one turn with the declared functions, as the program and the person who decides say.

`ToolCalls.run` and `arun` share every step but the wait: `jobs_of` checks everything before anything runs,
`side_by_side.py` runs it, and `_RunningJobs` makes a result of each outcome. No adapter comes here (nothing
is executed): the program does.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import partial
from inspect import isawaitable
from typing import Any, NamedTuple, Protocol

import dspy

from sigadapt.dspy_boundary.current_run import ToolCallSpan, Tracer, current_ledger, open_place, tracer_here
from sigadapt.dspy_boundary.internals import settings
from sigadapt.errors import InputNeeded, InvalidHistory
from sigadapt.signatures.awaiting import Outcome
from sigadapt.signatures.calls import ToolCall, ToolCalls
from sigadapt.signatures.calls.input_requests import request_of_need
from sigadapt.signatures.calls.tool_call import in_agreement, is_approved
from sigadapt.signatures.confirmation import pin_of, question_for, with_approval
from sigadapt.signatures.sources.runnable import asking_of, nobody_to_ask, own_limit
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_functions.guards import waits_inside
from sigadapt.signatures.tool_functions.open_call import (
    NO_PROGRESS,
    CallProgress,
    CallStop,
    LaterCallStop,
    OpenCall,
    TaskPoll,
    attempt_of,
    call_for,
    is_pending,
    need_of,
    open_call,
)
from sigadapt.signatures.tool_results.content import json_of
from sigadapt.signatures.tool_results.function_calls import (
    LateError,
    async_entry,
    is_async,
    least,
    refuse_blocked,
    start_function,
    sync_entry,
    with_timeout,
)
from sigadapt.signatures.tool_results.pairing import AnyCall, result_of
from sigadapt.signatures.tool_results.plain_values import unfit_error
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.signatures.tool_results.tool_output import edit_note, program_outputs
from sigadapt.signatures.tool_results.tool_result import FailedResult, ToolResult, failure_in, message_of
from sigadapt.turns.jobs import Job, declared_tool, jobs_of, own_function
from sigadapt.turns.side_by_side import TurnCall, arun_turn, run_turn

_LOG = logging.getLogger("sigadapt")


class TurnWatch(Protocol):
    """What hears of each call at the moment at which it begins and ends, in whatever thread."""

    def begin(self, call: Any) -> None:
        """Note that a call begins to run."""
        ...

    def take_result(self, result: ToolResult) -> None:
        """Keep the result of a call."""
        ...

    def stop(self, call: Any, stop: CallStop) -> None:
        """Note that a call waits."""
        ...

    def cancel(self, call: Any) -> None:
        """Note that a call was cancelled with its turn."""
        ...


class TurnResults(NamedTuple):
    """What the calls of a turn brought, and what those that wait need."""

    calls: ToolCalls
    results: list[ToolResult]
    requests: list[ToolCall]
    progress: dict[str, CallProgress]  # by the id of the call

    def tool_results(self, *, parallel: bool = True) -> ToolResults:
        """Return the results of a turn of which no call waits.

        Raises:
            InputNeeded: if a call waits.
        """
        if self.requests:
            raise self.input_needed(dspy.History(messages=[]), parallel=parallel)
        return ToolResults(rounds=(Round(calls=self.calls, results=tuple(self.results)),))

    def input_needed(self, history: dspy.History, *, parallel: bool = True, **place: Any) -> InputNeeded:
        """Make the error of a turn that waits.

        Args:
            history: the history before the turn.
            parallel: whether its calls may run side by side.
            place: where the turn has its place in the history, as InputNeeded takes it.
        """
        requests = ToolCalls(tool_calls=self.requests, turn=self.calls.turn)
        error = InputNeeded(self.calls, requests, history, **place)
        error.results = self.results
        error.progress = self.progress
        error.one_by_one = not parallel
        error.state = current_state()
        tracer = tracer_here.get().tracer
        if tracer is not None:
            error.trace = tracer.position()
        return error


def current_state() -> dict[str, Any]:
    """Return a copy of the state of the open run; empty without one."""
    place = open_place()
    if place is None or place.run is None:
        return {}
    return copy_of_state(place.run.state)


def copy_of_state(state: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of a state, which later changes leave as it is, as far as its values can be copied."""
    with suppress(Exception):  # such as a lock among the values: JSON cannot hold it either
        return deepcopy(state)
    return dict(state)


def run(
    calls: ToolCalls, decls: ToolDecls, decisions: object, timeout: float | None, *, parallel: bool = True
) -> ToolResults:
    """Run the calls of one turn from sync code."""
    jobs = jobs_of(calls, decls, decisions, timeout)
    return run_jobs(calls, decls, jobs, parallel=parallel).tool_results(parallel=parallel)


async def arun(
    calls: ToolCalls, decls: ToolDecls, decisions: object, timeout: float | None, *, parallel: bool = True
) -> ToolResults:
    """Run the calls of one turn from async code."""
    jobs = jobs_of(calls, decls, decisions, timeout)
    return (await arun_jobs(calls, decls, jobs, parallel=parallel)).tool_results(parallel=parallel)


def run_jobs(
    calls: ToolCalls,
    decls: ToolDecls,
    jobs: list[Job],
    *,
    parallel: bool = True,
    watch: TurnWatch | None = None,
) -> TurnResults:
    """Run what was checked, from sync code."""
    parallel = parallel and not any(job.sequential for job in jobs)
    to_run = _jobs_to_run(jobs, parallel=parallel)
    for job in to_run:
        refuse_blocked(job.function, job.call.name or "")
    turn = [_turn_call(job, sync_entry) for job in to_run]
    running = _RunningJobs(to_run, watch)
    with _counting_calls(running):
        outcomes = run_turn(turn, parallel=parallel, on_begin=running.begin, on_end=running.end)
    return running.turn_results(calls, decls, jobs, outcomes)


async def arun_jobs(
    calls: ToolCalls,
    decls: ToolDecls,
    jobs: list[Job],
    *,
    parallel: bool = True,
    watch: TurnWatch | None = None,
) -> TurnResults:
    """Run what was checked, from async code."""
    parallel = parallel and not any(job.sequential for job in jobs)
    to_run = _jobs_to_run(jobs, parallel=parallel)
    turn = [_turn_call(job, async_entry) for job in to_run]
    running = _RunningJobs(to_run, watch)
    with _counting_calls(running):
        outcomes = await arun_turn(turn, parallel=parallel, on_begin=running.begin, on_end=running.end)
    return running.turn_results(calls, decls, jobs, outcomes)


def _jobs_to_run(jobs: list[Job], *, parallel: bool) -> list[Job]:
    """Return the jobs that can run now: of calls that run one by one, those before the first that waits."""
    has_waiting = False
    to_run: list[Job] = []
    for job in jobs:
        has_waiting = has_waiting or bool(job.requests)
        is_open = job.result is None and not job.requests
        if is_open and (job.source is not None or parallel or not has_waiting):
            to_run.append(job)
    return to_run


class _RunningJobs:
    """The calls of a turn while they run, and what each gave."""

    def __init__(self, jobs: list[Job], watch: TurnWatch | None) -> None:
        self.jobs = jobs
        self.counted: set[int] = set()
        """The positions of the calls that began and did not stop to wait, which count in the open run."""
        stream = settings.send_stream  # of a run that is watched, it hears of each call (`runs/watching.py`)
        self._run_watches: list[TurnWatch] = [stream] if hasattr(stream, "take_result") else []
        self._watches = self._run_watches if watch is None else [*self._run_watches, watch]
        self._ends: dict[int, ToolResult | CallStop] = {}
        self._spans: dict[int, ToolCallSpan] = {}

    def begin(self, position: int) -> None:
        """Count a call that begins, unless a watch raises why it may not."""
        for watch in self._watches:
            watch.begin(self.jobs[position].call)
        self.counted.add(position)
        tracer = tracer_here.get().tracer
        if tracer is not None:
            self._spans[position] = tracer.call(self.jobs[position].call)

    def end(self, position: int, outcome: Outcome) -> None:
        """Keep what a call gave; one that waits counts when it has its result."""
        job = self.jobs[position]
        if isinstance(outcome.error, CallStop) or is_pending(outcome.value):
            self.counted.discard(position)
        if isinstance(outcome.error, asyncio.CancelledError):
            for watch in self._watches:
                watch.cancel(job.call)
        if outcome.error is not None and not isinstance(outcome.error, (Exception, CallStop)):
            if position in self._spans:
                self._spans[position].end(error=outcome.error)
            return  # it leaves the turn
        end = _result(job, outcome)
        self._ends[position] = end
        if position in self._spans:
            _end_span(self._spans[position], outcome, end)
        for watch in reversed(self._watches):  # who sees the event may save what the turn has kept
            if isinstance(end, CallStop):
                watch.stop(job.call, end)
            else:
                watch.take_result(end)

    def turn_results(
        self, calls: ToolCalls, decls: ToolDecls, jobs: list[Job], outcomes: list[Outcome]
    ) -> TurnResults:
        """Return what the calls of the turn brought, those too that did not run, such as rejected ones."""
        ends: dict[str, ToolResult | CallStop] = {}
        for position, (job, outcome) in enumerate(zip(self.jobs, outcomes, strict=True)):
            ends[job.call.id] = self._ends[position] if position in self._ends else _result(job, outcome)
        turn = TurnResults(calls, [], [], {})
        for job in jobs:
            end = ends.get(job.call.id)
            if end is None and job.result is not None:
                end = _with_note(job, job.result)
                for watch in () if job.was_told else self._run_watches:
                    watch.take_result(end)
            if end is None or isinstance(end, CallStop):
                _add_waiting(turn, job, end, decls)
            else:
                turn.results.append(end)
        return turn


def _end_span(span: ToolCallSpan, outcome: Outcome, end: "ToolResult | CallStop") -> None:
    """End the span of a call; to wait is no failure."""
    if isinstance(end, CallStop):
        span.end()
    elif end.is_error:
        failure = outcome.error or failure_in(outcome.value) or end.error_type
        span.end(end.value, failure or FailedResult(end.value))
    else:
        span.end(end.value)


@contextmanager
def _counting_calls(running: _RunningJobs) -> Generator[None]:
    """Count calls in the open run before one of them begins, or raise why they may not run.

    Those that did not begin, or wait, are not counted in the end.
    """
    ledger = current_ledger()
    count = len(running.jobs)
    if ledger is None or not count:
        yield
        return
    ledger.check_calls(count)
    ledger.count_calls(count)
    try:
        yield
    finally:
        ledger.count_calls(len(running.counted) - count)


def _turn_call(job: Job, entry_of: Callable[[Any], Callable[..., Any]]) -> TurnCall:
    entry = entry_of(job.function)
    ledger = current_ledger()
    left = None if ledger is None else ledger.seconds_left()
    return TurnCall(
        partial(_start, job, entry),
        is_async=is_async(entry),
        timeout=least(job.timeout, left),
    )


def _start(job: Job, entry: Callable[..., Any]) -> Any:
    """Start a call in its own thread or task, in a context that knows of it."""
    open_call.set(job.open_call)
    call_for(job.function)
    return entry(**job.arguments)


def execute(call: ToolCall, decls: ToolDecls) -> Any:
    """Run one call: `ToolCall.execute`."""
    arguments = call.bind(decls)
    decl = declared_tool(call, decls)
    current = _attempt(call, decl)
    body = _function_to_execute(current, decl)
    function = with_watcher(call, sync_entry(body))
    ledger = current_ledger()
    timeout = own_limit(body, decl.timeout)
    if ledger is not None:
        ledger.count_calls(1)
        timeout = least(timeout, ledger.seconds_left())

    def begin() -> Any:
        open_call.set(current)
        call_for(body)
        return with_timeout(start_function(function, arguments, timeout), timeout)

    tracer = tracer_here.get().tracer
    start = begin if tracer is None else partial(_start_in_span, tracer, call, begin)
    if is_async(function):
        return _finish_alone(current, decls, start)
    earlier_call = open_call.get()
    try:
        value = start()
    except CallStop as stop:
        raise _error_of_stop(current, decls, stop) from None
    finally:
        open_call.set(earlier_call)
    if isawaitable(value):
        return _finish_alone(current, decls, lambda: value)
    return _output(current, decls, value)


def _attempt(call: ToolCall, decl: ToolDecl) -> OpenCall:
    """Return the call as its context shows it: another attempt at the call whose hook runs it again."""
    current = attempt_of(call) or OpenCall(call)
    if is_approved(call, pin_of(decl)):
        current.progress = with_approval(current.progress, pin_of(decl), call.args, is_edited=False)
        current.decision = True
    return current


def _function_to_execute(current: OpenCall, decl: ToolDecl) -> Callable[..., Any]:
    """Return what runs a call alone, if nobody has to be asked about it.

    Raises:
        InvalidToolDecl: `nobody_to_ask`.
    """
    if current.decision is not None:
        return own_function(decl)
    if asking_of(decl.func) is not None:
        return decl.function
    if question_for(decl, current.call.args)[1] is not None:
        raise nobody_to_ask(decl.name)
    return own_function(decl)


def _start_in_span(tracer: Tracer, call: ToolCall, begin: Callable[[], Any]) -> Any:
    """Start a call that is run alone, in its span; what it returns may be awaitable."""
    span = tracer.call(call)
    try:
        with _failing(span):
            value = begin()
    finally:
        span.leave()
    if isawaitable(value):
        return _finish_in_span(span, value)
    span.end(value, failure_in(value))
    return value


async def _finish_in_span(span: ToolCallSpan, waiting: Awaitable[Any]) -> Any:
    with _failing(span):
        value = await waiting
    span.end(value, failure_in(value))
    return value


@contextmanager
def _failing(span: ToolCallSpan) -> Generator[None]:
    """End the span of a call that raises."""
    try:
        yield
    except BaseException as error:
        span.end(error=error)
        raise


async def _finish_alone(current: OpenCall, decls: ToolDecls, start: Callable[[], Any]) -> Any:
    """Await a call that is run alone."""
    try:
        value = await start()
    except CallStop as stop:
        raise _error_of_stop(current, decls, stop) from None
    return _output(current, decls, value)


def _output(current: OpenCall, decls: ToolDecls, value: Any) -> Any:
    need = need_of(value, current.call.name)
    if need is not None:
        raise _error_of_stop(current, decls, CallStop([need], current.progress))
    decl = declared_tool(current.call, decls)
    misfit = _misfit(decl, value, result_of(current.call, value)) if decl.check_result else None
    if misfit is not None:
        raise misfit
    return program_outputs(value)


def _error_of_stop(current: OpenCall, decls: ToolDecls, stop: CallStop) -> InputNeeded | CallStop:
    """Make the error of a call that is run alone and waits; inside of a hook of the call, the call waits."""
    call = current.call
    if attempt_of(call) is not None:
        return stop
    calls = ToolCalls(tool_calls=[call], turn=call.turn)
    requests = requests_of_stop(call, stop, decls)
    turn = TurnResults(calls, [], requests, {call.id: stop.progress})
    return turn.input_needed(dspy.History(messages=[]))


def requests_of_stop(call: ToolCall, stop: CallStop, decls: ToolDecls) -> list[ToolCall]:
    """Return the requests for what a call waits for."""
    if stop.progress.approved is not None:  # a person sees what they agreed to
        call = in_agreement(call.model_copy(update={"args": stop.progress.approved}))
    answered = len(stop.progress.replies)
    return [request_of_need(call, need, need.position or answered, decls) for need in stop.needs]


def with_watcher(call: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call's function so that a run that is watched emits its result (`runs/watching.py`)."""
    run_and_emit = getattr(settings.send_stream, "run_and_emit", None)
    if run_and_emit is None:
        return function
    if not is_async(function):
        return partial(run_and_emit, call, function)

    async def run_later(**arguments: Any) -> Any:
        return await run_and_emit(call, function, **arguments)

    return run_later


def _add_waiting(turn: TurnResults, job: Job, stop: CallStop | None, decls: ToolDecls) -> None:
    """Note what a call waits for, if it is not one that has not begun; and what was decided about it."""
    turn.requests.extend(job.requests)
    progress = _progress_of(job)
    if stop is not None and not isinstance(stop, LaterCallStop):
        call: Any = job.call
        turn.requests.extend(requests_of_stop(call, stop, decls))
        progress = stop.progress
    if progress != NO_PROGRESS:
        turn.progress[job.call.id] = progress


def _progress_of(job: Job) -> CallProgress:
    return NO_PROGRESS if job.open_call is None else job.open_call.progress


def _result(job: Job, outcome: Outcome) -> "ToolResult | CallStop":
    """Return what a call gave, or what it waits for."""
    end = _plain_result(job, outcome)
    return end if isinstance(end, CallStop) else _with_note(job, end)


def _with_note(job: Job, result: ToolResult) -> ToolResult:
    """Return a result with the note of a person who changed the call."""
    return result if job.edit is None else result.model_copy(update={"note": edit_note(job.edit.args)})


def _plain_result(job: Job, outcome: Outcome) -> "ToolResult | CallStop":
    """Return what a call gave, or why it failed, without a traceback and the errors that led to it."""
    error = outcome.error
    if isinstance(error, CallStop):
        return error
    if isinstance(error, LateError) and isinstance(job.source, TaskPoll):  # its task goes on
        return CallStop([job.source.need], _progress_of(job))
    if error is None:
        need = need_of(outcome.value, job.call.name or "")
        if need is not None:
            return CallStop([need], _progress_of(job))
    if isinstance(error, InputNeeded):
        error = waits_inside(job.call.name)
    result = _result_or_failure(job.call, outcome.value, error)
    misfit = _misfit(job.decl, outcome.value, result)
    return result if misfit is None else ToolResult.failed(job.call, message_of(misfit), misfit)


def _misfit(decl: ToolDecl | None, value: Any, result: ToolResult) -> InvalidHistory | None:
    """Return why what a tool returned does not fit what it declares; of a failed result, nothing."""
    if result.is_error:
        return None
    read = json_of(result.value) if result.is_content else result.value
    return unfit_error(decl, read, value)


def result_of_end(call: AnyCall, value: Any, error: Exception | None) -> ToolResult | None:
    """Return the result of a call whose tool has ended, for who watches it; None if it comes later."""
    if not isinstance(value, str) and is_pending(value):
        return None
    return _result_or_failure(call, value, error)


def _result_or_failure(call: AnyCall, value: Any, error: BaseException | None) -> ToolResult:
    if error is None:
        try:
            return result_of(call, value)
        except Exception as unsendable:  # noqa: BLE001  (the tool has run, and other calls keep their results)
            _LOG.exception("the result of %s cannot be sent", call.name)
            error = unsendable
    return ToolResult.failed(call, message_of(error), error)
