"""Turn the calls of a Reading into typed ToolCalls, with an id for each call and a code for each bad call.

Rules:

 a. Each raw call becomes one ToolCall or one InvalidToolCall, with its raw text (rule 3).
 b. The provider's id is kept. A missing id becomes `call_<n>`: n is the call's position from 1, or the next
    free number. If an answer repeats an id, the second call gets a new one in the same way and is marked
    `renumbered` (rule 6).
 c. A call without a name is a bad call with the code `missing_name`, whatever its arguments are.
 d. Arguments that were cut off are good only if their text is a complete object. Decoded ones are always
    `truncated`, because an SDK or the provider may have closed them.

The last three functions restore declared names in typed calls, and join the calls of several answers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias, TypeVar

from sigadapt.providers.provider import CutOff, RawCall, Reading
from sigadapt.schemas.arguments import Flaw, check_decoded, parse_arguments
from sigadapt.schemas.json_values import Json, cut
from sigadapt.signatures.calls import NO_TURN, InvalidToolCall, ToolCall, ToolCalls, Turn, trusted

Arguments: TypeAlias = "tuple[str, Json | Flaw]"
"""A call's arguments as text, and either the decoded object or the Flaw that makes the call a bad one."""

C = TypeVar("C", ToolCall, InvalidToolCall)
_NONE: frozenset[int] = frozenset()


def arguments_of(sent: Any) -> Arguments:
    """Decode the arguments of a raw call. Never raises.

    Args:
        sent: JSON text, a decoded value, or a `CutOff` of either.

    Returns:
        The arguments as text, and the decoded object or a Flaw.

    Example:
        >>> arguments_of('{"city": "Paris"}')[1], arguments_of(CutOff('{"city": "Par'))[1].code
        ({'city': 'Paris'}, 'truncated')
    """
    if isinstance(sent, str):
        return str(sent), parse_arguments(sent)  # str() makes a JsonText a plain str
    if type(sent) is not CutOff:
        return check_decoded(sent)
    if isinstance(sent.sent, str):
        return str(sent.sent), parse_arguments(sent.sent, cut_off=True)
    text, _ = check_decoded(sent.sent)
    return text, Flaw("truncated", f"the answer was cut off in this call: {cut(text, from_end=True)}")


def typed_calls(
    reading: Reading, taken: Collection[str] = (), answered: Collection[str] = ()
) -> ToolCalls | None:
    """Return the typed calls of one candidate.

    Args:
        reading: the candidate.
        taken: ids already used in the conversation, which a synthesised id must not repeat.
        answered: ids of earlier answers to the same call, which not even a provider's id may repeat: their
            calls end up in the same ToolCalls.

    Returns:
        The calls, good and bad; None if there are none.

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
    ids, renumbered = _unique_ids(reading.calls, taken, answered)
    turn = _turn(reading, ids)
    for index, (_, name, sent) in enumerate(reading.calls):
        text, args = (sent, parse_arguments(sent)) if type(sent) is str else arguments_of(sent)
        if isinstance(name, str) and name and type(args) is dict:
            values = {
                "id": ids[index],
                "name": name,
                "args": args,
                "arguments": text,
                "index": index,
                "altered": ("renumbered",) if index in renumbered else (),
                "turn": turn,
            }
            good.append(trusted(ToolCall, values))
        else:
            bad.append(_invalid_call(ids[index], name, text, args, index))
    values = {"tool_calls": good, "tool_call_results": None, "invalid": tuple(bad), "turn": turn}
    return trusted(ToolCalls, values)


def _invalid_call(call_id: str, name: Any, text: str, args: Any, index: int) -> InvalidToolCall:
    is_named = isinstance(name, str) and name != ""
    flaw = args if is_named else Flaw("missing_name", f"the call has no name; its arguments: {cut(text)}")
    values = {"id": call_id, "name": name if is_named else None, "arguments": text, "index": index}
    return trusted(InvalidToolCall, {**values, **flaw._asdict()})


def _turn(reading: Reading, ids: list[str]) -> Turn:
    if reading.text is None and reading.reasoning is None and reading.state is None:
        return NO_TURN
    state = None if reading.state is None else _with_ids(reading.state, ids)
    return trusted(Turn, {"text": reading.text, "reasoning": reading.reasoning, "state": state})


def _with_ids(state: Json, ids: list[str]) -> Json:
    """Return the provider state with the id of each call added to its item, so the next turn can find it."""
    named = iter(ids)
    items = [{**item, "id": next(named, "")} if item["type"] == "call" else item for item in state["items"]]
    return {**state, "items": items}


def _unique_ids(
    calls: list[RawCall], taken: Collection[str], answered: Collection[str]
) -> tuple[list[str], AbstractSet[int]]:
    """Return a unique id for each call, and the positions of the calls whose own id was already used."""
    own = [call[0] for call in calls if isinstance(call[0], str) and call[0]]
    if len(set(own)) == len(calls) and not answered:
        return own, _NONE
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


def with_declared_names(calls: ToolCalls, aliases: Mapping[str, str]) -> ToolCalls:
    """Return the calls, good and bad, with declared names in the place of aliases (rule 10).

    Args:
        calls: the calls, with the names that the model used.
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
    """Return the calls of a later answer with `before` added to each index.

    Args:
        calls: the calls.
        before: how many calls, good and bad, the earlier answers made.
    """
    return [call.model_copy(update={"index": call.index + before}) if before else call for call in calls]


def with_earlier_calls(kept: Sequence[ToolCall], calls: ToolCalls | None, turn: Turn, before: int) -> Any:
    """Return the last answer's calls together with the good calls of the answers before it.

    Args:
        kept: the good calls of the earlier answers.
        calls: the last answer's calls; None if it made none.
        turn: what the last answer said.
        before: how many calls, good and bad, the earlier answers made.
    """
    if not kept:
        return calls
    latest = calls if calls is not None else ToolCalls(tool_calls=[], turn=turn)
    good, bad = renumbered(latest, before), renumbered(latest.invalid, before)
    return latest.model_copy(update={"tool_calls": [*kept, *good], "invalid": tuple(bad)})
