"""What is done to a Request before it is sent, and undone in the calls of its answer: `PASSES`, in order.

A pass has up to two halves, which stand in one file. `write` changes the request, or notes what does not
reach the provider: it is renamed, lowered (the same intent by other means) or dropped, or the call is refused
if the program depends on it (nothing silent). `read` reads the calls of the answer. It is asked of pieces of
a stream, too, so that it sends nothing.

PASSES is read forwards for the request and backwards for the answer: what stands first sees the request as
the program meant it, and the answer as the program gets it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from sigadapt.adapters.calling.call_record import CallRecord, RequestRecord
from sigadapt.adapters.passes.control_tokens import (
    break_tokens_of_tools,
    break_tokens_of_turns,
    restore_control_tokens,
)
from sigadapt.adapters.passes.names import (
    add_request_hash,
    choose_aliases,
    restore_names,
    write_aliases,
    write_ids,
)
from sigadapt.adapters.passes.prompts import write_prompt
from sigadapt.adapters.passes.questions import note_late_instructions, replace_halves, write_questions
from sigadapt.adapters.passes.results import bridge_results, write_results
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
from sigadapt.adapters.passes.tool_fields import (
    drop_searches,
    fit_tools,
    note_changed_tools,
    write_custom_calls,
)
from sigadapt.adapters.passes.tool_search import (
    count_tools_as_declared,
    offer_deferred_tools,
    separate_searches,
)
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.response.text_choice import RECOVERED
from sigadapt.adapters.response.typed_calls import with_compact_arguments
from sigadapt.providers.route import Route
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.calls.salvage import repair, unwrap


def compact_arguments(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Write the arguments anew where the client wrote text of what the provider sent as an object."""
    if not record.route.turns.writes_arguments:
        return calls
    if any(RECOVERED in call.altered for call in calls.in_order()):  # the text is what the model wrote
        return calls
    return with_compact_arguments(calls)


def repair_arguments(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Repair arguments that cannot be decoded, where repairs are allowed."""
    return repair(calls) if record.call.adapter.options.repair else calls


def unwrap_arguments(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Unwrap arguments that the model wrapped into another object, where that is allowed."""
    return unwrap(calls, record.decls) if record.call.adapter.options.unwrap else calls


def check_arguments(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Check calls against their declarations."""
    return calls.validated(record.decls) if record.call.adapter.options.validate_args else calls


R = TypeVar("R", bound=RequestRecord)
Write: TypeAlias = Callable[[Request, RequestRecord], Request]
Read: TypeAlias = Callable[[ToolCalls, CallRecord], ToolCalls]


class Pass(NamedTuple):
    """What one matter needs of a request, and of the calls of its answer."""

    write: Write | None = None
    read: Read | None = None
    of_turns: bool = False  # whether there is nothing to write without calls, results and turns of the model


_JUDGING = (
    Pass(read=check_arguments),
    Pass(read=unwrap_arguments),
    Pass(offer_deferred_tools, separate_searches),  # of repaired calls; the others are the program's
    Pass(read=repair_arguments),
)
"""What a Choice of a hook goes through, too."""

_FIT_TO_ROUTE = (
    Pass(fit_tool_choice),
    Pass(drop_settings),
    Pass(fit_tools),
    Pass(note_late_instructions),
    Pass(replace_halves),
    Pass(write_questions),
    Pass(check_states, of_turns=True),
    Pass(ask_for_reasoning),
    Pass(leave_unstored_reasoning, of_turns=True),
    Pass(write_custom_calls, of_turns=True),
    Pass(choose_aliases),
    Pass(note_lost_state, of_turns=True),
    Pass(write_aliases, restore_names),  # after the states, which have the names that the provider was sent
    Pass(write_ids, add_request_hash, of_turns=True),
    Pass(write_results),  # after the ids, which attachments name
    Pass(break_tokens_of_turns, restore_control_tokens, of_turns=True),  # of the texts that results have now
    Pass(break_tokens_of_tools),
    Pass(add_stand_ins, of_turns=True),
    Pass(bridge_results, of_turns=True),  # last of the messages, so that changes count them as they were
    Pass(drop_searches),  # last of the tools, so that changes count them as they were
    Pass(note_tool_settings),
    Pass(note_caveat),
)

PASSES = (
    Pass(read=refuse_unchosen_calls),  # a call that is bad already stays what it is
    *_JUDGING,
    Pass(read=compact_arguments),
    Pass(note_changed_tools, of_turns=True),
    Pass(write_server_tools),
    Pass(write_prompt),  # of the tools that are offered, in the form that every route takes
    *_FIT_TO_ROUTE,
    Pass(count_tools_as_declared),
)


def write(record: R, passes: Sequence[Pass] = PASSES) -> R:
    """Make the Request of a record fit for its route, or raise the reason why it cannot be sent there."""
    record.begin()
    rows = record.canonical["messages"]
    has_turns = any("turn" in row or "tool_calls" in row or row["role"] == "tool" for row in rows)
    for each in passes:
        if each.write is not None and (has_turns or not each.of_turns):
            record.request = each.write(record.request, record)
    return record


def read(calls: ToolCalls, record: CallRecord, passes: Sequence[Pass] = PASSES) -> ToolCalls:
    """Return the calls of an answer as the program gets them."""
    for each in reversed(passes):
        if each.read is not None:
            calls = each.read(calls, record)
    return calls


def judge(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Return calls that a hook gave, as calls of an answer are judged."""
    return read(calls, record, _JUDGING)


def lower(request: Request, route: Route) -> RequestRecord:
    """Make a Request fit for a route whose tools are offered as they are."""
    return write(RequestRecord(canonical=request, route=route), _FIT_TO_ROUTE)
