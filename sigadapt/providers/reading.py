"""Helpers that every provider's `read` uses: objects, texts and finish reasons of a body, and provider state.

Provider state is what the provider wants back on the next turn (the same conversation): Claude signs its
thinking blocks, Gemini signs parts, OpenAI encrypts its reasoning. Without them, in their places, the
provider refuses the next request or answers worse. The state of a turn is therefore the content that the
provider sent, in order:

    {"dialect": "anthropic", "blocks": [{"type": "thinking", ...}, {"type": "tool_use", ...}], "ids": ["c1"]}

The block of a call lacks the arguments, because the call itself has them and a program may change it. `ids`
are the ids of the calls, in order, as the conversation has them: servers send none, or one twice. A state may
also have `fields`, what the body of the next request needs for this turn (Anthropic's `container`), `lost`,
the names of what the turn held and no request can, and `endpoint`, the OpenAI-like server or gateway that it
came from: the prefix of the model's name and the host of its address.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard, cast

from sigadapt.providers.provider import CutOff, JsonText, Malformed, RawCall
from sigadapt.schemas.json_values import (
    ARGUMENT_LEVELS,
    Json,
    compact,
    fault_in,
    is_array,
    is_object,
    spelled,
)

MOST_VALUES = 100_000
"""How many values a block of provider state may hold."""

WITHHELD_CALLS = frozenset(("MALFORMED_FUNCTION_CALL", "malformed_tool_use"))
"""Finish reasons of an answer whose call the provider withholds: Gemini's and Bedrock's."""

MALFORMED_CALLS = WITHHELD_CALLS | {"UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
"""Finish reasons that report a call as unreadable, also behind a gateway."""

_CUTTING = {"length", "content_filter", "refusal", "error"}


def objects(value: Any) -> list[Json]:
    """Return the objects in a list. One object is a list of one; any other value is an empty list.

    Example:
        >>> objects([{"a": 1}, None, "x"]), objects({"a": 1}), objects(None)
        ([{'a': 1}], [{'a': 1}], [])
    """
    if value.__class__ is list or is_array(value):  # the first part spares most lists a call
        return [item for item in value if isinstance(item, dict)]
    return [value] if is_object(value) else []


def content_parts(content: Any) -> list[Json]:
    """Return content as a list of parts: a text becomes a text part, one object a list of one.

    Example:
        >>> content_parts("It is sunny."), content_parts([{"type": "image"}, "A cat."])
        ([{'type': 'text', 'text': 'It is sunny.'}], [{'type': 'image'}, {'type': 'text', 'text': 'A cat.'}])
    """
    # Content is documented as a list of objects. Some servers send a text, one part, or texts in the list.
    given = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [
        {"type": "text", "text": part} if isinstance(part, str) else part
        for part in given
        if isinstance(part, (str, dict)) and part != ""
    ]


def text_of(content: Any) -> str | None:
    """Return the text of content that is documented as a text, but may come as parts; None for no text.

    Example:
        >>> text_of("It is sunny."), text_of(["It is ", {"text": "sunny."}]), text_of(None)
        ('It is sunny.', 'It is sunny.', None)
    """
    if content is None or isinstance(content, str):
        return content or None
    return joined(part.get("text") for part in content_parts(content))


def in_function(text: JsonText) -> Json:
    """Return a call of a chat message without id or name, whose arguments are a text."""
    return {"function": {"arguments": text}}


def calls_of(sent: Any, unread: Callable[[JsonText], Json] = in_function) -> list[Json]:
    """Return the calls in a value that is documented as a list of objects, each call once.

    Example:
        >>> calls_of({"id": "c1"}), calls_of(['{"id": "c1"}', {"id": "c2"}]), calls_of("[{")
        ([{'id': 'c1'}], [{'id': 'c1'}, {'id': 'c2'}], [{'function': {'arguments': '[{'}}])
    """
    # Some servers send one object, JSON text of it, or a list with such texts.
    if sent.__class__ is list:
        calls: list[Json] = [item for item in sent if isinstance(item, dict)]
        if len(calls) == len(sent):
            return calls
    return list(_odd_calls(sent, unread)) if sent else []


def _odd_calls(sent: Any, unread: Callable[[JsonText], Json]) -> Iterator[Json]:
    pending: list[Any] = [sent]
    while pending:
        item = pending.pop()
        if is_object(item):
            yield item
        elif is_array(item):
            pending.extend(reversed(item))
        elif isinstance(item, str) and "{" in item:
            try:
                pending.append(json.loads(item))
            except (ValueError, RecursionError):
                yield unread(JsonText(item))


def one_call_each(parts: list[Json], key: str, unread: Callable[[JsonText], Json]) -> list[Json]:
    """Return the parts with at most one call in each, in a field where some servers send a list of calls.

    Example:
        >>> one_call_each([{"call": [{"name": "a"}, {"name": "b"}], "id": 1}], "call", in_function)
        [{'id': 1, 'call': {'name': 'a'}}, {'call': {'name': 'b'}}]
    """
    if all(key not in part or isinstance(part[key], dict) for part in parts):
        return parts
    return [single for part in parts for single in _singles(part, key, unread)]


def _singles(part: Json, key: str, unread: Callable[[JsonText], Json]) -> Iterator[Json]:
    rest = {name: value for name, value in part.items() if name != key}
    calls = calls_of(part.get(key), unread)
    for number, call in enumerate(calls):
        yield {**({} if number else rest), key: call}
    if not calls and rest:
        yield rest


def an_object(value: Any) -> Json:
    """Return the value if it is an object, else an empty object.

    Example:
        >>> an_object({"a": 1}), an_object(None)
        ({'a': 1}, {})
    """
    return value if value.__class__ is dict or is_object(value) else {}


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


def in_paragraphs(pieces: Iterable[Any]) -> str | None:
    r"""Join the texts of a turn, with a blank line where something else (None) stands between two texts.

    Example:
        >>> in_paragraphs(["Let me ", "look:", None, None, "Sunny."]).split("\n")
        ['Let me look:', '', 'Sunny.']
    """
    paragraphs: list[list[str]] = [[]]
    for piece in pieces:
        if is_text(piece):
            paragraphs[-1].append(piece)
        elif piece is None and paragraphs[-1]:
            paragraphs.append([])
    return joined("\n\n".join("".join(texts) for texts in paragraphs if texts))


def json_text(pieces: Iterable[Any]) -> str:
    """Return JSON text that came in pieces.

    Example:
        >>> json_text(['{"a":', None, "1}"]), json_text([{"a": 1}])
        ('{"a":1}', '{"a":1}')
    """
    # No provider documents a piece that is not a text; it is written as JSON text. None is skipped.
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


def finish_word(value: Any, canonical: Mapping[str, str]) -> str | None:
    """Return the canonical word for a finish reason, else the provider's own; None without a finish reason.

    Example:
        >>> finish_word("max_tokens", {"max_tokens": "length"}), finish_word("eos", {}), finish_word("", {})
        ('length', 'eos', None)
    """
    if isinstance(value, str):
        return canonical.get(value) or value[:] or None  # the slice makes an SDK's enum member a plain str
    return None


def with_reported_call(calls: list[RawCall], finish: str | None, why: str | None) -> list[RawCall]:
    """Return the calls, and behind them the one that the provider reports as unreadable, if it does.

    Example:
        >>> with_reported_call([], "MALFORMED_FUNCTION_CALL", "Malformed function call: now(")
        [(None, None, Malformed(message='Malformed function call: now('))]
    """
    # A call that Gemini did not expect may be there as well: it is judged like any other.
    is_missing = finish in WITHHELD_CALLS or (finish in MALFORMED_CALLS and not calls)
    return [*calls, (None, None, Malformed(why or str(finish)))] if is_missing else calls


def details_in(value: Any) -> str | None:
    """Return what a provider says about the end of a turn: its message, else all that it sent as JSON.

    Example:
        >>> details_in({"code": 500, "message": "The model crashed."}), details_in({"category": "cyber"})
        ('The model crashed.', '{"category":"cyber"}')
    """
    if is_object(value):
        message = value.get("message")
        return message if is_text(message) else compact(value) if value else None
    return value if is_text(value) else None


def decoded(value: Any) -> Any:
    """Return the arguments of a wire that sends decoded values, in the form that `RawCall` has.

    Example:
        >>> from sigadapt.providers.provider import JsonText
        >>> decoded({"a": 1}), decoded("[1]"), decoded(JsonText("[1]"))
        ({'a': 1}, '"[1]"', '[1]')
    """
    # On such a wire a str is a JSON string; it is quoted, so that nobody takes it for JSON text.
    return compact(value) if type(value) is str else value


def ends_in(items: Sequence[Json], is_call: Callable[[Json], bool]) -> bool:
    """Return whether the last item is a call. Empty texts are ignored, because streams end in one.

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


def mark_last_cut_off(calls: list[RawCall], finish: str | None) -> list[RawCall]:
    """Return the calls, the last one wrapped in `CutOff` if the finish reason says that the answer was cut.

    Example:
        >>> mark_last_cut_off([("c1", "now", '{"zone":')], "length")
        [('c1', 'now', CutOff(sent='{"zone":'))]
    """
    if finish in _CUTTING and calls:
        call_id, name, sent = calls[-1]
        calls[-1] = (call_id, name, sent if type(sent) is CutOff else CutOff(sent))
    return calls


def ran_itself(id: Any) -> bool:  # noqa: A002
    """Return whether a call with this id is one that Claude made of its own tools, and LiteLLM hands out.

    Example:
        >>> ran_itself("srvtoolu_01"), ran_itself("toolu_01"), ran_itself(None)
        (True, False, False)
    """
    # Anthropic's ids of server tools begin with `srvtoolu_`, those of MCP tools with `mcptoolu_`.
    return isinstance(id, str) and id.startswith(("srvtoolu_", "mcptoolu_"))


def more_than(block: Json, known: frozenset[str]) -> str:
    """Return the names of the fields of a block that hold something and are not known; usually none.

    Example:
        >>> more_than({"type": "text", "text": "Hi.", "citations": [1], "note": None}, {"type", "text"})
        'citations'
    """
    return ", ".join(sorted(key for key, value in block.items() if value and key not in known))


class Described(NamedTuple):
    """A block of a turn, and what has to be known of it to keep it.

    Args:
        kind: `text`, `call`, or anything else.
        more: the names of what it holds beyond text and call; empty if these say all of it.
        block: the block, a call's without the arguments.
        plain: the block without what `more` names; None if nothing is left.
    """

    kind: str
    more: str
    block: Json
    plain: Json | None = None


def state(dialect: str, described: Iterable[Described], fields: Json | None = None) -> Json | None:
    """Return the state of a turn; None if text and calls suffice.

    Example:
        >>> call, text = Described("call", "", {"type": "tool_use"}), Described("text", "", {"text": "Hi."})
        >>> state("anthropic", [text, call]) is None
        True
        >>> state("anthropic", [call, text])
        {'dialect': 'anthropic', 'blocks': [{'type': 'tool_use'}, {'text': 'Hi.'}]}
    """
    # They suffice if no block holds more, and all text stands before the calls.
    suffices, has_call = not fields, False
    blocks: list[Json] = []
    lost: list[str] = []
    for kind, more, block, plain in described:
        if more:
            suffices = False
            if fault_in(block, levels=ARGUMENT_LEVELS, most=MOST_VALUES) is not None:
                lost.append(more)
                block = plain  # noqa: PLW2901
        elif has_call and kind == "text":
            suffices = False
        has_call = has_call or kind == "call"
        if block is not None:
            blocks.append(block)
    if suffices:
        return None
    beside = {"fields": fields} if fields else {}
    return {"dialect": dialect, "blocks": blocks, **beside, **({"lost": lost} if lost else {})}
