"""One candidate of an answer as a provider's file reads it (`Reading`), its parts (`Part`), and its end.

A provider's file says what each block of an answer is, once. What was said, thought and called, which call
the end cut off, and what goes back on the next turn all follow from the parts.

Claude signs its thinking blocks, Gemini signs parts, OpenAI encrypts its reasoning. Without them, in their
places, the provider refuses the next request or answers worse. The state of a turn is therefore the content
that the provider sent, in order (the same conversation):

    {"dialect": "anthropic", "blocks": [{"type": "thinking", ...}, {"type": "tool_use", ...}], "ids": ["c1"]}

The block of a call lacks the arguments, because the call itself has them and a program may change it. `ids`
are the ids of the calls, in order, as the conversation has them: servers send none, or one twice. A state may
also have `fields`, what the body of the next request needs for this turn (Anthropic's `container`), `lost`,
the names of what the turn held and no request can, `endpoint`, the OpenAI-like server or gateway that it came
from: the prefix of the model's name and the host of its address, and `stored`, which is false if the provider
was asked to store nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sigadapt.json_values import ARGUMENT_LEVELS, Json, compact, fault_in, is_object
from sigadapt.providers.wire.values import MalformedCall, RawCall, is_text
from sigadapt.schemas.arguments import CutOff
from sigadapt.signatures.server_tools import NO_WORK, ServerWork

MOST_VALUES = 100_000
"""How many values a block of provider state may hold."""

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


class Part(NamedTuple):
    """What one block of an answer is."""

    kind: str  # `text`, `call`, `thinking` that must lead to something, "" for nothing; else its provider's
    more: str  # the names of what it holds beyond text and call, and its provider wants back; usually none
    block: Json  # as it came, but a call's without the arguments; empty if it can't go back
    plain: Json | None = None  # the block without what `more` names; None if nothing is left
    text: Any = None  # what it says to the user; None between two texts begins a paragraph
    thinking: Any = None  # the thinking that it shows
    call: RawCall | None = None  # what it asks to run; None for a call that the provider has answered


def text_part(
    block: Json, text: Any, more: str = "", plain: Json | None = None, thinking: Any = None
) -> Part:
    """Return the part of a block that holds text; one of no kind if the text is empty."""
    kind = "text" if text else ""
    return Part(kind, more, block, plain, text, thinking)


class Reading(NamedTuple):
    """One candidate of a Response as a provider's file reads it; its calls are not decoded yet."""

    text: str | None  # what the model says to the user
    reasoning: str | None  # the thinking that the provider shows
    calls: list[RawCall]  # each its id, its name and its arguments as they came
    # Why the answer ended: a canonical word where there is one (`stop`, `tool_calls`, `length`,
    # `content_filter`, `refusal`, `pause`, `error`), else the provider's own. None after a broken stream.
    finish: str | None
    state: Json | None = None  # what the provider wants back on the next turn (as above)
    finish_message: str | None = None  # what the provider says about the end, such as a refusal's category
    commentary: str | None = None  # what the model said beside the answer, where the provider marks that
    error: Any = None  # the error that ended the answer, as sent
    offered: str | None = None  # a hash of the tools it was asked with; None if nothing is compared
    work: ServerWork = NO_WORK  # what the provider's own tools did
    wire: str | None = None  # the name of the wire format that it was read in; None if it is of none

    @property
    def is_empty(self) -> bool:
        """Whether the candidate holds neither text nor reasoning nor calls nor the work of server tools."""
        return not (self.text or self.reasoning or self.calls or self.commentary or any(self.work))


def without_answered_call(part: Part, answered: Sequence[Any]) -> Part:
    """Return a part that asks for nothing if its call's id is among those that the provider has answered."""
    return part._replace(call=None) if part.call is not None and part.call[0] in answered else part


def ends_in_call(parts: Sequence[Part]) -> bool:
    """Return whether the last part is a call. Empty texts are ignored, because streams end in one."""
    for part in reversed(parts):
        if part.call is not None:
            return True
        if part.block.get("text") or "text" not in part.block:
            return False
    return False


def state_of(
    wire: str, parts: Sequence[Part], fields: Json | None = None, *, is_paused: bool = False
) -> Json | None:
    """Return the state of a turn; None if text and calls suffice."""
    # They suffice if no block holds more, all text stands before the calls, and the turn is not paused.
    suffices = not (fields or is_paused)
    has_call = False
    blocks: list[Json] = []
    losses: list[str] = []
    for part in parts:
        is_savable = not part.more or fault_in(part.block, levels=ARGUMENT_LEVELS, most=MOST_VALUES) is None
        block = part.block if is_savable else part.plain
        blocks += [block] if block else []
        losses += [] if is_savable else [part.more]
        suffices = suffices and not part.more and not (has_call and part.kind == "text")
        has_call = has_call or part.kind == "call"
    if suffices:
        return None
    state: Json = {"dialect": wire, "blocks": blocks}
    if fields:
        state["fields"] = fields
    if losses:
        state["lost"] = losses
    return state
