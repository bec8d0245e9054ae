"""Approvals: stop a turn that wants a person's yes, and refuse an agent that would ask nobody."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import dspy

from sigadapt.adapters.calling.call_record import AdapterCall
from sigadapt.adapters.plan import Plan
from sigadapt.adapters.request.canonical import Request
from sigadapt.dspy_boundary.contract import AGENTS, ReActV2
from sigadapt.dspy_boundary.current_run import current_ledger
from sigadapt.dspy_boundary.internals import is_submit, settings
from sigadapt.schemas.json_values import is_object, is_sequence
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


def inputs_of_turn(plan: Plan, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a request that the event of its turn holds."""
    names = [*plan.text_signature.input_fields, plan.history_fields.results]
    return {name: inputs[name] for name in names if name and inputs.get(name) is not None}


def outputs_beside(plan: Plan, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs beside the calls that the event of a turn holds."""
    names = [name for name in plan.outputs if name != plan.calls]
    return {name: values[name] for name in names if values.get(name) is not None}


def is_forced_submit(request: Request, decls: ToolDecls) -> bool:
    """Return whether this is the last request of `dspy.ReActV2`, which drops all calls but `submit`."""
    choice = request.get("tool_choice")
    function: Any = choice.get("function") if is_object(choice) else None
    name: Any = function.get("name") if is_object(function) else None
    return name in decls and is_submit(decls[name].func)


def calling_agent() -> Any:
    """Return the agent of DSPy's whose predictor runs here; None outside of one."""
    modules: list[Any] = settings.caller_modules or []
    if len(modules) < 2 or not isinstance(modules[-2], ReActV2) or modules[-1] is not modules[-2].react:
        return None
    return modules[-2]


def is_one_by_one(agent: Any) -> bool:
    """Return whether an agent runs the calls of a turn one by one, as DSPy's own loop does."""
    return agent is not None and not getattr(agent, "ends_by_itself", False)


def is_inside_tool() -> bool:
    """Return whether this program runs inside of a tool of one of DSPy's agents."""
    ledger = current_ledger()
    if ledger is not None and ledger.is_in_resumed_turn:
        return True
    around: list[Any] = settings.caller_modules or []
    return any(
        isinstance(outer, AGENTS) and all(part is not inner for _, part in outer.named_sub_modules())
        for outer, inner in pairwise(around)
    )
