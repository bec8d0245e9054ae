"""Go on with a run that waits for a person: run its turn as was decided, and write it into the history.

`ConfirmationNeeded` (errors.py) is the door to this file. The requests that it holds decide nothing here:
which calls want a yes follows from the calls and the tools, as in `ToolCalls.run`.
"""

from typing import Any

import dspy
import pydantic

from sigadapt.dspy_boundary.current_run import current_ledger
from sigadapt.dspy_boundary.internals import is_submit
from sigadapt.errors import ConfirmationNeeded, InvalidHistory
from sigadapt.runs.ledger import Ledger
from sigadapt.runs.limits import Usage
from sigadapt.runs.run import Run
from sigadapt.schemas.json_values import cut
from sigadapt.signatures.calls import RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.confirmation import REJECTED, pin_of
from sigadapt.signatures.tool_decls import ToolDecls, awaited_decls, decls_of
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.signatures.tool_results.running import (
    Job,
    arun_jobs,
    changed_tool,
    decisions_of,
    jobs_of,
    refuse_swapped,
    run_jobs,
)
from sigadapt.signatures.tool_results.tool_result import ToolResult, agent_result
from sigadapt.signatures.transcript import with_events

_NOT_TAKEN = "This was not taken: calls beside it waited for a person. Read their results, and submit again."


class _RunRecord(pydantic.BaseModel):
    """A ConfirmationNeeded as JSON. The event of the turn is a history of one, so that it is saved as one."""

    calls: ToolCalls
    requests: ToolCalls  # for confirmation
    history: dspy.History
    event: dspy.History  # of one event: the turn that waits
    field: str  # the signature's field for calls
    results_field: str | None  # and that for their results
    usage: Usage | None = None  # what the run has used
    counted_in: list[str] = []  # the ids of the ledgers that counted it
    seconds: float = 0.0  # and how long it took


_SAVED = ("calls", "requests", "history", "field", "results_field")


def to_json(error: ConfirmationNeeded) -> str:
    """Return the error as JSON text."""
    fields = {name: getattr(error, name) for name in _SAVED}
    unknown: set[str] = set()
    if error.run is None:
        unknown = {"usage", "counted_in", "seconds"}  # which a mark of an earlier version does not cover
    else:
        ledger = error.run.ledger
        fields |= {"usage": ledger.usage, "counted_in": sorted(ledger.ids), "seconds": ledger.seconds}
    try:
        record = _RunRecord(**fields, event=dspy.History(messages=[error.event]))
        return record.model_dump_json(exclude=unknown)
    except ValueError as fault:
        reason = f"the run that waits cannot be saved: {cut(str(fault))}"
        fix = "Give inputs that JSON can hold, or pickle the error."
        raise InvalidHistory(reason, code="unreadable_history", fix=fix) from fault


def from_json(kind: type[ConfirmationNeeded], text: str | bytes) -> ConfirmationNeeded:
    """Return the error that was saved."""
    try:
        fields = _RunRecord.model_validate_json(text)
        [event] = fields.event.messages
    except ValueError as fault:
        reason = f"it is no saved ConfirmationNeeded: {cut(str(fault))}"
        fix = "Give what error.model_dump_json() wrote."
        raise InvalidHistory(reason, code="unreadable_history", fix=fix) from fault
    error = kind(fields.calls, fields.requests, fields.history, event, fields.field, fields.results_field)
    if fields.usage is not None:
        ledger = Ledger.of_earlier_run(fields.usage, fields.seconds, fields.history, fields.counted_in)
        error.run = Run.of_ledger(ledger)
    return error


def resume(error: ConfirmationNeeded, tools: object, decisions: Any, timeout: float | None) -> dspy.History:
    """Run the calls of the turn, and return the history with them."""
    refuse_swapped(tools, decisions, "resume")
    calls, jobs = _checked_jobs(error, decls_of(tools), decisions, timeout)
    _carry_usage(error)
    return _with_turn(error, run_jobs(calls, jobs))


async def aresume(
    error: ConfirmationNeeded, tools: object, decisions: Any, timeout: float | None
) -> dspy.History:
    """Run the calls of the turn side by side, and return the history with them."""
    refuse_swapped(tools, decisions, "aresume")
    calls, jobs = _checked_jobs(error, await awaited_decls(tools), decisions, timeout)
    _carry_usage(error)
    return _with_turn(error, await arun_jobs(calls, jobs))


def _carry_usage(error: ConfirmationNeeded) -> None:
    """Let the open run go on with what the run that waited has used."""
    ledger = current_ledger()
    if ledger is not None and error.run is not None:
        ledger.carry(error.run.ledger)


def _checked_jobs(
    error: ConfirmationNeeded, decls: ToolDecls, decisions: object, timeout: float | None
) -> tuple[ToolCalls, list[Job]]:
    """Return the calls to run, and what to do with each, or raise the first reason to run nothing.

    A rejection needs no tool, so it is taken by the request that was asked. Any other decision runs what the
    person was shown, so the tool must be declared as it was then.
    """
    by_request = decisions_of(decisions)
    rejections: dict[str, str] = {}
    remaining_decisions = dict(by_request)
    for request in error.requests:
        decision = by_request.get(request.id)
        if decision is False or isinstance(decision, str):
            del remaining_decisions[request.id]
            rejections[request.call.id] = decision or REJECTED
        elif decision is not None:
            _refuse_changed(request, decls)
    calls = _without_submit(error.calls, decls)
    rejected = [call for call in calls if call.id in rejections]
    remaining = [call for call in calls if call.id not in rejections]
    remaining_calls = calls.model_copy(update={"tool_calls": remaining})
    jobs = jobs_of(remaining_calls, decls, remaining_decisions, timeout)
    jobs += [Job(call, ToolResult.failed(call, rejections[call.id])) for call in rejected]
    return calls, sorted(jobs, key=lambda job: job.call.index)


def _refuse_changed(request: ToolCall, decls: ToolDecls) -> None:
    """Refuse a decision about a tool that is missing or declared otherwise than when the person was asked."""
    name = request.call.name
    pin = request.args.get("pin")
    decision = f"there is a decision about {request.id!r}, and"
    if pin is None:  # of an undeclared tool, or saved before requests had pins
        return
    if name not in decls:
        raise changed_tool(decision, name, "is not declared")
    if pin != pin_of(decls[name]):
        raise changed_tool(decision, name, "is declared otherwise than when it was asked about")


def _without_submit(calls: ToolCalls, decls: ToolDecls) -> ToolCalls:
    """Return the calls without those of an agent's own `submit`, which its loop alone can take."""

    def ends(call: Any) -> bool:
        is_agents = "submit" not in decls or is_submit(decls["submit"].func)
        return call.name == "submit" and is_agents and not isinstance(call, RefusedToolCall)

    return calls.model_copy(update={"tool_calls": [call for call in calls if not ends(call)]})


def _with_turn(error: ConfirmationNeeded, results: ToolResults) -> dspy.History:
    by_id = {result.call_id: result for result in results}
    for call in error.calls:
        if call.id not in by_id:
            by_id[call.id] = ToolResult.failed(call, _NOT_TAKEN)
    turn_results = ToolResults.of(error.calls, by_id)
    event = dict(error.event)
    calls = error.calls
    if error.results_field is not None:
        earlier_results = event.get(error.results_field) or ToolResults()
        event[error.results_field] = ToolResults.model_validate(earlier_results) + turn_results
    else:  # as `dspy.ReActV2` writes it
        rows = dspy.ToolCallResults(tool_call_results=[*map(agent_result, turn_results)])
        calls = calls.model_copy(update={"tool_call_results": rows})
    event[error.field] = calls
    return with_events(error.history, event)
