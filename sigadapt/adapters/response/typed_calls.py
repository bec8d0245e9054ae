"""Turn the calls of a Reading into typed ToolCalls, with an id for each call and a code for each bad call.

Rules:

 a. Each raw call becomes one ToolCall or one InvalidToolCall, with its raw text (nothing silent).
 b. The provider's id is kept. A missing one is made of the request and the call's place (`MadeIds`); where no
    request is known, it is `call_<n>`: n is the call's position from 1, or the next free number. If an answer
    repeats an id, the second call gets a new one in the same way and is marked `renumbered` (ids), as is a
    call whose id is no text. If it repeats the whole call, id, name and arguments, this is one call, which is
    marked `repeated`.
 c. A call without a name is a bad call with the code `missing_name`, whatever its arguments are.
 d. A call that the provider reports as malformed is a bad call; the provider's message is its text.
 e. A call in whose arguments half of a surrogate pair was read as U+FFFD is marked `unicode`.
 f. Arguments that were cut off are good only if their text is a complete object. Decoded ones are always
    `truncated`, because an SDK or the provider may have closed them.

The last functions restore declared names in typed calls, and join the calls of several answers: a call that
an answer makes again is dropped, and the first one is marked.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import pydantic

from sigadapt.errors import printable
from sigadapt.json_values import Json, compact, cut, is_object, without_halves
from sigadapt.providers.wire.reading import Reading
from sigadapt.providers.wire.values import FreeText, MalformedCall, RawCall, in_paragraphs
from sigadapt.schemas.arguments import CutOff, Flaw, UnreadCall, check_decoded, holds_half, parse_arguments
from sigadapt.signatures.calls import (
    NO_TURN,
    InvalidToolCall,
    Repeat,
    ToolCall,
    ToolCalls,
    Turn,
    in_turn,
    refused,
    unique_ids,
    with_each,
)

Arguments: TypeAlias = "tuple[str, Json | Flaw]"
"""A call's arguments as text, and either the decoded object or the Flaw that makes the call a bad one."""

C = TypeVar("C", ToolCall, InvalidToolCall)
M = TypeVar("M", bound=pydantic.BaseModel)
_ONLY_TEXTS = {str}
_NO_REPEATS: Mapping[int, int] = {}
_NO_PARTS = None, None, None, None, None
_put = object.__setattr__


def arguments_of(raw: Any) -> Arguments:
    """Decode the arguments of a raw call. Never raises."""
    if type(raw) is CutOff and type(raw.sent) is UnreadCall:
        raw = raw.sent
    if type(raw) is FreeText:
        return str(raw), {"input": str(raw)}
    if isinstance(raw, str):
        return str(raw), parse_arguments(raw)  # str() makes a JsonText a plain str
    if type(raw) is MalformedCall:
        why = f"the provider could not read the call that the model wrote: {cut(raw.message)}"
        return raw.message, Flaw("malformed_call", why)
    if type(raw) is not CutOff:
        return raw if type(raw) is UnreadCall else check_decoded(raw)
    if isinstance(raw.sent, str) and type(raw.sent) is not FreeText:
        return str(raw.sent), parse_arguments(raw.sent, cut_off=True)
    text = str(raw.sent) if type(raw.sent) is FreeText else check_decoded(raw.sent)[0]
    return text, Flaw("truncated", f"the answer was cut off in this call: {cut(text, from_end=True)}")


def typed_calls(
    reading: Reading,
    made_id: Callable[[int], str] | None = None,
    earlier_ids: Collection[str] = (),
    repeats: Mapping[int, int] = _NO_REPEATS,
) -> ToolCalls | None:
    """Return the typed calls of one candidate.

    Args:
        reading: the candidate.
        made_id: makes the id of a call without one, by its position.
        earlier_ids: the ids that calls of earlier answers have.
        repeats: `repeats_in` the answer.
    """
    if not reading.calls:
        return None
    good: list[ToolCall] = []
    bad: list[InvalidToolCall] = []
    ids: list[Any] = [call[0] for call in reading.calls]
    new_ids: set[int] = set()
    # Most answers give each call an id, all different, so that nothing has to be made.
    if earlier_ids or {*map(type, ids)} != _ONLY_TEXTS or len({*ids, ""}) <= len(ids):
        ids, new_ids = _own_ids(ids, repeats, made_id, earlier_ids)
    parts = reading.text, reading.reasoning, reading.state, reading.commentary, reading.offered
    has_turn = parts != _NO_PARTS
    turn = _turn(reading, ids) if has_turn else NO_TURN
    for position, (_, name, raw) in enumerate(reading.calls):
        if position in repeats:
            continue
        text, args = arguments_of(raw)
        altered = ("renumbered",) if position in new_ids else ()
        if position in repeats.values():
            altered = (*altered, "repeated")
        values: Json = {"id": ids[position], "name": name, "args": args, "arguments": text}
        values["index"] = position  # the one that a stream has told, though a call before it was a repetition
        if "\\u" in text or not f"{ids[position]}{name}{text}".isascii():
            if _sent_half(raw):
                altered = (*altered, "unicode")
            values = without_halves(values)
        if type(args) is dict and name and isinstance(name, str):
            values["altered"] = altered
            values["turn"] = turn
            good.append(build_unvalidated(ToolCall, values))
        else:
            bad.append(_invalid_call(values, args, altered))
    values = {"tool_calls": good, "tool_call_results": None, "invalid": tuple(bad), "turn": turn}
    return build_unvalidated(ToolCalls, values)


def repeats_in(calls: Sequence[RawCall]) -> Mapping[int, int]:
    """Return the positions of calls that an answer sends again, each with that of the first: servers do."""
    if len({call[0] for call in calls if isinstance(call[0], str)}) == len(calls):
        return _NO_REPEATS
    first: dict[tuple[str, str], list[int]] = {}
    repeats: dict[int, int] = {}
    for index, (call_id, name, raw) in enumerate(calls):
        if not (isinstance(call_id, str) and call_id and isinstance(name, str)):
            continue  # an id that is made here tells nothing
        earlier = first.setdefault((call_id, name), [])
        same = next((n for n in earlier if type(calls[n][2]) is type(raw) and calls[n][2] == raw), None)
        if same is None:
            earlier.append(index)
        else:
            repeats[index] = same
    return repeats


def _own_ids(
    ids: list[Any],
    repeats: Mapping[int, int],
    made_id: Callable[[int], str] | None,
    earlier_ids: Collection[str],
) -> tuple[list[str], set[int]]:
    """Return the id of each call, a repeated one's being that of the first, and which of them are new."""
    positions = [index for index in range(len(ids)) if index not in repeats]

    def made(number: int) -> str:
        return "" if made_id is None else made_id(positions[number])

    own_ids, new = unique_ids(
        [ids[index] for index in positions], None if made_id is None else made, earlier_ids
    )
    by_position = dict(zip(positions, own_ids, strict=True))
    whole = [by_position[repeats.get(index, index)] for index in range(len(ids))]
    no_texts = {index for index, call_id in enumerate(ids) if not isinstance(call_id, str | None)}
    return whole, no_texts.union(positions[number] for number in new)


def _sent_half(raw: Any) -> bool:
    """Return whether the arguments of a raw call hold half of a surrogate pair."""
    arguments = raw
    if type(raw) is CutOff:
        arguments = raw.sent
    if type(arguments) is FreeText:
        arguments = [str(arguments)]  # a value, in which an escape is text, and no JSON text
    return holds_half(arguments)


def _invalid_call(values: Json, flaw: Json | Flaw, altered: tuple[str, ...]) -> InvalidToolCall:
    name = values["name"] if isinstance(values["name"], str) and values["name"] else None
    if not isinstance(flaw, Flaw) or (name is None and flaw.code != "malformed_call"):
        flaw = Flaw("missing_name", f"the call has no name; its arguments: {cut(values['arguments'])}")
    flaw = flaw._replace(message=printable(flaw.message, also="\n\t"))  # as the validator does
    del values["args"]
    values |= {"name": name, **flaw._asdict(), "altered": altered}
    return build_unvalidated(InvalidToolCall, without_halves(values))


def _turn(reading: Reading, ids: list[str]) -> Turn:
    # The next turn finds its calls by their ids.
    state = None if reading.state is None else {**reading.state, "ids": ids}
    text = in_paragraphs([reading.commentary, None, reading.text]) if reading.commentary else reading.text
    values: Json = {"text": text, "reasoning": reading.reasoning, "state": state, "repeats": ()}
    values |= {"offered": reading.offered, "searches": (), "before": (), "routed": {}, "request_hash": None}
    return build_unvalidated(Turn, without_halves(values))


def build_unvalidated(cls: type[M], values: dict[str, Any]) -> M:
    """Build a model from values of all its fields that are known to be valid."""
    # What `model_construct` does beside this (aliases, defaults) is half the time of reading an answer.
    model = cls.__new__(cls)
    _put(model, "__dict__", values)
    _put(model, "__pydantic_fields_set__", {*values})
    _put(model, "__pydantic_extra__", None)
    _put(model, "__pydantic_private__", None)
    return model


def with_declared_names(calls: ToolCalls, aliases: Mapping[str, str]) -> ToolCalls:
    """Return the calls, good and bad, with declared names in the place of aliases (names travel)."""
    names = {alias: name for name, alias in aliases.items()}

    def back(call: Any) -> Any:
        return call.model_copy(update={"name": names[call.name]}) if call.name in names else call

    return with_each(calls, back)


def with_compact_arguments(calls: ToolCalls) -> ToolCalls:
    """Return the calls, with the arguments of good ones as the compact text of what they hold."""
    # For LiteLLM, which writes with spaces and escapes what a provider sent as an object.
    good = [call.model_copy(update={"arguments": compact(call.args)}) for call in calls]
    return calls.model_copy(update={"tool_calls": good}) if good else calls


def of_chosen_tools(calls: ToolCalls, choice: str | Json, functions: Collection[str]) -> ToolCalls:
    """Return the calls, with those of tools that the tool choice does not allow as bad ones.

    `functions` are the names of the declared functions.
    """
    # No provider enforces the choice of a prompt, and not every server enforces one of a request.
    if choice in ("auto", "required"):
        return calls
    if is_object(choice) and choice["type"] not in ("function", "custom", "allowed_tools"):
        return calls  # a tool that the provider runs
    names: list[str] = []
    if is_object(choice):
        tools: list[Json] = choice["allowed_tools"]["tools"] if "allowed_tools" in choice else [choice]
        parts: list[Json] = [tool.get("function") or tool.get("custom") or {} for tool in tools]
        names = [part["name"] for part in parts if "name" in part]
        if len(names) < len(parts):
            # A tool of the provider's is chosen, too, and its calls have names of their own.
            names += dict.fromkeys(call.name for call in calls if call.name not in functions)
    return of_allowed_tools(calls, names, "the tool choice allows")


def of_allowed_tools(calls: ToolCalls, names: Collection[str], who: str) -> ToolCalls:
    """Return the calls, with those of all but these tools as bad ones."""
    rule = f"{who} {' or '.join(map(repr, names)) or 'no tool'}"
    bad = [
        refused(call, Flaw("unknown_tool", f"{rule}, and not {cut(repr(call.name))}"))
        for call in calls
        if call.name not in names
    ]
    if not bad:
        return calls
    good = [call for call in calls if call.name in names]
    invalid = sorted([*calls.invalid, *bad], key=lambda call: call.index)
    return calls.model_copy(update={"tool_calls": good, "invalid": tuple(invalid)})


def _move(calls: Iterable[C], before: int) -> list[C]:
    """Return the calls of a later answer with `before` added to each index."""
    if not before:
        return [*calls]
    return [call.model_copy(update={"index": call.index + before}) for call in calls]


def with_request_hash(calls: ToolCalls, request_hash: str) -> ToolCalls:
    """Return calls whose turn says which request it answered."""
    return in_turn(calls, calls.turn.model_copy(update={"request_hash": request_hash}))


def identity(call: ToolCall) -> str:
    """Return what a call asks for: two calls of one name and the same arguments have the same."""
    return json.dumps([call.name, call.args], sort_keys=True)


def with_later_calls(
    earlier: Sequence[ToolCall], calls: ToolCalls, before: int
) -> tuple[list[ToolCall], ToolCalls]:
    """Put the calls of an answer to a reask beside those that were accepted before it."""
    ids = {identity(call): call.id for call in reversed(earlier)}
    good = list[ToolCall]()
    repeats = list[Repeat]()
    for call in _move(calls, before):
        first = ids.get(identity(call))
        if first is None:
            good.append(call)
            continue
        arguments = compact(call.args) if call.altered else call.arguments
        values = {"id": call.id, "name": call.name, "arguments": arguments, "index": call.index, "of": first}
        repeats.append(build_unvalidated(Repeat, values))
    bad = tuple(_move(calls.invalid, before))
    if not repeats:
        return list(earlier), calls.model_copy(update={"tool_calls": good, "invalid": bad})
    repeat_ids = {repeat.of for repeat in repeats}
    accepted = [*earlier]
    for number, call in enumerate(earlier):
        if call.id in repeat_ids and "repeated" not in call.altered:
            accepted[number] = call.model_copy(update={"altered": (*call.altered, "repeated")})
    turn = calls.turn.model_copy(update={"repeats": tuple(repeats)})
    return accepted, in_turn(calls.model_copy(update={"tool_calls": good, "invalid": bad}), turn)


def with_earlier_calls(earlier: Sequence[ToolCall], calls: ToolCalls | None, turn: Turn, before: int) -> Any:
    """Return the last answer's calls together with the good calls of the answers before it."""
    if not earlier:
        return calls
    last = calls if calls is not None else ToolCalls(tool_calls=[], turn=turn)
    first, latest = with_later_calls(earlier, last, before)
    return latest.model_copy(update={"tool_calls": [*first, *latest]})
