"""Helpers for the way back: a turn of the model in its provider's own form, put where lm15 wrote its calls.

A provider's `own_turn` makes the blocks of the turn (`in_order`, `arguments_of`); its `put_turns` puts them
into the body that lm15 wrote (`with_turns`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from sigadapt.providers.provider import OwnTurn
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, as_unicode, compact


class Place(NamedTuple):
    """One item of a turn's state, and its call as the canonical Request has it; None for any other item."""

    item: Json
    call: Json | None = None


def in_order(items: Sequence[Json], calls: Sequence[Json]) -> list[Place]:
    """Return the items of a turn with the calls that go back, in the order in which the provider sent them.

    Example:
        >>> hm, first, second = {"type": "thinking"}, {"type": "call", "id": "a"}, {"type": "call", "id": "b"}
        >>> [place.item["type"] for place in in_order([hm, first, second], [{"id": "b"}])]
        ['thinking', 'call']
        >>> [place.item["type"] for place in in_order([first, hm, second], [{"id": "a"}])]
        ['call']
    """
    # A call that the program took out is left out. So is the thinking directly before it, unless the next
    # block is one that thinking may precede: providers refuse thinking that leads to nothing. A call that the
    # program added comes last.
    return _without_loose_thinking(_placed(items, calls))


def loose_thinking(items: Sequence[Json], calls: Sequence[Json]) -> bool:
    """Return whether thinking is left out with a call that the program took out (see `in_order`).

    Example:
        >>> loose_thinking([{"type": "thinking"}, {"type": "call", "id": "a"}], [])
        True
    """
    found = _placed(items, calls)
    return len(_without_loose_thinking(found)) < len(found) - found.count(None)


def _placed(items: Sequence[Json], calls: Sequence[Json]) -> list[Place | None]:
    """Return the items with their calls; None stands for a call that was taken out."""
    waiting = {call["id"]: call for call in calls}
    found: list[Place | None] = []
    for item in items:
        if item["type"] != "call":
            found.append(Place(item))
        else:
            call = waiting.pop(item.get("id"), None)
            found.append(None if call is None else Place(item, call))
    return found + [Place({"type": "call"}, call) for call in waiting.values()]


def _without_loose_thinking(found: Sequence[Place | None]) -> list[Place]:
    """Return the places without the calls that were taken out, and the thinking that led to nothing else."""
    places: list[Place] = []
    taken_out = False
    for place in reversed(found):
        if place is None:
            taken_out = True
        elif not (taken_out and place.item["type"] == "thinking" and _ends_thought(places)):
            taken_out = False
            places.append(place)
    return places[::-1]


def _ends_thought(following: Sequence[Place]) -> bool:
    return not following or following[-1].item["type"] == "thinking"


def name_of(call: Json) -> Any:
    """Return the name of a call of a canonical Request."""
    return call["custom" if "custom" in call else "function"]["name"]


def written_text(call: Json) -> str:
    """Return the text of a call of a canonical Request as the model wrote it.

    Example:
        >>> written_text({"custom": {"name": "run", "input": "1 + 1"}})
        '1 + 1'
    """
    return as_unicode(call["custom"]["input"] if "custom" in call else call["function"]["arguments"])


def text_of_arguments(call: Json) -> str:
    """Return the arguments of a call of a canonical Request as JSON text of an object.

    Example:
        >>> text_of_arguments({"function": {"name": "f", "arguments": "{"}})
        '{}'
    """
    # Of arguments that are not an object, an empty object goes back; the call's result describes them.
    if "custom" in call:
        return compact({"input": written_text(call)})
    text: str = call["function"]["arguments"]
    return text if isinstance(parse_arguments(text), dict) and text.strip() else "{}"


def arguments_of(call: Json) -> Json:
    """Return the arguments of a call of a canonical Request; an empty object if they are not an object."""
    args = parse_arguments(text_of_arguments(call))
    return args if isinstance(args, dict) else {}


def with_turns(
    rows: Iterable[Json],
    turns: Sequence[OwnTurn],
    calls_in: Callable[[Json], int],
    put: Callable[[Json, OwnTurn], Json],
) -> list[Json]:
    """Return the messages of a request with some turns of the model in the provider's own form.

    Example:
        >>> rows = [{"calls": 1}, {"calls": 0}, {"calls": 2}]
        >>> own = OwnTurn(1, 2, [{"type": "search"}])
        >>> with_turns(rows, [own], lambda row: row["calls"], lambda row, turn: {"blocks": turn.blocks})
        [{'calls': 1}, {'calls': 0}, {'blocks': [{'type': 'search'}]}]
    """
    waiting = {turn.at: turn for turn in turns}
    written: list[Json] = []
    at = 0
    for row in rows:
        calls = calls_in(row)
        turn = waiting.get(at) if calls else None
        written.append(row if turn is None else put(row, turn))
        at += calls
    return written
