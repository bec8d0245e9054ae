"""Save a run that waits, and go on with it: its turn is run as was decided, in a run that continues from it.

`InputNeeded` (errors.py) is the door to this file.
"""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from math import isfinite
from typing import Any

import dspy
import pydantic

from sigadapt.dspy_boundary.current_run import inside_tool, tracer_here
from sigadapt.errors import InputNeeded, InvalidHistory, InvalidToolDecl
from sigadapt.json_values import ARGUMENT_LEVELS, cut, fault_in, listed, pointer
from sigadapt.providers.usage import Usage
from sigadapt.runs.ledger import Ledger
from sigadapt.runs.run import Run
from sigadapt.schemas.caches import WeakCache
from sigadapt.signatures.awaiting import arun, run
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_functions.open_call import CallProgress
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.turns.agent_turn import AgentTurn
from sigadapt.turns.decisions import check_shown
from sigadapt.turns.resumed_turn import ResumedTurn, with_results
from sigadapt.turns.running import copy_of_state


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
        calls = {call.id: call for call in record.calls}
        for request in record.requests:
            check_shown(request, calls, record.progress)
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
    error: InputNeeded, tools: object, decisions: object, timeout: float | None, *, partial: bool
) -> dspy.History:
    """Run the calls of the turn, and return the history with them."""
    turn = run(ResumedTurn.of("resume", error, tools, decisions, timeout, partial=partial))
    with _in_run(turn) as resumed:
        results = turn.run()
    return _history_of(resumed, with_results(error, results))


async def aresume(
    error: InputNeeded, tools: object, decisions: object, timeout: float | None, *, partial: bool
) -> dspy.History:
    """Run the calls of the turn side by side, and return the history with them."""
    turn = await arun(ResumedTurn.of("aresume", error, tools, decisions, timeout, partial=partial))
    with _in_run(turn) as resumed:
        results = await turn.arun()
    return _history_of(resumed, with_results(error, results))


def results_of(
    error: InputNeeded, tools: object, decisions: object, timeout: float | None, *, partial: bool
) -> ToolResults:
    """Run the calls of the turn, and return their results."""
    turn = run(ResumedTurn.of("results_of", error, tools, decisions, timeout, partial=partial))
    with _in_run(turn):
        return turn.run()


async def aresults_of(
    error: InputNeeded, tools: object, decisions: object, timeout: float | None, *, partial: bool
) -> ToolResults:
    """Run the calls of the turn side by side, and return their results."""
    turn = await arun(ResumedTurn.of("aresults_of", error, tools, decisions, timeout, partial=partial))
    with _in_run(turn):
        return await turn.arun()


_resumed_runs: WeakCache[Run[Any]] = WeakCache()
"""The run that resumed the turn of a history, of each one that was resumed outside of any other run."""


def resumed_run(history: object) -> Run[Any] | None:
    """Return the run to go on with, for an agent that gets what `resume` returned."""
    return _resumed_runs.get(history)


def _history_of(resumed: Run[Any], history: dspy.History) -> dspy.History:
    if resumed.ledger.outer is None:  # no other run knows what this one used and kept
        _resumed_runs.put(history, resumed)
    return history


@contextmanager
def _in_run(turn: ResumedTurn) -> Generator[Run[Any]]:
    """Open a run that continues from what the waiting run has used and kept.

    If the program leaves it, the error has the results so far, what they used and the state: `resume` again
    runs only what had not begun, and continues to count.
    """
    error = turn.error
    is_agents = error.results_field is None  # not that of a loop of the program's own
    tracer = tracer_here.get().tracer
    with nullcontext() if tracer is None or not error.trace else tracer.resuming(error.trace), Run() as run:
        earlier = None if error.run is None else error.run.ledger
        if earlier is None or not run.ledger.is_inside(earlier):
            run.state.update(copy_of_state(error.state))  # otherwise the open run has a newer state
        run.ledger.resume(earlier, turn.kept if is_agents else None, {call.id for call in error.calls})
        try:
            with inside_tool(None):  # only now: the turn itself is resumed outside of it
                yield run
        except InputNeeded:
            raise
        except BaseException:
            turn.leave()
            error.state = copy_of_state(run.state)
            error.run = run
            raise
