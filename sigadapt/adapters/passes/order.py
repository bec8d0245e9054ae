"""What is done to a Request before it is sent, and to the calls of its answer, in this order.

What does not reach the provider is renamed, lowered (the same intent by other means) or dropped, or the call
is refused if the program depends on it (nothing silent). Hooks get the record, and the model's history entry
keeps it. A pass over the answer undoes what a pass over the request did, and is beside it in its file.
"""

from collections.abc import Callable
from typing import TypeAlias

from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.passes.arguments import (
    check_arguments,
    compact_arguments,
    repair_arguments,
    unwrap_arguments,
)
from sigadapt.adapters.passes.bridges import bridge_results
from sigadapt.adapters.passes.content import (
    note_late_instructions,
    replace_halves,
    write_questions,
    write_results,
)
from sigadapt.adapters.passes.control_tokens import (
    break_tokens_of_tools,
    break_tokens_of_turns,
    restore_control_tokens,
)
from sigadapt.adapters.passes.custom_tools import write_custom_calls
from sigadapt.adapters.passes.names import (
    add_request_hash,
    choose_aliases,
    cut_leaked_tokens,
    restore_names,
    write_aliases,
    write_ids,
)
from sigadapt.adapters.passes.prompts import write_prompt
from sigadapt.adapters.passes.server_tools import write_server_tools
from sigadapt.adapters.passes.settings import (
    drop_settings,
    fit_tool_choice,
    note_caveat,
    note_tool_settings,
    refuse_unchosen_calls,
)
from sigadapt.adapters.passes.states import (
    add_stand_ins,
    ask_for_reasoning,
    check_states,
    leave_unstored_reasoning,
    note_lost_state,
)
from sigadapt.adapters.passes.tool_fields import drop_searches, fit_tools, note_changed_tools
from sigadapt.adapters.passes.tool_search import (
    count_tools_as_declared,
    offer_deferred_tools,
    separate_searches,
)
from sigadapt.adapters.request.canonical import Request
from sigadapt.providers.route import Route
from sigadapt.signatures.calls import ToolCalls

RequestPass: TypeAlias = Callable[[Request, RequestRecord], Request]
AnswerPass: TypeAlias = Callable[[ToolCalls, CallRecord], ToolCalls]

_ROUTE_PASSES: tuple[RequestPass, ...] = (
    fit_tool_choice,
    drop_settings,
    fit_tools,
    note_late_instructions,
    replace_halves,
    write_questions,
    check_states,
    ask_for_reasoning,
    leave_unstored_reasoning,
    write_custom_calls,
    choose_aliases,
    note_lost_state,
    write_aliases,  # after the states, which have the names that the provider was sent
    write_ids,
    write_results,  # after the ids, which attachments name
    break_tokens_of_turns,  # of the texts that results have now
    break_tokens_of_tools,
    add_stand_ins,
    bridge_results,  # last of the messages, so that changes count them as they were
    drop_searches,  # last of the tools, so that changes count them as they were
    note_tool_settings,
    note_caveat,
)

REQUEST_PASSES: tuple[RequestPass, ...] = (
    offer_deferred_tools,
    note_changed_tools,
    write_server_tools,
    write_prompt,  # of the tools that are offered, in the form that every route takes
    *_ROUTE_PASSES,
    count_tools_as_declared,
)

_OF_TURNS = frozenset[RequestPass](
    (
        note_changed_tools,
        check_states,
        leave_unstored_reasoning,
        note_lost_state,
        write_ids,
        break_tokens_of_turns,
        add_stand_ins,
        bridge_results,
    )
)
"""What has nothing to do in a request without calls, results and turns of the model."""

_FIRST_PASSES = tuple(write for write in REQUEST_PASSES if write not in _OF_TURNS)

CHECKS: tuple[AnswerPass, ...] = (
    repair_arguments,
    separate_searches,  # of repaired calls; the others are the program's
    unwrap_arguments,
    check_arguments,
)
"""What a Choice of a hook goes through, too."""

ANSWER_PASSES: tuple[AnswerPass, ...] = (
    add_request_hash,
    cut_leaked_tokens,
    restore_names,
    restore_control_tokens,
    compact_arguments,
    *CHECKS,
    refuse_unchosen_calls,  # last: a call that is bad already stays what it is
)


def write_request(record: RequestRecord) -> RequestRecord:
    """Make the Request of a record fit for its route, or raise the reason why it cannot be sent there."""
    rows = record.request["messages"]
    has_turns = any("turn" in row or "tool_calls" in row or row["role"] == "tool" for row in rows)
    for write in REQUEST_PASSES if has_turns else _FIRST_PASSES:
        record.request = write(record.request, record)
    return record


def read_calls(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Return the calls of an answer as the program gets them."""
    for read in ANSWER_PASSES:
        calls = read(calls, record)
    return calls


def lower(request: Request, route: Route) -> RequestRecord:
    """Make a Request fit for a route whose tools are offered as they are."""
    record = RequestRecord(canonical=request, request=request, route=route)
    for write in _ROUTE_PASSES:
        record.request = write(record.request, record)
    return record
