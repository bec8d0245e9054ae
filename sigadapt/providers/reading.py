"""Helpers for reading bodies: the objects, texts and finish reasons in them, and the items of a turn.

A turn's state is its items in order, because Claude's thinking blocks are signed, Gemini signs parts and
OpenAI encrypts its reasoning: each provider refuses or answers worse where they do not come back, in place
(rule 8). An item is JSON:

    {"type": "text" | "thinking", "text": ..., "continuation": [provider, kind, data]}
    {"type": "call", "continuation": ...}

`continuation` is lm15's `ContinuationState`; only opaque items have one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from sigadapt.providers.provider import CutOff, RawCall
from sigadapt.schemas.json_values import Json, compact, is_array, is_object, spelled

_CUTTING = {"length", "content_filter", "error"}


def objects(value: Any) -> list[Json]:
    """The objects in a list; nothing where it is no list.

    Example:
        >>> objects([{"a": 1}, None, "x"]), objects(None)
        ([{'a': 1}], [])
    """
    return [item for item in value if isinstance(item, dict)] if is_array(value) else []


def an_object(value: Any) -> Json:
    """The object itself, or an empty one where it is none."""
    return value if is_object(value) else {}


def kind_of(item: Json) -> str:
    """The `type` of a block, an item or an event; empty where it has none."""
    value = item.get("type")
    return value if isinstance(value, str) else ""


def is_text(value: Any) -> TypeGuard[str]:
    """Whether a value is a text that says something."""
    return isinstance(value, str) and value != ""


def joined(pieces: Iterable[Any]) -> str | None:
    """The texts among the pieces as one, None where there is none (what is no text is passed over).

    Example:
        >>> joined(["It is ", None, "sunny."]), joined([""])
        ('It is sunny.', None)
    """
    return _paired("".join([piece for piece in pieces if isinstance(piece, str)])) or None


def json_text(pieces: Iterable[Any]) -> str:
    """JSON text that came in pieces; a piece that is no text, which no provider documents, as its own text.

    Example:
        >>> json_text(['{"a":', None, "1}"]), json_text([{"a": 1}])
        ('{"a":1}', '{"a":1}')
    """
    sent = [piece if isinstance(piece, str) else spelled(piece) for piece in pieces if piece is not None]
    return _paired("".join(sent))


def _paired(text: str) -> str:
    """The text with surrogate pairs made whole that a stream had cut in two, as JavaScript servers do."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def word(value: Any, canonical: Mapping[str, str]) -> str | None:
    """A finish reason's canonical word, else the provider's own; None where it is empty or no text.

    Example:
        >>> word("max_tokens", {"max_tokens": "length"}), word("eos", {}), word("", {})
        ('length', 'eos', None)
    """
    if isinstance(value, str):
        return canonical.get(value) or value[:] or None  # the slice makes plain text of an SDK's enum member
    return None


def decoded(value: Any) -> Any:
    """Return arguments of a wire that carries decoded values; there a text is a JSON string, not JSON text.

    Example:
        >>> from sigadapt.providers.provider import JsonText
        >>> decoded({"a": 1}), decoded("[1]"), decoded(JsonText("[1]"))
        ({'a': 1}, '"[1]"', '[1]')
    """
    return compact(value) if type(value) is str else value


def ends_in(items: Sequence[Json], is_call: Callable[[Json], bool]) -> bool:
    """Whether the last item is a call, empty texts aside: streams end in one.

    Example:
        >>> ends_in([{"call": 1}, {"text": ""}], lambda item: "call" in item)
        True
    """
    for item in reversed(items):
        if is_call(item):
            return True
        if item.get("text") or "text" not in item:
            return False
    return False


def cut_last(calls: list[RawCall], finish: str | None) -> list[RawCall]:
    """The calls of a candidate whose last item is its last call: cut off there if the finish says so."""
    if finish in _CUTTING and calls:
        call_id, name, sent = calls[-1]
        calls[-1] = (call_id, name, sent if type(sent) is CutOff else CutOff(sent))
    return calls


def said(kind: str, text: Any, continuation: list[Any] | None = None) -> Json:
    """A text or thinking item."""
    item: Json = {"type": kind, "text": text if isinstance(text, str) else ""}
    return item if continuation is None else {**item, "continuation": continuation}


def called(continuation: list[Any] | None = None) -> Json:
    """The next call's place."""
    return {"type": "call"} if continuation is None else {"type": "call", "continuation": continuation}


def state(dialect: str, items: Iterable[Json]) -> Json | None:
    """The state of an answer whose items these are; None where none is opaque: text and calls say it all.

    Example:
        >>> state("anthropic", [said("text", "Hi.")]) is None
        True
    """
    kept = list(items)
    if not any("continuation" in item for item in kept):
        return None
    return {"dialect": dialect, "items": kept}
