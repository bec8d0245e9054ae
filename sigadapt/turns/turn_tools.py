"""The tools of a turn that waits, as its request had them: toolsets choose by the same inputs again."""

import logging
from collections.abc import Callable
from typing import Any

from sigadapt.errors import InputNeeded
from sigadapt.schemas.json_values import is_mapping, is_object
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import RefusedToolCall, ToolCall
from sigadapt.signatures.tool_decls import ToolDecls, decls_of
from sigadapt.signatures.tool_results.failures import message_of
from sigadapt.signatures.toolset import RequestContext, resolving
from sigadapt.signatures.transcript import rows_of, with_events
from sigadapt.turns.decisions import is_no, is_rejection

_LOG = logging.getLogger("sigadapt")


def tools_of_turn(error: InputNeeded, tools: object, decisions: object) -> Steps[ToolDecls]:
    """Return the declarations of a program's tools for a turn that waits, as steps for `run` or `arun`.

    A turn of rejected calls alone needs none, so a server that is away keeps nobody from saying no. A tool
    may catch that its question was declined, so its server is asked, and is not needed.
    """
    if _is_over(error, decisions, is_rejection):
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


def _is_over(error: InputNeeded, decisions: object, ends: Callable[[ToolCall, object], bool]) -> bool:
    """Return whether each call of the turn has its result, or ends by what was decided about it."""
    done = {result.call_id for result in error.results}
    if is_mapping(decisions):
        done |= {request.call.id for request in error.requests if ends(request, decisions.get(request.id))}
    return all(call.id in done or isinstance(call, RefusedToolCall) for call in error.calls)
