"""Helpers that every provider's `read` uses: objects, texts and finish reasons of a body, and provider state.

Provider state is what the provider wants back on the next turn (rule 8): Claude signs its thinking blocks,
Gemini signs parts, OpenAI encrypts its reasoning. Without them, in their places, the provider refuses the
next request or answers worse. The state of a turn is therefore the list of its items, in order:

    {"dialect": ..., "items": [item, ...]}

    {"type": "text" | "thinking", "text": ..., "continuation": [provider, kind, data]}
    {"type": "call", "continuation": [provider, kind, data]}

`continuation` holds the fields of lm15's `ContinuationState`. Only signed or encrypted items have one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from sigadapt.providers.provider import CutOff, RawCall
from sigadapt.schemas.json_values import Json, compact, is_array, is_object, spelled

_CUTTING = {"length", "content_filter", "error"}


def objects(value: Any) -> list[Json]:
    """Return the objects in a list; an empty list for any other value.

    Example:
        >>> objects([{"a": 1}, None, "x"]), objects(None)
        ([{'a': 1}], [])
    """
    return [item for item in value if isinstance(item, dict)] if is_array(value) else []


def an_object(value: Any) -> Json:
    """Return the value if it is an object, else an empty object.

    Example:
        >>> an_object({"a": 1}), an_object(None)
        ({'a': 1}, {})
    """
    return value if is_object(value) else {}


def kind_of(item: Json) -> str:
    """Return the `type` of a block, an item or an event; an empty text if it has none."""
    value = item.get("type")
    return value if isinstance(value, str) else ""


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether a value is a non-empty text."""
    return isinstance(value, str) and value != ""


def joined(pieces: Iterable[Any]) -> str | None:
    """Return the texts among the pieces, joined; None if there is no text. Other values are skipped.

    Example:
        >>> joined(["It is ", None, "sunny."]), joined([""])
        ('It is sunny.', None)
    """
    return _paired("".join([piece for piece in pieces if isinstance(piece, str)])) or None


def json_text(pieces: Iterable[Any]) -> str:
    """Return JSON text that came in pieces.

    No provider documents a piece that is not a text; it is written as JSON text. None is skipped.

    Example:
        >>> json_text(['{"a":', None, "1}"]), json_text([{"a": 1}])
        ('{"a":1}', '{"a":1}')
    """
    sent = [piece if isinstance(piece, str) else spelled(piece) for piece in pieces if piece is not None]
    return _paired("".join(sent))


def _paired(text: str) -> str:
    """Return the text with its surrogate pairs joined, which streams of JavaScript servers cut in two."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def word(value: Any, canonical: Mapping[str, str]) -> str | None:
    """Return the canonical word for a finish reason, else the provider's own; None without a finish reason.

    Args:
        value: the provider's finish reason.
        canonical: the canonical words by the provider's.

    Example:
        >>> word("max_tokens", {"max_tokens": "length"}), word("eos", {}), word("", {})
        ('length', 'eos', None)
    """
    if isinstance(value, str):
        return canonical.get(value) or value[:] or None  # the slice makes an SDK's enum member a plain str
    return None


def decoded(value: Any) -> Any:
    """Return the arguments of a wire that sends decoded values, in the form that `RawCall` has.

    On such a wire a str is a JSON string; it is quoted, so that nobody takes it for JSON text.

    Example:
        >>> from sigadapt.providers.provider import JsonText
        >>> decoded({"a": 1}), decoded("[1]"), decoded(JsonText("[1]"))
        ({'a': 1}, '"[1]"', '[1]')
    """
    return compact(value) if type(value) is str else value


def ends_in(items: Sequence[Json], is_call: Callable[[Json], bool]) -> bool:
    """Return whether the last item is a call. Empty texts are ignored, because streams end in one.

    Args:
        items: the items of a candidate (blocks, parts), in order.
        is_call: says whether an item is a call.

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
    """Return the calls, the last one wrapped in `CutOff` if the finish reason says that the answer was cut.

    Args:
        calls: the calls of a candidate whose last item is its last call; changed in place.
        finish: the candidate's finish reason.

    Example:
        >>> cut_last([("c1", "now", '{"zone":')], "length")
        [('c1', 'now', CutOff(sent='{"zone":'))]
    """
    if finish in _CUTTING and calls:
        call_id, name, sent = calls[-1]
        calls[-1] = (call_id, name, sent if type(sent) is CutOff else CutOff(sent))
    return calls


def said(kind: str, text: Any, continuation: list[Any] | None = None) -> Json:
    """Return a state item of what the model said: `kind` is `text` or `thinking`."""
    item: Json = {"type": kind, "text": text if isinstance(text, str) else ""}
    return item if continuation is None else {**item, "continuation": continuation}


def called(continuation: list[Any] | None = None) -> Json:
    """Return a state item that holds the place of the next call."""
    return {"type": "call"} if continuation is None else {"type": "call", "continuation": continuation}


def state(dialect: str, items: Iterable[Json]) -> Json | None:
    """Return the state of a turn; None if no item has a continuation, since text and calls then suffice.

    Args:
        dialect: the wire format's name.
        items: the items of the turn, in order.

    Example:
        >>> state("anthropic", [said("text", "Hi.")]) is None
        True
    """
    kept = list(items)
    if not any("continuation" in item for item in kept):
        return None
    return {"dialect": dialect, "items": kept}
