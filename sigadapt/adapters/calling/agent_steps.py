"""A step of an agent: keep its turn from the request on, and stop it at a limit or for a person's yes.

The turn is kept before any of its calls runs (`agent_turn.py`). The run around, if there is one
(`sigadapt.Run`), counts it. A turn that wants a yes stops with InputNeeded; an agent that would ask nobody is
refused.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import dspy

from sigadapt.adapters.calling.agents import (
    calling_agent,
    is_forced_submit,
    is_inside_tool,
    is_one_by_one,
    refuse_taken_names,
)
from sigadapt.adapters.calling.call_record import AdapterCall, CallRecord
from sigadapt.adapters.plan import inputs_of_turn, outputs_beside, refuse_invented_work
from sigadapt.adapters.request.canonical import Request
from sigadapt.dspy_boundary.current_run import current_ledger, open_turn
from sigadapt.dspy_boundary.internals import SUBMIT
from sigadapt.schemas.json_values import is_sequence
from sigadapt.signatures.calls import RefusedToolCall, ToolCalls
from sigadapt.signatures.calls.input_requests import question_about, request_for
from sigadapt.signatures.sources.runnable import asking_of, nobody_to_ask
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_functions.guards import waits_inside
from sigadapt.signatures.tool_functions.tool_context import cannot_wait
from sigadapt.signatures.transcript import read, with_events, without_tracebacks
from sigadapt.turns.agent_turn import AgentTurn
from sigadapt.turns.running import TurnResults


def begin_step(call: AdapterCall) -> AgentTurn | None:
    """Begin the step of an agent, whose question is kept also if the request fails; None without an agent.

    Raises:
        InputNeeded: if a call of the agent's last turn waits.
        InvalidSignature: for an agent with outputs of what server tools did, or with a name that it uses.
    """
    agent = calling_agent()
    if agent is None:
        return None
    one_by_one = is_one_by_one(agent)
    if one_by_one:  # `sigadapt.ReAct` looks when it is made
        refuse_taken_names(agent.signature)
        refuse_invented_work(agent.signature)
    earlier = open_turn.get()
    if isinstance(earlier, AgentTurn) and earlier.agent is agent and earlier.is_waiting:
        open_turn.set(None)
        earlier.leave_out()
        raise earlier.input_needed()
    history = call.inputs.get(call.plan.history_fields.history or "")
    if history is None:
        return None
    turn = AgentTurn(history, inputs_of_turn(call.plan, call.inputs), agent)
    turn.is_one_by_one = one_by_one
    turn.keeps_tracebacks = call.adapter.options.tool_errors == "traceback"
    ledger = current_ledger()
    if ledger is not None:
        ledger.begin_step(turn)
    return turn


def take_answer(turn: AgentTurn, record: CallRecord, outputs: Mapping[str, Any]) -> None:
    """Keep the calls of an answer, or raise why none of them may run.

    Raises:
        InvalidToolDecl: `nobody_to_ask`, for a call whose result comes from elsewhere, in a turn that ends.
        LimitExceeded: for calls that the run around may not make.
    """
    plan = record.call.plan
    calls = outputs[plan.calls]
    if not isinstance(calls, ToolCalls):
        return
    turn.take_answer(calls, record.decls, outputs_beside(plan, outputs), plan.calls)
    if is_forced_submit(record.canonical, record.decls):  # it is the only call that is run
        return
    good = [call for call in calls if not isinstance(call, RefusedToolCall)]
    to_run = [call for call in good if call.name != SUBMIT]
    is_last_turn = len(to_run) < len(good) or turn.answer is not None
    if is_inside_tool():
        turn.refuse_waiting(waits_inside)
    elif is_last_turn and turn.is_one_by_one:
        # DSPy's agent ends by `submit`, whatever the calls beside it do.
        turn.refuse_waiting(partial(cannot_wait, "the call of `submit` beside it ends the run"))
        for call in to_run:
            if call.name in record.decls and record.decls[call.name].external:
                raise cannot_wait("the call of `submit` beside it ends the run", call.name)
    ledger = current_ledger()
    if ledger is not None:
        # An agent ends by this call, so no more tokens or time are used.
        ledger.check_calls(len(to_run), is_last_turn=is_last_turn)


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
