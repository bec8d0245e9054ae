"""An answer's items in order, with the opaque state that its provider wants back (rule 8).

Claude's thinking blocks are signed, Gemini signs parts, OpenAI encrypts its reasoning: each refuses or
answers worse where they do not come back, in place. An item is JSON:

    {"type": "text" | "thinking", "text": ..., "continuation": [provider, kind, data]}
    {"type": "call", "continuation": ...}

`continuation` is a `ContinuationState` of lm15, which replays it; only opaque items have one. What LiteLLM
hands out in fields of a chat message is put under its owner, so that it goes back over either route.
"""

from collections.abc import Iterable
from typing import Any

from sigadapt.adapters.readers.reading import Json, is_text

Item = dict[str, Any]


def said(kind: str, text: Any, continuation: list[Any] | None = None) -> Item:
    """A text or thinking item."""
    item: Item = {"type": kind, "text": text if isinstance(text, str) else ""}
    return item if continuation is None else {**item, "continuation": continuation}


def called(continuation: list[Any] | None = None) -> Item:
    """The next call's place."""
    return {"type": "call"} if continuation is None else {"type": "call", "continuation": continuation}


def claude_thinking(block: Json) -> Item | None:
    """A thinking block of Claude's, signed or redacted; None for one that nobody wants back."""
    if is_text(block.get("signature")):
        signature = {"signature": block["signature"]}
        return said("thinking", block.get("thinking"), ["anthropic", "thinking_signature", signature])
    if is_text(block.get("data")):
        return said("thinking", "", ["anthropic", "redacted_thinking", {"data": block["data"]}])
    return None


def gemini_signature(signature: Any) -> list[Any] | None:
    """The continuation of a part that Gemini signed; None where it did not."""
    return ["gemini", "thought_signature", {"value": signature}] if is_text(signature) else None


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
