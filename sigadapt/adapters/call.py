"""The flow of one call with tool fields, top to bottom, for sync and async alike.

    Signature -> Plan -> Request -> (dspy.LM) -> Response -> Choice -> outputs

`steps` does three things in a row. `prepare` makes the Request and finds every error that can be found before
it is sent (fail before the call). `_send_and_read` sends it and reads each CandidateAnswer: its Response
becomes a Reading (calls not decoded), then a Choice (typed calls). `finish` turns each CandidateAnswer into
output values.

All of them return generators, which yield what takes time: a request to send, an async hook, or a text that
a second model parses. `run` and `arun` in `signatures/awaiting.py` drive the same code, one without and one
with `await`.

A CandidateAnswer is one record that grows. It holds:

    response   what `dspy.LM` returned, in lm15's type
    reading    text, reasoning, calls (not decoded) and finish reason, as the provider's file reads them
    choice     the same with typed calls; users see it
    failure    the error that ended asking again, if one did
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

from sigadapt.adapters.calling.agent_steps import begin_step, stop_for_person, take_answer
from sigadapt.adapters.calling.agent_words import words_in
from sigadapt.adapters.calling.answers import checked_choice, read_choice, recover_hint
from sigadapt.adapters.calling.call_record import AdapterCall, CallRecord
from sigadapt.adapters.calling.calling import prompted_after, refuses_tools
from sigadapt.adapters.calling.follow_ups import Exchange, reask_until_valid, whole_answer
from sigadapt.adapters.calling.preparation import prepare, refuse_large
from sigadapt.adapters.hooks import CallsBefore, before_request, first_choice
from sigadapt.adapters.lm.traces import report, watches
from sigadapt.adapters.lm.transport import send
from sigadapt.adapters.outputs import (
    Parse,
    outputs_beside_calls,
    outputs_of,
    refuse_disobedience,
    refuse_no_answer,
    settle_bad_calls,
    with_server_work,
)
from sigadapt.adapters.passes.order import write
from sigadapt.adapters.plan import native_values
from sigadapt.adapters.request.canonical import forces_call
from sigadapt.adapters.response.choice import CandidateAnswer, Choice
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import ToolCalls

Outputs: TypeAlias = list[dict[str, Any]]


def steps(call: AdapterCall) -> Steps[Outputs]:
    """Run the whole flow of a call and return one dict of output values per candidate."""
    if call.plan.history_fields.history is not None:
        call = call._replace(turn=begin_step(call))
    turn = call.turn
    record = yield from prepare(call)
    # DSPy keeps the inputs in its trace, and makes demonstrations of it. With functions in them, these could
    # neither be pickled nor saved as JSON, so the tools become their declarations.
    if call.inputs.get(call.plan.tools) is not None:
        call.inputs[call.plan.tools] = record.decls
    outputs: Outputs = []
    for last_record, answer in (yield from _send_and_read(record)):
        outputs.append((yield from finish(last_record, answer)))
        if turn is not None and len(outputs) == 1:
            take_answer(turn, last_record, outputs[0])
        if call.adapter.options.confirm:
            stop_for_person(call, record.decls, record.canonical, outputs[-1], answer.trace)
    return outputs


def _send_and_read(record: CallRecord) -> Steps[list[Exchange]]:
    """Send the request and return every candidate's answer, as the hooks changed it."""
    options = record.call.adapter.options
    # Hooks see the canonical Request, so what they change is made fit for the route like the rest.
    if options.hooks:
        request = yield from before_request(options.hooks, record.canonical, record.context)
        if isinstance(request, Choice):
            return [(record, CandidateAnswer(None, choice=checked_choice(record, request)))]
        record.canonical = request
    write(record)
    if options.max_tool_bytes is not None:
        refuse_large(record, options.max_tool_bytes, record.plan.tools)
    exchanges: list[Exchange] = []
    try:
        try:
            candidates = yield from send(record)
        except Exception as error:
            if not (record.calling.is_tentative and refuses_tools(error)):
                raise
            record.calling = prompted_after(record.calling, record.call.lm, error)
            candidates = yield from send(write(record))
        for number, answer in enumerate(candidates):
            candidate = record if record.controls.candidates == 1 else record.for_candidate(number)
            exchanges.append((yield from _follow_up(candidate, answer)))
    except Exception as error:
        replacement = yield from first_choice(options.hooks, "on_error", error, record.context)
        if replacement is None:
            raise
        exchanges = [(record, CandidateAnswer(None, choice=checked_choice(record, replacement)))]
    for latest, answer in exchanges if options.hooks else ():
        before = read_choice(latest, answer)
        calls_before = CallsBefore(before)
        replacement = yield from first_choice(options.hooks, "after_choice", before, latest.context)
        choice = before if replacement is None else replacement
        changed = calls_before.with_other_calls(choice)
        answer.choice = choice if changed is None else checked_choice(latest, changed)
    return exchanges


def _follow_up(record: CallRecord, answer: CandidateAnswer) -> Steps[Exchange]:
    """Return the answer that one candidate ends with, after what its first one asks for."""
    options = record.call.adapter.options
    exchange = record, answer
    if record.search is not None or answer.reading.finish == "pause":
        exchange = yield from whole_answer(record, answer)
    if options.on_invalid == "reask":
        exchange = yield from reask_until_valid(*exchange, options.max_reasks)
    return exchange


def finish(record: CallRecord, answer: CandidateAnswer) -> Steps[dict[str, Any]]:
    """Turn one candidate's Choice into output values, or raise why it holds none (`outputs.py`)."""
    call = record.call
    choice = read_choice(record, answer)
    outputs = _outputs(record, answer, choice, call.adapter.options.hooks)
    if not watches(call.adapter):
        return outputs
    return report(call.adapter, call.signature, choice.text, outputs, Parse)


def _outputs(
    record: CallRecord, answer: CandidateAnswer, choice: Choice, hooks: Sequence[Any]
) -> Steps[dict[str, Any]]:
    call = record.call
    plan = record.plan
    tool_choice = record.tool_choice if "tool_choice" in record.canonical else None
    try:
        refuse_no_answer(choice, plan)
        choice = settle_bad_calls(choice, call.adapter.options, plan, call.signature, answer.failure)
        if tool_choice is not None and forces_call(tool_choice):
            refuse_disobedience(choice, plan, call.signature)
        values = outputs_beside_calls(call.adapter, plan, choice)
        if values is None and call.turn is not None:
            words = yield from words_in(call.turn.agent, call.adapter, call.plan, choice)
            if words is not None:
                call.turn.say(words.answer)
                values = words.outputs
        if values is None:
            values = yield from outputs_of(
                call.adapter, plan, call.signature, choice, partial(recover_hint, record)
            )
        if values[plan.calls] is None and plan.empty_calls and not record.is_native:
            values = {**values, plan.calls: ToolCalls(tool_calls=[])}
        calls = values[plan.calls]
        before = record.earlier.searches
        if before and isinstance(calls, ToolCalls) and not calls:  # the searches that led to these words
            turn = calls.turn.model_copy(update={"before": before})
            values = {**values, plan.calls: calls.model_copy(update={"turn": turn})}
        if plan.work or choice.files.root:
            values = with_server_work(plan, choice, values)
        if not (plan.native_fields or getattr(answer.response, "logprobs", None)):
            return values
        native_types = call.adapter.native_response_types
        return values | native_values(plan, native_types, answer.response, choice.reasoning)
    except Exception as error:
        replacement = yield from first_choice(hooks, "on_error", error, record.context)
        if replacement is None:
            raise
        return (yield from _outputs(record, CandidateAnswer(None), checked_choice(record, replacement), ()))
