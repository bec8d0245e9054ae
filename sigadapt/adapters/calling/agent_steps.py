"""An agent's step inside of a run (`sigadapt.Run`): tell the run what is asked, and what comes back.

The run keeps the turn before any of its calls runs, and refuses a turn that would pass its limits.
"""

from collections.abc import Mapping
from typing import Any

from sigadapt.adapters.calling.call_record import AdapterCall, CallRecord
from sigadapt.adapters.response.waiting import inputs_of_turn, is_forced_submit, outputs_beside
from sigadapt.dspy_boundary.current_run import OpenTurn, current_ledger
from sigadapt.signatures.calls import RefusedToolCall, ToolCalls

_SUBMIT = "submit"


def begin_step(call: AdapterCall) -> OpenTurn | None:
    """Begin the step of an agent, whose question is kept also if the request fails."""
    ledger = current_ledger()
    history = call.inputs.get(call.plan.history_fields.history or "")
    if ledger is None or history is None:
        return None
    return ledger.begin_step(history, inputs_of_turn(call.plan, call.inputs))


def take_answer(turn: OpenTurn, record: CallRecord, outputs: Mapping[str, Any]) -> None:
    """Keep the calls of an answer, or raise why none of them may run."""
    plan = record.call.plan
    calls = outputs[plan.calls]
    ledger = current_ledger()
    if not isinstance(calls, ToolCalls) or ledger is None:
        return
    turn.take_answer(calls, record.decls, outputs_beside(plan, outputs), plan.calls)
    good = [call for call in calls if not isinstance(call, RefusedToolCall)]
    to_run = [call for call in good if call.name != _SUBMIT]
    if is_forced_submit(record.sent.canonical, record.decls):  # it is the only call that is run
        return
    # An agent ends by this call, so no more tokens or time are used.
    ledger.check_calls(len(to_run), is_last_turn=len(to_run) < len(good))
