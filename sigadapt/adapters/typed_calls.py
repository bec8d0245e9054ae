"""From the calls a reader found to typed ToolCalls: ids, decoding, and a code for each bad call.

Rules it enforces:

 a. Each raw call comes out once, as a ToolCall or as an InvalidToolCall, with its raw text (rule 3).
 b. The provider's id is kept. A missing one is `call_<n>`, n the call's position from 1, or the next number
    free in the answer; an id the answer used before is replaced likewise and the call marked `renumbered`
    (rule 6).
 c. A call without a name is `missing_name`, whatever its arguments.
 d. Arguments that were cut off are good only as the text of a complete object. Decoded ones, which an SDK or
    the provider may have closed, are `truncated`.
"""

from collections.abc import Collection
from typing import Any, TypeAlias, TypeVar

import pydantic

from sigadapt.adapters.readers.reading import CutOff, Json, RawCall, Reading
from sigadapt.signatures.arguments import Flaw, parse_arguments, shown
from sigadapt.signatures.calls import NO_TURN, InvalidToolCall, ToolCall, ToolCalls, Turn
from sigadapt.signatures.decoded import judge

Verdict: TypeAlias = "tuple[str, dict[str, Any] | Flaw]"
"""A call's arguments as text, and the object they are or the flaw that keeps them from being one."""

_M = TypeVar("_M", bound=pydantic.BaseModel)

# A model's own slots: what `object.__setattr__` looks up by name each time, past pydantic's own.
_put_values, _put_fields_set, _put_extra, _put_private = (
    vars(pydantic.BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def verdicts(reading: Reading) -> list[Verdict]:
    """The verdict on each call of a candidate, in order."""
    return [
        (sent, parse_arguments(sent)) if type(sent) is str else verdict(sent) for _, _, sent in reading.calls
    ]


def verdict(sent: Any) -> Verdict:
    """Decode the arguments of a raw call, text or decoded, cut off or not. Never raises.

    Example:
        >>> verdict('{"city": "Paris"}')[1], verdict(CutOff('{"city": "Par'))[1].code
        ({'city': 'Paris'}, 'truncated')
    """
    if isinstance(sent, str):
        return str(sent), parse_arguments(sent)  # a JsonText becomes plain text
    if type(sent) is not CutOff:
        return judge(sent)
    if isinstance(sent.sent, str):
        return str(sent.sent), parse_arguments(sent.sent, cut_off=True)
    text, _ = judge(sent.sent)
    return text, Flaw("truncated", f"the answer was cut off in this call: {shown(text, from_end=True)}")


def typed_calls(
    reading: Reading,
    found: list[Verdict],
    taken: Collection[str] = (),
    answered: Collection[str] = (),
) -> ToolCalls:
    """The calls of one candidate, from what was found and what became of each call's arguments.

    Args:
        reading: what was found.
        found: the verdict on each call's arguments.
        taken: ids of the conversation so far, which no synthesised id repeats.
        answered: ids that not even a provider's own may repeat, because their calls come out together.

    Example:
        >>> reading = Reading("Let me look.", None, [(None, "now", "{}"), ("c", "now", "{")], "tool_calls")
        >>> calls = typed_calls(reading, verdicts(reading))
        >>> calls[0].id, calls.invalid[0].code, calls.text
        ('call_1', 'invalid_json', 'Let me look.')
    """
    good: list[ToolCall] = []
    bad: list[InvalidToolCall] = []
    ids, renumbered = _ids(reading.calls, taken, answered)
    turn = _turn(reading, ids)
    for index, ((_, name, _), (text, args)) in enumerate(zip(reading.calls, found, strict=True)):
        named = isinstance(name, str) and name != ""
        if named and isinstance(args, dict):
            altered = ("renumbered",) if index in renumbered else ()
            values = {
                "id": ids[index],
                "name": name,
                "args": args,
                "arguments": text,
                "index": index,
                "altered": altered,
                "turn": turn,
            }
            good.append(_trusted(ToolCall, values))
        else:
            flaw = args if named and isinstance(args, Flaw) else Flaw("missing_name", _nameless(text))
            values = {"id": ids[index], "name": name if named else None, "arguments": text, "index": index}
            bad.append(_trusted(InvalidToolCall, {**values, **flaw._asdict()}))
    values = {"tool_calls": good, "tool_call_results": None, "invalid": tuple(bad), "turn": turn}
    return _trusted(ToolCalls, values)


def _turn(reading: Reading, ids: list[str]) -> Turn:
    if reading.text is None and reading.reasoning is None and reading.state is None:
        return NO_TURN
    state = None if reading.state is None else _with_ids(reading.state, ids)
    return _trusted(Turn, {"text": reading.text, "reasoning": reading.reasoning, "state": state})


def _with_ids(state: Json, ids: list[str]) -> Json:
    """The state with each call's place named by its id, which is what the next turn knows the call by."""
    named = iter(ids)
    items = [{**item, "id": next(named, "")} if item["type"] == "call" else item for item in state["items"]]
    return {**state, "items": items}


def _nameless(arguments: str) -> str:
    return f"the call has no name; its arguments: {shown(arguments)}"


def _trusted(cls: type[_M], values: dict[str, Any]) -> _M:
    """A model of values that are right by construction, all of them given and in the fields' order.

    Validation would cost several times as much, and refuse a text that holds half of a surrogate pair.
    """
    made = object.__new__(cls)
    _put_values(made, values)
    _put_fields_set(made, set(values))
    _put_extra(made, None)
    _put_private(made, None)
    return made


def _ids(
    calls: list[RawCall], taken: Collection[str], answered: Collection[str]
) -> tuple[list[str], set[int]]:
    """An id a call, each only once, and the calls whose own id was used before."""
    own = [call_id for call_id, _, _ in calls if isinstance(call_id, str) and call_id]
    if len(set(own)) == len(calls) and not answered:
        return own, set()
    used = {*own, *taken, *answered}
    kept = set(answered)
    ids: list[str] = []
    renumbered: set[int] = set()
    number = 0
    for index, (call_id, _, _) in enumerate(calls):
        if isinstance(call_id, str) and call_id and call_id not in kept:
            kept.add(call_id)
            ids.append(call_id)
            continue
        if isinstance(call_id, str) and call_id:
            renumbered.add(index)
        number = max(number, index) + 1
        while f"call_{number}" in used:
            number += 1
        ids.append(f"call_{number}")
    return ids, renumbered
