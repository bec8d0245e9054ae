"""What a reader finds in one candidate of a body, before anything is decoded or judged.

A reader is a module of pure functions over one wire format:

    DIALECT: str               its name, as in `choice_from_response(..., dialect=)`
    reads(body) -> bool        whether a body is of this format
    read(body) -> [Reading]    one a candidate, in the provider's order
    opens(event) -> bool       whether a stream's event is of this format
    join(events) -> body       the whole body that a stream's events amount to

so that a stream and a whole answer are read by the same code (rule 12). Readers take whatever a provider
sends: a value of an unexpected type is passed over here and stays in `Choice.raw` (rule 3).

What every reader holds to:

 a. A call is what the caller is asked to run. What the provider ran itself (server tools, MCP calls, code
    execution) and what is no function call (approval requests, computer use) is not one; it stays in `raw`.
 b. The text is everything the model said to the user, refusals included, in order and joined by nothing.
    The reasoning is the thinking the provider shows, likewise.
 c. A call the answer ended inside, or may have ended inside, carries its arguments as `CutOff`. That is the
    last item of a candidate that a length limit or a filter stopped, and each call that a stream opened and
    did not finish.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast

from sigadapt.signatures.arguments import compact
from sigadapt.signatures.decoded import spelled

Json = dict[str, Any]


RawCall: TypeAlias = tuple[Any, Any, Any]
"""A call for the caller as the provider sent it: its id, name and arguments, of whatever type they were.

The arguments are JSON text where they are a str, else the decoded value, or a `CutOff` of either; None is
none.
"""


class Reading(NamedTuple):
    """One candidate: its text, reasoning, calls in order, and why it ended.

    `finish` is the canonical word where the wire's has one (`stop`, `tool_calls`, `length`,
    `content_filter`), else the provider's own; None where the answer did not say, as when a stream broke off;
    `error` where an error broke it off. `state` is what the provider wants back on the next turn (`replay`).
    """

    text: str | None
    reasoning: str | None
    calls: list[RawCall]
    finish: str | None
    state: Json | None = None


class CutOff(NamedTuple):
    """Arguments that may lack their end: what was sent of them, as text or decoded."""

    sent: Any


class JsonText(str):
    """Arguments as the JSON text a stream sent, in a joined body whose wire carries decoded values."""

    __slots__ = ()


_CUTTING = {"length", "content_filter", "error"}


def objects(value: Any) -> list[Json]:
    """The objects in a list; nothing where it is no list.

    Example:
        >>> objects([{"a": 1}, None, "x"]), objects(None)
        ([{'a': 1}], [])
    """
    if not isinstance(value, list):
        return []
    return [item for item in cast("list[Any]", value) if isinstance(item, dict)]


def an_object(value: Any) -> Json:
    """The object itself, or an empty one where it is none."""
    return cast("Json", value) if isinstance(value, dict) else {}


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
    """Arguments of a wire that carries decoded values: there a text is a JSON string, not JSON text.

    Example:
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
