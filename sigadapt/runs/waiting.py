"""Go on with a run that waits: run its turn as was decided, and write it into the history.

`InputNeeded` (errors.py) is the door to this file. Each of its requests needs a decision, whatever the tools
say now: a tool that is given without its guard would otherwise run unasked. The tools can only add to that:
a call that needs a yes by now needs one too, as in `ToolCalls.run`.
"""

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import isfinite
from typing import Any, NamedTuple

import dspy
import pydantic

from sigadapt.dspy_boundary.current_run import tracer_here
from sigadapt.dspy_boundary.internals import is_submit
from sigadapt.errors import InputNeeded, InvalidHistory, InvalidToolDecl
from sigadapt.providers.usage import Usage
from sigadapt.runs.ledger import Ledger
from sigadapt.runs.run import Run
from sigadapt.schemas.json_values import ARGUMENT_LEVELS, cut, fault_in, listed, pointer
from sigadapt.signatures import awaiting
from sigadapt.signatures.calls import RefusedToolCall, ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_functions.open_call import NO_PROGRESS, CallProgress, CallStop
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult, agent_result
from sigadapt.signatures.transcript import with_events
from sigadapt.turns.agent_turn import CANCELLED, NO_RESULT, AgentTurn
from sigadapt.turns.decisions import check_shown, missing_decisions, read_decisions, tools_of_turn
from sigadapt.turns.jobs import Job, jobs_of, refuse_swapped
from sigadapt.turns.running import TurnResults, arun_jobs, copy_of_state, run_jobs

_NOT_TAKEN = "This was not taken: calls beside it waited for a person. Read their results, and submit again."


class _RunRecord(pydantic.BaseModel):
    """An InputNeeded as JSON. The event of the turn is a history of one, so that it is saved as one."""

    calls: ToolCalls
    requests: ToolCalls
    history: dspy.History
    event: dspy.History  # of one event: the turn that waits
    field: str  # the signature's field for calls
    results_field: str | None  # and that for their results
    usage: Usage | None = None  # what the run has used
    counted_in: list[str] = []  # the ids of the ledgers that counted it
    seconds: float = 0.0  # and how long it took
    failed_turns: int = 0  # in a row
    id: str
    results: list[ToolResult] = []
    progress: dict[str, CallProgress] = {}
    state: dict[str, Any] = {}
    one_by_one: bool = False
    # Left out where nobody traces, so that a version without traces reads it.
    trace: str = pydantic.Field(default="", exclude_if=lambda trace: not trace)


_KEPT = ("id", "results", "progress", "state", "one_by_one", "trace")
_SAVED = ("calls", "requests", "history", "field", "results_field", *_KEPT)


def to_json(error: InputNeeded) -> str:
    """Return the error as JSON text."""
    _check_state(error.state)
    fields = {name: getattr(error, name) for name in _SAVED}
    if error.run is not None:
        ledger = error.run.ledger
        fields |= {"usage": ledger.usage, "counted_in": sorted(ledger.ids), "seconds": ledger.seconds}
        fields["failed_turns"] = ledger.failed_turns
    try:
        fields["history"] = _with_number_texts(error.history)
        event = _with_number_texts(dspy.History(messages=[error.event]))
        return _RunRecord(**fields, event=event).model_dump_json()
    except ValueError as fault:
        reason = f"the run that waits cannot be saved: {cut(str(fault))}"
        fix = "Give inputs and a state that JSON can hold, or pickle the error."
        raise InvalidHistory(reason, code="unreadable_history", fix=fix) from fault


def _check_state(state: dict[str, Any]) -> None:
    """Refuse a state that JSON would change, or that could not be read again."""
    fault = fault_in(state, levels=ARGUMENT_LEVELS)
    if fault is None:
        return
    raise InvalidHistory(
        f"the state of the run cannot be saved: {fault.reason}",
        code="unreadable_history",
        path=fault.path,
        fix="Keep plain JSON values in context.state, and what else tools need in deps.",
    )


def _with_number_texts(history: dspy.History) -> dspy.History:
    """Return a history with the text of each input that JSON has no number for, as requests have it."""
    events = [{name: _text_unless_finite(value) for name, value in row.items()} for row in history.messages]
    return history.model_copy(update={"messages": events})


def _text_unless_finite(value: Any) -> Any:
    is_no_json = isinstance(value, float) and not isfinite(value)
    return str(value) if is_no_json else value


def from_json(kind: type[InputNeeded], text: str | bytes) -> InputNeeded:
    """Return the error that was saved."""
    try:
        record = _RunRecord.model_validate_json(text)
        [event] = record.event.messages
        error = kind(record.calls, record.requests, record.history, event, record.field, record.results_field)
        for request in record.requests:
            check_shown(request, record.calls, record.progress.get(request.call.id, NO_PROGRESS))
    except (ValueError, InvalidHistory, InvalidToolDecl) as fault:
        reason = f"it is no saved InputNeeded: {cut(_without_input(fault))}"
        fix = "Give what error.model_dump_json() wrote."
        raise InvalidHistory(reason, code="unreadable_history", fix=fix) from fault
    for name in _KEPT:
        setattr(error, name, getattr(record, name))
    if record.usage is not None:
        ledger = Ledger.of_earlier_run(record.usage, record.seconds, record.history, record.counted_in)
        ledger.failed_turns = record.failed_turns
        if error.results_field is None:
            ledger.turn = AgentTurn.of_waiting(error)
        error.run = Run.of_ledger(ledger)
    return error


def _without_input(fault: Exception) -> str:
    """Return why a text cannot be read, without a word of it: errors are logged and shown."""
    if not isinstance(fault, pydantic.ValidationError):
        return str(fault)
    details = fault.errors(include_url=False, include_input=False)
    return listed((f"{pointer(each['loc']) or 'the text'}: {each['msg']}" for each in details), 3)


def resume(
    error: InputNeeded, tools: object, decisions: Any, timeout: float | None, *, partial: bool
) -> dspy.History:
    """Run the calls of the turn, and return the history with them."""
    refuse_swapped(tools, decisions, "resume")
    decls = awaiting.run(tools_of_turn(error, tools, decisions))
    return _with_turn(error, _run(error, decls, decisions, timeout, partial=partial))


async def aresume(
    error: InputNeeded, tools: object, decisions: Any, timeout: float | None, *, partial: bool
) -> dspy.History:
    """Run the calls of the turn side by side, and return the history with them."""
    refuse_swapped(tools, decisions, "aresume")
    decls = await awaiting.arun(tools_of_turn(error, tools, decisions))
    return _with_turn(error, await _arun(error, decls, decisions, timeout, partial=partial))


def results_of(
    error: InputNeeded, tools: object, decisions: Any, timeout: float | None, *, partial: bool
) -> ToolResults:
    """Run the calls of the turn, and return their results."""
    refuse_swapped(tools, decisions, "results_of")
    decls = awaiting.run(tools_of_turn(error, tools, decisions))
    return _run(error, decls, decisions, timeout, partial=partial)


async def aresults_of(
    error: InputNeeded, tools: object, decisions: Any, timeout: float | None, *, partial: bool
) -> ToolResults:
    """Run the calls of the turn side by side, and return their results."""
    refuse_swapped(tools, decisions, "aresults_of")
    decls = await awaiting.arun(tools_of_turn(error, tools, decisions))
    return await _arun(error, decls, decisions, timeout, partial=partial)


def _run(
    error: InputNeeded, decls: ToolDecls, decisions: Any, timeout: float | None, *, partial: bool
) -> ToolResults:
    turn = _checked_turn(error, decls, decisions, timeout, partial=partial)
    with _in_run(error) as watch:
        results = run_jobs(turn.calls, decls, turn.jobs, parallel=not error.one_by_one, watch=watch)
        return _results_of_turn(error, results)


async def _arun(
    error: InputNeeded, decls: ToolDecls, decisions: Any, timeout: float | None, *, partial: bool
) -> ToolResults:
    turn = _checked_turn(error, decls, decisions, timeout, partial=partial)
    with _in_run(error) as watch:
        results = await arun_jobs(turn.calls, decls, turn.jobs, parallel=not error.one_by_one, watch=watch)
        return _results_of_turn(error, results)


@contextmanager
def _in_run(error: InputNeeded) -> Generator["_Resumption"]:
    """Open a run that continues from what the waiting run has used and kept.

    If the program leaves it, the error has the results so far, what they used and the state: `resume` again
    runs only what had not begun, and continues to count.

    Yields:
        What keeps the result of each call at once.
    """
    turn = AgentTurn.of_waiting(error)
    resumption = _Resumption(error, turn)
    is_agents = error.results_field is None  # not that of a loop of the program's own
    with _link_to_trace(error), Run() as run:
        earlier = None if error.run is None else error.run.ledger
        if earlier is None or not run.ledger.is_inside(earlier):
            run.state.update(copy_of_state(error.state))  # otherwise the open run has a newer state
        run.ledger.resume(earlier, turn if is_agents else None, {call.id for call in error.calls})
        try:
            yield resumption
        except InputNeeded:
            raise
        except BaseException:
            resumption.leave()
            error.state = copy_of_state(run.state)
            error.run = run
            raise


def _link_to_trace(error: InputNeeded) -> AbstractContextManager[None]:
    """Return the context in which spans link to the trace in which the run waited."""
    tracer = tracer_here.get().tracer
    return nullcontext() if tracer is None or not error.trace else tracer.resuming(error.trace)


class _Resumption:
    """A turn that is resumed: the calls that began, and their results as they end.

    Args:
        error: the run that waited.
        turn: its turn.
    """

    def __init__(self, error: InputNeeded, turn: AgentTurn) -> None:
        self._error = error
        self._turn = turn
        self._results = {result.call_id: result for result in error.results}
        self._running: dict[str, Any] = {}
        self._was_left = False

    def begin(self, call: Any) -> None:
        """Note that a call begins to run."""
        self._running[call.id] = call
        self._turn.begin(call)

    def stop(self, call: Any, stop: CallStop) -> None:
        """Note that a call waits."""
        self._running.pop(call.id, None)
        self._turn.stop(call, stop)

    def cancel(self, call: Any) -> None:
        """Note that a call was cancelled with its turn."""
        self.take_result(ToolResult.failed(call, CANCELLED))

    def take_result(self, result: ToolResult) -> None:
        """Keep the result of a call, which may end after the run was left."""
        self._results[result.call_id] = result
        self._running.pop(result.call_id, None)
        self._turn.take_result(result)
        if self._was_left:
            self.leave()

    def leave(self) -> None:
        """Keep in the error what has ended, and what may still be running: neither runs a second time."""
        self._was_left = True
        running = [ToolResult.failed(call, NO_RESULT) for call in [*self._running.values()]]
        self._error.results = [*self._results.values(), *running]


class _ResumedTurn(NamedTuple):
    """The calls of the turn that run here, and what to do with each."""

    calls: ToolCalls
    jobs: list[Job]


def _checked_turn(
    error: InputNeeded, decls: ToolDecls, decisions: object, timeout: float | None, *, partial: bool
) -> _ResumedTurn:
    """Return what to do with each call, or raise the first reason to run nothing."""
    calls = _without_submit(error.calls, decls)
    turn_decisions = read_decisions(error, decls, decisions, partial=partial)
    earlier = turn_decisions.earlier(partial=partial)
    jobs = jobs_of(calls, decls, turn_decisions.approvals, timeout, earlier)
    if turn_decisions.open_approvals:  # the tools given now need no yes, but a person was asked
        raise missing_decisions(turn_decisions.open_approvals)
    return _ResumedTurn(calls, jobs)


def _results_of_turn(error: InputNeeded, turn: TurnResults) -> ToolResults:
    """Return the results of all calls of the turn, or raise the error with what is left to decide."""
    if turn.requests:
        place = {"event": error.event, "field": error.field, "results_field": error.results_field}
        left = turn.input_needed(error.history, parallel=not error.one_by_one, **place)
        left.calls = error.calls
        left.id = error.id
        raise left
    by_id = {result.call_id: result for result in turn.results}
    for call in error.calls:
        if call.id not in by_id:
            by_id[call.id] = ToolResult.failed(call, _NOT_TAKEN)
    return ToolResults.of(error.calls, by_id)


def with_results(error: InputNeeded, results: Mapping[str, ToolResult]) -> dspy.History:
    """Return the history with the turn that waited, and these results, by the ids of its calls."""
    return _with_turn(error, ToolResults.of(error.calls, results))


def _without_submit(calls: ToolCalls, decls: ToolDecls) -> ToolCalls:
    """Return the calls without those of an agent's own `submit`, which its loop alone can take."""

    def ends(call: Any) -> bool:
        is_agents = "submit" not in decls or is_submit(decls["submit"].func)
        return call.name == "submit" and is_agents and not isinstance(call, RefusedToolCall)

    return calls.model_copy(update={"tool_calls": [call for call in calls if not ends(call)]})


def _with_turn(error: InputNeeded, turn_results: ToolResults) -> dspy.History:
    event: dict[str, Any] = dict(error.event)
    calls = error.calls
    if error.results_field is not None:
        earlier_results = event.get(error.results_field) or ToolResults()
        event[error.results_field] = ToolResults.model_validate(earlier_results) + turn_results
    else:  # as `dspy.ReActV2` writes it
        rows = dspy.ToolCallResults(tool_call_results=[*map(agent_result, turn_results)])
        calls = calls.model_copy(update={"tool_call_results": rows})
    event[error.field] = calls
    return with_events(error.history, event)
