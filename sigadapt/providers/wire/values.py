"""Values of a body: objects, texts and calls, also in forms that some servers send undocumented."""

import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast

from sigadapt.json_values import Json, compact, cut, is_array, is_object, is_unicode, json_like
from sigadapt.schemas.arguments import CutOff, Flaw, UnreadCall

RawCall: TypeAlias = tuple[Any, Any, Any]
"""A call as the provider sent it: `(id, name, arguments)`, each of any type.

A str as arguments is JSON text. Any other value is already decoded. A `CutOff` wraps either. None means that
the provider sent no arguments, an `UnreadCall` that nobody knows which they are.
"""


class MalformedCall(NamedTuple):
    """What a provider reports about a call that it could not read itself, in its own words."""

    message: str


class JsonText(str):
    """Arguments as JSON text (no JSON string) in an assembled body whose wire sends decoded values."""

    __slots__ = ()


class FreeText(str):
    """The input of a custom tool's call. It is any text, even an empty one, and never read as JSON."""

    __slots__ = ()

    @classmethod
    def of(cls, value: Any) -> Any:
        """Return the input as a provider sent it; what is not a text, as compact JSON."""
        if type(value) is CutOff:
            return CutOff(cls.of(value.sent))
        if type(value) is UnreadCall:
            return value
        if value is None:
            return cls()
        return cls(value) if isinstance(value, str) else cls(json_like(value))


def member_names(text: str) -> frozenset[str]:
    """Return the names in a text, which spaces separate."""
    return frozenset(text.split())


_HEAD = frozenset(("id", "type", "index", "function", "custom"))  # of a chat's call
ARGUMENT_NAMES = ("arguments", "args", "input", "parameters")
"""The members in which wires put the arguments of a call."""
_OTHER_NAMES = _HEAD | member_names("""
    name call_id tool_call_id toolUseId object status confirmation_status created_at completed_at created_by
    agent_id model output_index namespace caller toolset_name cache_control description strict signature
    thought_signature parsed_arguments partialArgs willContinue extra_content provider_specific_fields
""")
"""The members of a call, on any wire, that are documented and hold no arguments."""


def objects(value: Any) -> list[Json]:
    """Return the objects in a list. One object is a list of one; any other value is an empty list."""
    if isinstance(value, list):
        return [item for item in cast("list[Any]", value) if isinstance(item, dict)]
    return [value] if is_object(value) else []


def an_object(value: Any) -> Json:
    """Return the value if it is an object, else an empty object."""
    return cast("Json", value) if isinstance(value, dict) else {}


def content_parts(content: Any) -> list[Json]:
    """Return content as a list of parts: a text becomes a text part, one object a list of one."""
    # Content is documented as a list of objects. Some servers send a text, one part, or texts in the list.
    items = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [
        {"type": "text", "text": part} if isinstance(part, str) else part
        for part in items
        if isinstance(part, (str, dict)) and part != ""
    ]


def text_of(content: Any) -> str | None:
    """Return the text of content that is documented as a text, but may come as parts; None for no text."""
    if content is None or isinstance(content, str):
        return content or None
    return join_texts(part.get("text") for part in content_parts(content))


def calls_of(value: Any, key: str = "arguments") -> list[Json]:
    """Return the calls in a value that is documented as a list of objects; broken JSON is put at `key`."""
    if value.__class__ is list and all(item.__class__ is dict for item in value):
        return value
    # Some servers send one object, JSON text of it, or a list with such texts.
    calls: list[Json] = []
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if is_object(item):
            calls.append(item)
        elif is_array(item):
            pending.extend(reversed(item))
        elif isinstance(item, str) and "{" in item:
            try:
                pending.append(json.loads(item))
            except (ValueError, RecursionError):
                calls.append({key: JsonText(item)})
    return calls


def chat_call(call: Json) -> RawCall:
    """Return the id, name and arguments of a call of a chat message."""
    usual = usual_call(call)
    function: Any = usual.get("function")
    if function.__class__ is not dict and not is_object(function):
        custom: Json = usual["custom"]
        return call.get("id"), custom.get("name"), FreeText.of(usual_arguments(custom.get("input"), custom))
    arguments = usual_arguments(function.get("arguments"), function, call)
    return call.get("id"), function.get("name"), arguments


def usual_call(call: Json) -> Json:
    """Return a call, or a fragment of one, with its name and arguments in `function` or in `custom`."""
    # Some servers put them beside the id, or send `function` as JSON text.
    function = call.get("function")
    is_usual = function.__class__ is dict and call.keys() <= _HEAD
    if is_usual or (is_object(call.get("custom")) and not is_object(function)):
        return call
    calls = calls_of(function) if function else [call]
    inner = calls[0] if len(calls) == 1 else {"arguments": JsonText(json_like(function))}
    members = (*call.items(), *inner.items())
    return {
        **call,
        "function": {key: value for key, value in members if key not in _HEAD and value is not None},
    }


# {"name": "get_weather", "args": {"city": "Paris"}}, where the wire has `arguments`
def usual_arguments(arguments: Any, members: Json, call: Json | None = None) -> Any:
    """Return the arguments of a call; where its wire's own member lacks them, those in another wire's.

    A call that holds something else, or two of them, is not read: its text is all of the call.
    """
    if arguments or not more_than(members, _OTHER_NAMES):
        return arguments
    places = [members[name] for name in ARGUMENT_NAMES if members.get(name)]
    if len(places) == 1:
        return places[0]
    if arguments is not None and not places:
        return arguments
    text = json_like(call or members)
    reason = f"no member of the call is known to be its arguments: {cut(text)}"
    return UnreadCall(text, Flaw("invalid_json", reason))


def one_call_each(parts: list[Json], field: str, key: str) -> list[Json]:
    """Return the parts with at most one call in each, in a field where some servers send a list of calls."""
    singles: list[Json] = []
    for part in parts:
        if field not in part or isinstance(part[field], dict):
            singles.append(part)
            continue
        first, *others = [{field: call} for call in calls_of(part[field], key)] or [{}]
        first = {**{name: part[name] for name in part if name != field}, **first}
        singles += [first, *others] if first else []
    return singles


def named_part(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named part of a canonical tool, call or choice; an empty dict if the provider runs it."""
    return entry.get("function") or entry.get("custom") or {}


def name_in(entry: Mapping[str, Any]) -> Any:
    """Return the name of a tool, a call or an entry of a choice; None for one of the provider's without."""
    return (named_part(entry) or entry).get("name")


def kind_of(item: Json) -> str:
    """Return the `type` of a block, an item or an event; an empty text if it has none."""
    value = item.get("type")
    return value if isinstance(value, str) else ""


def more_than(block: Json, fields: frozenset[str]) -> str:
    """Return the names of the fields of a block that hold something and are not known; usually none."""
    if block.keys() <= fields:
        return ""
    return ", ".join(sorted(key for key, value in block.items() if value and key not in fields))


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether a value is a non-empty text."""
    return isinstance(value, str) and value != ""


def join_texts(pieces: Iterable[Any]) -> str | None:
    """Return the texts among the pieces, joined; None if there is no text. Other values are skipped."""
    return _join_halves("".join([piece for piece in pieces if isinstance(piece, str)])) or None


def in_paragraphs(pieces: Iterable[Any]) -> str | None:
    """Join the texts of a turn, with a blank line where something else (None) stands between two texts."""
    runs = itertools.groupby((piece or "" for piece in pieces if piece is None or is_text(piece)), bool)
    return join_texts(["\n\n".join("".join(run) for are_texts, run in runs if are_texts)])


def json_text(pieces: Iterable[Any]) -> str:
    """Return JSON text that came in pieces."""
    # No provider documents a piece that is not a text; it is written as JSON text. None is skipped.
    texts = [piece if isinstance(piece, str) else json_like(piece) for piece in pieces if piece is not None]
    return _join_halves("".join(texts))


def _join_halves(text: str) -> str:
    """Return the text with its surrogate pairs joined, which streams of JavaScript servers cut in two."""
    if text.isascii() or is_unicode(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def decoded(value: Any) -> Any:
    """Return the arguments of a wire that sends decoded values, in the form that `RawCall` has."""
    # On such a wire a str is a JSON string; it is quoted, so that nobody takes it for JSON text.
    return compact(value) if type(value) is str else value


def is_search(tool: Json) -> bool:
    """Return whether a tool is a provider's search for deferred tools."""
    return str(tool.get("type")).startswith("tool_search")
