"""The turn of a run that waits: run as was decided, and written into the history.

Each request of the turn needs a decision, whatever the tools say now: a tool that is given without its guard
would otherwise run unasked. The tools can only add to that: a call that needs a yes by now needs one too, as
in `ToolCalls.run`.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import dspy
from typing_extensions import Self

from sigadapt.dspy_boundary.internals import is_submit
from sigadapt.errors import InputNeeded
from sigadapt.json_values import is_mapping, is_object
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls, decls_of
from sigadapt.signatures.tool_functions.open_call import CallStop
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult, agent_result, message_of
from sigadapt.signatures.toolset import RequestContext, resolving
from sigadapt.signatures.transcript import rows_of, with_events
from sigadapt.turns.agent_turn import CANCELLED, NO_RESULT, AgentTurn
from sigadapt.turns.decisions import is_no, missing_decisions, read_decisions, rejection_in
from sigadapt.turns.jobs import jobs_of, refuse_swapped
from sigadapt.turns.running import TurnResults, arun_jobs, run_jobs

_LOG = logging.getLogger("sigadapt")
_NOT_TAKEN = "This was not taken: calls beside it waited for a person. Read their results, and submit again."


class ResumedTurn:
    """A turn that is resumed: what to do with each call, those that began, and their results as they end.

    Args:
        error: the run that waits.
        decls: the declarations of its tools now.
        decisions: what was decided, by the ids of the requests.
        timeout: as for `InputNeeded.resume`, and so is partial.

    Raises:
        InvalidHistory, InvalidOption: the first reason to run nothing.
    """

    def __init__(
        self, error: InputNeeded, decls: ToolDecls, decisions: object, timeout: float | None, *, partial: bool
    ) -> None:
        self.error = error
        self._decls = decls
        self._calls = _without_submit(error.calls, decls)
        decided = read_decisions(error, decls, decisions, partial=partial)
        earlier = decided.earlier(partial=partial)
        self._jobs = jobs_of(self._calls, decls, decided.approvals, timeout, earlier)
        if decided.open_approvals:  # the tools given now need no yes, but a person was asked
            raise missing_decisions(decided.open_approvals)
        self.kept = AgentTurn.of_waiting(error)
        """What a run around it keeps of the turn."""
        self._results = {result.call_id: result for result in error.results}
        self._running: dict[str, Any] = {}
        self._was_left = False

    @classmethod
    def of(
        cls,
        method: str,
        error: InputNeeded,
        tools: object,
        decisions: object,
        timeout: float | None,
        *,
        partial: bool,
    ) -> Steps[Self]:
        """Return the turn with the tools as they are now, for a method of `InputNeeded`, as steps."""
        refuse_swapped(tools, decisions, method)
        decls = yield from _tools_of_turn(error, tools, decisions)
        return cls(error, decls, decisions, timeout, partial=partial)

    def run(self) -> ToolResults:
        """Run what was decided, and return the results of all calls.

        Raises:
            InputNeeded: with what is left to decide.
        """
        parallel = not self.error.one_by_one
        return self._whole(run_jobs(self._calls, self._decls, self._jobs, parallel=parallel, watch=self))

    async def arun(self) -> ToolResults:
        """Do the same as `run` in async code."""
        parallel = not self.error.one_by_one
        jobs = arun_jobs(self._calls, self._decls, self._jobs, parallel=parallel, watch=self)
        return self._whole(await jobs)

    def _whole(self, turn: TurnResults) -> ToolResults:
        """Return the results of all calls of the turn, or raise the error with what is left to decide."""
        error = self.error
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

    # What the calls report while they run.

    def begin(self, call: Any) -> None:
        """Note that a call begins to run."""
        self._running[call.id] = call
        self.kept.begin(call)

    def stop(self, call: Any, stop: CallStop) -> None:
        """Note that a call waits."""
        self._running.pop(call.id, None)
        self.kept.stop(call, stop)

    def cancel(self, call: Any) -> None:
        """Note that a call was cancelled with its turn."""
        self.take_result(ToolResult.failed(call, CANCELLED))

    def take_result(self, result: ToolResult) -> None:
        """Keep the result of a call, which may end after the run was left."""
        self._results[result.call_id] = result
        self._running.pop(result.call_id, None)
        self.kept.take_result(result)
        if self._was_left:
            self.leave()

    def leave(self) -> None:
        """Keep in the error what has ended, and what may still be running: neither runs a second time."""
        self._was_left = True
        running = {call.id: ToolResult.failed(call, NO_RESULT) for call in [*self._running.values()]}
        results = {**running, **self._results}
        self.error.results = [results[call.id] for call in self.error.calls.in_order() if call.id in results]


def with_results(error: InputNeeded, results: ToolResults | Mapping[str, ToolResult]) -> dspy.History:
    """Return the history with the turn that waited, and the results of its calls."""
    turn_results = results if isinstance(results, ToolResults) else ToolResults.of(error.calls, results)
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


def _without_submit(calls: ToolCalls, decls: ToolDecls) -> ToolCalls:
    """Return the calls without those of an agent's own `submit`, which its loop alone can take."""

    def ends(call: Any) -> bool:
        is_agents = "submit" not in decls or is_submit(decls["submit"].func)
        return call.name == "submit" and is_agents and not isinstance(call, RefusedToolCall)

    return calls.model_copy(update={"tool_calls": [call for call in calls if not ends(call)]})


def _tools_of_turn(error: InputNeeded, tools: object, decisions: object) -> Steps[ToolDecls]:
    """Return the declarations of a program's tools for a turn that waits, as steps for `run` or `arun`.

    A turn of rejected calls alone needs none, so a server that is away keeps nobody from saying no. A tool
    may catch that its question was declined, so its server is asked, and is not needed.
    """
    if _is_over(error, decisions, rejection_in):
        return ToolDecls()
    if is_object(tools):  # functions by name, or one source
        return decls_of(tools)
    try:
        return (yield from resolving(tools, _request_of(error)))
    except Exception as failure:
        if not _is_over(error, decisions, is_no):
            raise
        _LOG.warning("the turn was declined without its tools: %s", message_of(failure))
        return ToolDecls()


def _request_of(error: InputNeeded) -> RequestContext:
    """Return the request of the turn as far as the run has kept it: its inputs and the conversation."""
    events = [*error.history.messages, error.event]
    inputs: dict[str, Any] = {}
    for row in rows_of(events, error.results_field, error.field):
        inputs.update({name: row.event[name] for name in row.plain})
    turn = {**error.event, error.field: error.calls}
    return RequestContext(inputs={**inputs, "history": with_events(error.history, turn)})


def _is_over(error: InputNeeded, decisions: object, ends: Callable[[ToolCall, object], object]) -> bool:
    """Return whether each call of the turn has its result, or ends by what was decided about it."""
    done = {result.call_id for result in error.results}
    if is_mapping(decisions):
        done |= {request.call.id for request in error.requests if ends(request, decisions.get(request.id))}
    return all(call.id in done or isinstance(call, RefusedToolCall) for call in error.calls)
