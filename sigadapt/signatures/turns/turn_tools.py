"""The tools of a turn that waits, as its request had them: toolsets choose by the same inputs again."""

from collections.abc import Mapping
from typing import Any

from sigadapt.errors import InputNeeded
from sigadapt.schemas.json_values import is_mapping, is_object
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import RefusedToolCall
from sigadapt.signatures.tool_decls import ToolDecls, decls_of
from sigadapt.signatures.toolset import RequestContext, resolving
from sigadapt.signatures.transcript import rows_of, with_events


def tools_of_turn(error: InputNeeded, tools: object, decisions: object) -> Steps[ToolDecls]:
    """Return the declarations of a program's tools for a turn that waits, as steps for `run` or `arun`.

    A turn of rejected calls alone needs none, so a server that is away keeps nobody from saying no.
    """
    if is_mapping(decisions) and _runs_nothing(error, decisions):
        return ToolDecls()
    if is_object(tools):  # functions by name, or one source
        return decls_of(tools)
    return (yield from resolving(tools, _request_of(error)))


def _request_of(error: InputNeeded) -> RequestContext:
    """Return the request of the turn as far as the run has kept it: its inputs and the conversation."""
    events = [*error.history.messages, error.event]
    inputs: dict[str, Any] = {}
    for row in rows_of(events, error.results_field, error.field):
        inputs.update({name: row.event[name] for name in row.plain})
    turn = {**error.event, error.field: error.calls}
    return RequestContext(inputs={**inputs, "history": with_events(error.history, turn)})


def _runs_nothing(error: InputNeeded, decisions: Mapping[Any, Any]) -> bool:
    """Return whether each call of the turn has its result, or is rejected."""
    done = {result.call_id for result in error.results}
    for request in error.requests:
        decision = decisions.get(request.id)
        if request.kind == "approval" and (decision is False or isinstance(decision, str)):
            done.add(request.call.id)
    return all(call.id in done or isinstance(call, RefusedToolCall) for call in error.calls)
