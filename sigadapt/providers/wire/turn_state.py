"""States of a turn: what the provider wants back on the next turn (the same conversation).

Claude signs its thinking blocks, Gemini signs parts, OpenAI encrypts its reasoning. Without them, in their
places, the provider refuses the next request or answers worse. The state of a turn is therefore the content
that the provider sent, in order:

    {"dialect": "anthropic", "blocks": [{"type": "thinking", ...}, {"type": "tool_use", ...}], "ids": ["c1"]}

The block of a call lacks the arguments, because the call itself has them and a program may change it. `ids`
are the ids of the calls, in order, as the conversation has them: servers send none, or one twice. A state may
also have `fields`, what the body of the next request needs for this turn (Anthropic's `container`), `lost`,
the names of what the turn held and no request can, `endpoint`, the OpenAI-like server or gateway that it came
from: the prefix of the model's name and the host of its address, and `stored`, which is false if the provider
was asked to store nothing.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sigadapt.schemas.json_values import ARGUMENT_LEVELS, Json, fault_in

MOST_VALUES = 100_000
"""How many values a block of provider state may hold."""


def more_than(block: Json, fields: frozenset[str]) -> str:
    """Return the names of the fields of a block that hold something and are not known; usually none."""
    if block.keys() <= fields:
        return ""
    return ", ".join(sorted(key for key, value in block.items() if value and key not in fields))


class TurnBlock(NamedTuple):
    """A block of a turn, and what has to be known of it to keep it."""

    kind: str  # `text`, `call`, or anything else
    more: str  # the names of what it holds beyond text and call; empty if these say all of it
    block: Json  # a call's without the arguments
    plain: Json | None = None  # the block without what `more` names; None if nothing is left


def state(
    dialect: str, descriptions: Iterable[TurnBlock], fields: Json | None = None, *, is_paused: bool = False
) -> Json | None:
    """Return the state of a turn; None if text and calls suffice."""
    # They suffice if no block holds more, all text stands before the calls, and the turn is not paused.
    suffices = not (fields or is_paused)
    has_call = False
    blocks: list[Json] = []
    losses: list[str] = []
    for kind, more, block, plain in descriptions:
        if more:
            suffices = False
            if fault_in(block, levels=ARGUMENT_LEVELS, most=MOST_VALUES) is None:
                blocks.append(block)
            else:
                losses.append(more)
                blocks += [plain] if plain is not None else []
        else:
            suffices = suffices and not (has_call and kind == "text")
            blocks.append(block)
        has_call = has_call or kind == "call"
    if suffices:
        return None
    beside = {"fields": fields} if fields else {}
    return {"dialect": dialect, "blocks": blocks, **beside, **({"lost": losses} if losses else {})}
