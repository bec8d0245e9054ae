"""Go on with a run that waits for a person: run its turn as was decided, and write it into the history.

`ConfirmationNeeded` (errors.py) is the door to this file. The requests that it holds decide nothing here:
which calls want a yes follows from the calls and the tools, as in `ToolCalls.run`.
"""

from typing import Any

import dspy
import pydantic

from sigadapt.dspy_boundary.internals import is_submit
from sigadapt.errors import ConfirmationNeeded, InvalidHistory
from sigadapt.schemas.json_values import cut
from sigadapt.signatures.calls import RefusedToolCall, ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls, decls_of
from sigadapt.signatures.tool_results.results import ToolResults
from sigadapt.signatures.tool_results.tool_output import for_agent
from sigadapt.signatures.tool_results.tool_result import ToolResult

_NOT_TAKEN = "This was not taken: calls beside it waited for a person. Read their results, and submit again."


class _Saved(pydantic.BaseModel):
    """A ConfirmationNeeded as JSON. The event of the turn is a history of one, so that it is saved as one."""

    calls: ToolCalls
    requests: ToolCalls
    history: dspy.History
    event: dspy.History
    field: str
    results_field: str | None


def saved(error: ConfirmationNeeded) -> str:
    """Return the error as JSON text."""
    fields = {name: getattr(error, name) for name in _Saved.model_fields if name != "event"}
    try:
        return _Saved(**fields, event=dspy.History(messages=[error.event])).model_dump_json()
    except ValueError as why:
        reason = f"the run that waits cannot be saved: {cut(str(why))}"
        fix = "Give inputs that JSON can hold, or pickle the error."
        raise InvalidHistory(reason, code="unreadable_history", fix=fix) from why


def loaded(kind: type[ConfirmationNeeded], text: str | bytes) -> ConfirmationNeeded:
    """Return the error that was saved."""
    try:
        one = _Saved.model_validate_json(text)
        [event] = one.event.messages
    except ValueError as why:
        reason = f"it is no saved ConfirmationNeeded: {cut(str(why))}"
        fix = "Give what error.model_dump_json() wrote."
        raise InvalidHistory(reason, code="unreadable_history", fix=fix) from why
    return kind(one.calls, one.requests, one.history, event, one.field, one.results_field)


def resume(error: ConfirmationNeeded, tools: object, decisions: Any, timeout: float | None) -> dspy.History:
    """Run the calls of the turn, and return the history with them."""
    decls = decls_of(tools)
    return _with_turn(error, _taken(error.calls, decls).run(decls, decisions, timeout))


async def aresume(
    error: ConfirmationNeeded, tools: object, decisions: Any, timeout: float | None
) -> dspy.History:
    """Run the calls of the turn side by side, and return the history with them."""
    decls = decls_of(tools)
    return _with_turn(error, await _taken(error.calls, decls).arun(decls, decisions, timeout))


def _taken(calls: ToolCalls, decls: ToolDecls) -> ToolCalls:
    """Return the calls without those of an agent's own `submit`, which its loop alone can take."""

    def ends(call: Any) -> bool:
        is_own = "submit" not in decls or is_submit(decls["submit"].func)
        return call.name == "submit" and is_own and not isinstance(call, RefusedToolCall)

    return calls.model_copy(update={"tool_calls": [call for call in calls if not ends(call)]})


def _with_turn(error: ConfirmationNeeded, results: ToolResults) -> dspy.History:
    by_id = {result.call_id: result for result in results}
    for call in error.calls:
        if call.id not in by_id:
            by_id[call.id] = ToolResult.failed(call, _NOT_TAKEN)
    turn_results = ToolResults.of(error.calls, by_id)
    event, calls = dict(error.event), error.calls
    if error.results_field is not None:
        before = event.get(error.results_field) or ToolResults()
        event[error.results_field] = ToolResults.model_validate(before) + turn_results
    else:  # as `dspy.ReActV2` writes it
        values = [
            dspy.ToolCallResults.ToolCallResult(
                call_id=each.call_id,
                name=each.name,
                value=for_agent(each.value) if each.is_content else each.value,
                is_error=each.is_error,
            )
            for each in turn_results
        ]
        calls = calls.model_copy(update={"tool_call_results": dspy.ToolCallResults(tool_call_results=values)})
    event[error.field] = calls
    return error.history.model_copy(update={"messages": [*map(dict, error.history.messages), event]})
