"""Ends of an answer: its finish reason in canonical words, and the call that it cut off or withheld."""

from collections.abc import Mapping
from typing import Any

from sigadapt.providers.wire.raw_calls import MalformedCall, RawCall
from sigadapt.providers.wire.values import is_text
from sigadapt.schemas.arguments import CutOff
from sigadapt.schemas.json_values import compact, is_object

WITHHELD_CALLS = frozenset(("MALFORMED_FUNCTION_CALL", "malformed_tool_use"))
"""Finish reasons of an answer whose call the provider withholds: Gemini's and Bedrock's."""

MALFORMED_CALLS = WITHHELD_CALLS | {"UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
"""Finish reasons that report a call as unreadable, also behind a gateway."""

UNENDED = frozenset(("incomplete", "in_progress", "queued"))
"""Statuses of an answer that its provider has not ended, where it says no more: OpenAI's and Google's."""

CUTTING = frozenset(("length", "content_filter", "refusal", "error"))
"""Finish reasons of an answer that may have been cut off in its last call."""


def finish_word(value: Any, canonical: Mapping[str, str]) -> str | None:
    """Return the canonical word for a finish reason, else the provider's own; None if there is none."""
    if isinstance(value, str):
        return canonical.get(value) or value[:] or None  # the slice makes an SDK's enum member a plain str
    return None


def with_reported_call(calls: list[RawCall], finish: str | None, why: str | None) -> list[RawCall]:
    """Return the calls, and behind them the one that the provider reports as unreadable, if it does."""
    # A call that Gemini did not expect may be there as well: it is judged like any other.
    is_missing = finish in WITHHELD_CALLS or (finish in MALFORMED_CALLS and not calls)
    return [*calls, (None, None, MalformedCall(why or str(finish)))] if is_missing else calls


def details_in(value: Any) -> str | None:
    """Return what a provider says about the end of a turn: its message, else all that it sent as JSON."""
    if is_object(value):
        message = value.get("message")
        return message if is_text(message) else compact(value) if value else None
    return value if is_text(value) else None


def mark_last_cut_off(calls: list[RawCall], finish: str | None) -> list[RawCall]:
    """Return the calls, the last one as a `CutOff` if the finish reason says that the answer was cut."""
    if calls and (finish in CUTTING or finish in UNENDED):
        call_id, name, arguments = calls[-1]
        calls[-1] = (call_id, name, arguments if type(arguments) is CutOff else CutOff(arguments))
    return calls
