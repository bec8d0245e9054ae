"""An answer's items in order, with the opaque state that its provider wants back (rule 8).

Claude's thinking blocks are signed, Gemini signs parts, OpenAI encrypts its reasoning: each refuses or
answers worse where they do not come back, in place. An item is JSON:

    {"type": "text" | "thinking", "text": ..., "continuation": [provider, kind, data]}
    {"type": "call", "continuation": ...}

`continuation` is a `ContinuationState` of lm15, which replays it; only opaque items have one. LiteLLM keeps
such state in fields of a chat message: those are kept under the provider `litellm`, to be put back on the
message.
"""

from collections.abc import Iterable
from typing import Any

from sigadapt.adapters.readers.reading import Json

Item = dict[str, Any]


def said(kind: str, text: Any, continuation: list[Any] | None = None) -> Item:
    """A text or thinking item."""
    item: Item = {"type": kind, "text": text if isinstance(text, str) else ""}
    return item if continuation is None else {**item, "continuation": continuation}


def called(continuation: list[Any] | None = None) -> Item:
    """The next call's place."""
    return {"type": "call"} if continuation is None else {"type": "call", "continuation": continuation}


def state(dialect: str, items: Iterable[Item]) -> Json | None:
    """The state of an answer whose items these are; None where none is opaque: text and calls say it all.

    Example:
        >>> state("anthropic", [said("text", "Hi.")]) is None
        True
    """
    kept = list(items)
    if not any("continuation" in item for item in kept):
        return None
    return {"dialect": dialect, "items": kept}
