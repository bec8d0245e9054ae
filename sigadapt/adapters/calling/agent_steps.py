"""A step of an agent: keep its turn from the request on, and stop it at a limit or for a person's yes.

The turn is kept before any of its calls runs (`agent_turn.py`). The run around, if there is one
(`sigadapt.Run`), counts it. A turn that wants a yes stops with InputNeeded; an agent that would ask nobody is
refused. A call may also come from a program inside of a tool of an agent, or be a user's own.

The fields of an agent cannot have names that DSPy's loop uses for something else. DSPy refuses some of them.
Under the others, it would drop an input without a word, take it for an option, or run the whole agent and
then lose its answer. `tests/runs/test_taken_names.py` tries every name that DSPy's code between a program
and its model has.
"""

import ast
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import dspy

from sigadapt.adapters.calling.call_record import AdapterCall, CallRecord
from sigadapt.adapters.plan import inputs_of_turn, outputs_beside, refuse_invented_work
from sigadapt.adapters.request.canonical import Request
from sigadapt.dspy_boundary.contract import ReActV2
from sigadapt.dspy_boundary.current_run import agents_around, current_ledger, open_turn
from sigadapt.dspy_boundary.internals import SUBMIT, is_submit, settings
from sigadapt.errors import InvalidSignature
from sigadapt.json_values import is_object, is_sequence
from sigadapt.signatures.calls import RefusedToolCall, ToolCalls
from sigadapt.signatures.calls.input_requests import question_about, request_for
from sigadapt.signatures.sources.runnable import asking_of, nobody_to_ask
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_functions.guards import waits_inside
from sigadapt.signatures.tool_functions.tool_context import cannot_wait
from sigadapt.signatures.transcript import read, with_events, without_tracebacks
from sigadapt.turns.agent_turn import AgentTurn
from sigadapt.turns.running import TurnResults


def calling_agent() -> Any:
    """Return the agent of DSPy's whose predictor runs here; None outside of one."""
    modules: list[Any] = settings.caller_modules or []
    if len(modules) < 2 or not isinstance(modules[-2], ReActV2) or modules[-1] is not modules[-2].react:
        return None
    return modules[-2]


def is_one_by_one(agent: Any) -> bool:
    """Return whether an agent runs the calls of a turn one by one, as DSPy's own loop does."""
    return agent is not None and not getattr(agent, "ends_by_itself", False)


def is_forced_submit(request: Request, decls: ToolDecls) -> bool:
    """Return whether this is the last request of `dspy.ReActV2`, which drops all calls but `submit`."""
    choice = request.get("tool_choice")
    function: Any = choice.get("function") if is_object(choice) else None
    name: Any = function.get("name") if is_object(function) else None
    return name in decls and is_submit(decls[name].func)


_ATTRIBUTES = dict.fromkeys(
    ("signature", "instructions", "fields", "input_fields", "output_fields"),
    "DSPy's signatures have an attribute of this name",
)
_CALLS = dict.fromkeys(("self", "instance"), "a method of DSPy's has a parameter of this name")
_TURNS = {
    "tool_calls": "the agent's turns have their calls under this name",
    "next_thought": "the agent's turns have their thoughts under this name",
}
_INPUTS = {
    **_ATTRIBUTES,
    **_CALLS,
    **_TURNS,
    **dict.fromkeys(("config", "demos", "lm", "new_signature"), "`dspy.Predict` takes it as its own option"),
    "completions": "a method of DSPy's has a parameter of this name",
    "max_iters": "it is an option of the agent's call",
}
_OUTPUTS = {**_ATTRIBUTES, **_CALLS, **_TURNS, "base": "`dspy.Prediction` takes it for another prediction"}


def refuse_taken_names(signature: Any) -> None:
    """Refuse a signature, as a class or as text, with a field whose name an agent uses itself.

    Raises:
        InvalidSignature: with the name of the field.
    """
    if isinstance(signature, str):  # DSPy cannot make a class of some of these
        inputs, _, outputs = signature.partition("->")
        _refuse("input", _names_in(inputs), _INPUTS)
        _refuse("output", _names_in(outputs), _OUTPUTS)
        return
    fields: dict[str, Any] = getattr(signature, "model_fields", {})
    inputs_of_class = [name for name, field in fields.items() if _is_input(field)]
    _refuse("input", inputs_of_class, _INPUTS)
    _refuse("output", fields.keys() - inputs_of_class, _OUTPUTS)


def _is_input(field: Any) -> bool:
    extra: dict[str, Any] = field.json_schema_extra or {}
    return extra.get("__dspy_field_type") == "input"


def _names_in(fields: str) -> list[str]:
    """Return the names of fields in a text, which DSPy reads as parameters of a function."""
    try:
        parameters: Any = ast.parse(f"def f({fields}): pass").body[0]
    except SyntaxError:
        return []  # DSPy says what is wrong with it
    return [parameter.arg for parameter in parameters.args.args]


def _refuse(side: str, names: Iterable[str], taken: dict[str, str]) -> None:
    for name in names:
        if name in taken:
            raise InvalidSignature(
                f"an agent cannot have an {side} of this name: {taken[name]}",
                field=name,
                fix="Rename it in the signature.",
            )


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
    if agents_around():
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
    if agents_around():
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
