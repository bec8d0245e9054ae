"""The arguments of an answer's calls: compact, repaired and unwrapped where that is allowed, checked."""

from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.response.text_choice import RECOVERED
from sigadapt.adapters.response.typed_calls import with_compact_arguments
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
