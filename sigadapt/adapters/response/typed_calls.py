"""From the calls of a Reading to typed ToolCalls: ids, arguments, and a code for each bad call.

Rules it enforces:

 a. Each raw call comes out once, as a ToolCall or as an InvalidToolCall, with its raw text (rule 3).
 b. The provider's id is kept. A missing one is `call_<n>`, n the call's position from 1, or the next number
    free in the answer; an id the answer used before is replaced likewise and the call marked `renumbered`
    (rule 6).
 c. A call without a name is `missing_name`, whatever its arguments.
 d. Arguments that were cut off are good only as the text of a complete object. Decoded ones, which an SDK or
    the provider may have closed, are `truncated`.

The last two functions change typed calls: names back to those declared, and calls of earlier answers kept.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from sigadapt.providers.provider import CutOff, Reading
from sigadapt.schemas.arguments import Flaw, check_decoded, parse_arguments
from sigadapt.schemas.json_values import Json, cut
from sigadapt.signatures.calls import NO_TURN, InvalidToolCall, ToolCall, ToolCalls, Turn, trusted, unique_ids

Arguments: TypeAlias = "tuple[str, Json | Flaw]"
"""A call's arguments as text, and the object they are or the flaw that keeps them from being one."""

C = TypeVar("C", ToolCall, InvalidToolCall)


def arguments_of(sent: Any) -> Arguments:
    """Decode the arguments of a raw call, text or decoded, cut off or not. Never raises.

    Example:
        >>> arguments_of('{"city": "Paris"}')[1], arguments_of(CutOff('{"city": "Par'))[1].code
        ({'city': 'Paris'}, 'truncated')
    """
    if isinstance(sent, str):
        return str(sent), parse_arguments(sent)  # a JsonText becomes plain text
    if type(sent) is not CutOff:
        return check_decoded(sent)
    if isinstance(sent.sent, str):
        return str(sent.sent), parse_arguments(sent.sent, cut_off=True)
    text, _ = check_decoded(sent.sent)
    return text, Flaw("truncated", f"the answer was cut off in this call: {cut(text, from_end=True)}")


def typed_calls(
    reading: Reading, taken: Collection[str] = (), answered: Collection[str] = ()
) -> ToolCalls | None:
    """Type the calls of one candidate.

    Args:
        reading: the candidate.
        taken: ids of the conversation so far, which no synthesised id repeats.
        answered: ids that not even a provider's own may repeat, because their calls come out together.

    Returns:
        The calls, good and bad; None where there are none.

    Example:
        >>> reading = Reading("Let me look.", None, [(None, "now", "{}"), ("c", "now", "{")], "tool_calls")
        >>> calls = typed_calls(reading)
        >>> calls[0].id, calls.invalid[0].code, calls.text
        ('call_1', 'invalid_json', 'Let me look.')
    """
    if not reading.calls:
        return None
    good: list[ToolCall] = []
    bad: list[InvalidToolCall] = []
    ids, renumbered = unique_ids([call_id for call_id, _, _ in reading.calls], taken, answered)
    turn = _turn(reading, ids)
    for index, (_, name, sent) in enumerate(reading.calls):
        text, args = arguments_of(sent)
        is_named = isinstance(name, str) and name != ""
        if not is_named:
            args = Flaw("missing_name", f"the call has no name; its arguments: {cut(text)}")
        values = {"id": ids[index], "name": name if is_named else None}
        altered = ("renumbered",) if index in renumbered else ()
        if isinstance(args, Flaw):
            values |= {"arguments": text, "index": index, **args._asdict(), "altered": altered}
            bad.append(trusted(InvalidToolCall, values))
        else:
            values |= {"args": args, "arguments": text, "index": index, "altered": altered, "turn": turn}
            good.append(trusted(ToolCall, values))
    values = {"tool_calls": good, "tool_call_results": None, "invalid": tuple(bad), "turn": turn}
    return trusted(ToolCalls, values)


def _turn(reading: Reading, ids: list[str]) -> Turn:
    if reading.text is None and reading.reasoning is None and reading.state is None:
        return NO_TURN
    state = None if reading.state is None else _with_ids(reading.state, ids)
    return trusted(Turn, {"text": reading.text, "reasoning": reading.reasoning, "state": state})


def _with_ids(state: Json, ids: list[str]) -> Json:
    """The state with each call's place named by its id, which is what the next turn knows the call by."""
    named = iter(ids)
    items = [{**item, "id": next(named, "")} if item["type"] == "call" else item for item in state["items"]]
    return {**state, "items": items}


def with_declared_names(calls: ToolCalls, aliases: Mapping[str, str]) -> ToolCalls:
    """Return the calls, good and bad, under the declared names.

    Args:
        calls: the calls as the model made them.
        aliases: the alias of each declared name that has one.

    Example:
        >>> calls = ToolCalls([{"name": "files_read_1", "args": {}}])
        >>> with_declared_names(calls, {"files.read": "files_read_1"})
        ToolCalls([files.read()])
    """
    if not aliases:
        return calls
    declared = {alias: name for name, alias in aliases.items()}

    def back(call: Any) -> Any:
        return call.model_copy(update={"name": declared[call.name]}) if call.name in declared else call

    good, bad = [back(call) for call in calls], tuple(map(back, calls.invalid))
    return calls.model_copy(update={"tool_calls": good, "invalid": bad})


def renumbered(calls: Iterable[C], before: int) -> list[C]:
    """Return the calls of a later answer, numbered on from those of the answers before it."""
    return [call.model_copy(update={"index": call.index + before}) if before else call for call in calls]


def with_earlier_calls(kept: Sequence[ToolCall], calls: ToolCalls | None, turn: Turn, before: int) -> Any:
    """Return the last answer's calls together with the good calls of the answers before it.

    Args:
        kept: the good calls of the answers before.
        calls: the last answer's calls, if it made any.
        turn: what the last answer said.
        before: how many calls, good and bad, the answers before made.
    """
    if not kept:
        return calls
    latest = calls if calls is not None else ToolCalls(tool_calls=[], turn=turn)
    good, bad = renumbered(latest, before), renumbered(latest.invalid, before)
    return latest.model_copy(update={"tool_calls": [*kept, *good], "invalid": tuple(bad)})
