"""Approvals: stop a turn that wants a person's yes, and refuse an agent that would ask nobody."""

from collections.abc import Mapping
from typing import Any

import dspy

from sigadapt.adapters.calling.agents import calling_agent, is_forced_submit, is_inside_tool, is_one_by_one
from sigadapt.adapters.calling.call_record import AdapterCall
from sigadapt.adapters.plan import inputs_of_turn, outputs_beside
from sigadapt.adapters.request.canonical import Request
from sigadapt.schemas.json_values import is_sequence
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.calls.input_requests import question_about, request_for
from sigadapt.signatures.sources.runnable import asking_of, nobody_to_ask
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_functions.guards import waits_inside
from sigadapt.signatures.transcript import read, with_events, without_tracebacks
from sigadapt.turns.running import TurnResults


def refuse_unasked(tools: object, decls: ToolDecls) -> None:
    """Refuse an agent, which runs every call itself, if one of its tools wants a yes and asks nobody."""
    if not (is_sequence(tools) and any(isinstance(each, dspy.Tool) for each in tools)):
        return  # a loop by hand, which may ask
    for decl in decls.tools:
        if decl.requires_confirmation is not False and decl.func is not None and asking_of(decl.func) is None:
            raise nobody_to_ask(decl.name)


def stop_for_person(
    call: AdapterCall, decls: ToolDecls, request: Request, values: Mapping[str, Any], trace: str
) -> None:
    """Raise InputNeeded if calls among the output values want a yes that no tool asks for itself."""
    plan = call.plan
    inputs = call.inputs
    calls = values[plan.calls]
    if not isinstance(calls, ToolCalls) or is_forced_submit(request, decls):
        return
    asks = {decl.name for decl in decls.tools if asking_of(decl.func) is None}
    questions = [(each, *question_about(each, decls)) for each in calls if each.name in asks]
    requests = [
        request_for(each, args, reason, decls) for each, args, reason in questions if reason is not None
    ]
    if not requests:
        return
    if is_inside_tool():
        raise waits_inside(requests[0].call.name)
    fields = plan.history_fields
    history = inputs.get(fields.history) if fields.history else None
    before = dspy.History(messages=[]) if history is None else read(dspy.History, history, fields.history)
    # The agent goes on with the object that the caller gave, and adds to it.
    before = with_events(before)
    if call.adapter.options.tool_errors == "message":
        before = without_tracebacks(before)
    event = {**inputs_of_turn(plan, inputs), **outputs_beside(plan, values)}
    turn = TurnResults(calls, [], requests, {})
    place = {"event": event, "field": plan.calls, "results_field": fields.results}
    error = turn.input_needed(before, parallel=not is_one_by_one(calling_agent()), **place)
    error.trace = error.trace or trace  # a span of the program or the agent, else that of the request
    raise error
