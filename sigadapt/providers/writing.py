"""Helpers for the way back: a turn of the model as its provider sent it, with the calls of the conversation.

A provider's `turn` writes the rows of the turn from what `blocks_with_calls` returns.
"""

from collections.abc import Iterable, Sequence

from sigadapt.providers.provider import Provider
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, as_unicode, compact

Place = tuple[Json, Json | None]
"""A block of a turn, and its call as the canonical Request has it; None for any other block."""


def blocks_with_calls(provider: Provider, state: Json, calls: Iterable[Json]) -> list[Place]:
    """Return the blocks of a turn with the calls that go back, in the provider's order."""
    # A call that the program took out is left out. So is the thinking directly before it, unless the next
    # block is one that thinking may precede: providers refuse thinking that leads to nothing. A call that the
    # program added comes last.
    places: list[Place] = []
    taken_out = False
    for block, call in reversed(_places(provider, state, calls)):
        leads_to_nothing = not places or provider.is_thinking(places[-1][0])
        if call is None and provider.is_call(block):
            taken_out = True
        elif not (taken_out and leads_to_nothing and provider.is_thinking(block)):
            taken_out = False
            places.append((block, call))
    return places[::-1]


def drops_thinking(provider: Provider, state: Json, calls: Sequence[Json]) -> bool:
    """Return whether thinking is left out with a call that the program took out."""

    def count(places: Iterable[Place]) -> int:
        return sum(provider.is_thinking(block) for block, _ in places)

    return count(blocks_with_calls(provider, state, calls)) < count(_places(provider, state, calls))


def _places(provider: Provider, state: Json, calls: Iterable[Json]) -> list[Place]:
    waiting = {call["id"]: call for call in calls}
    ids = iter(state.get("ids", ()))
    places: list[Place] = [
        (block, waiting.pop(next(ids, ""), None) if provider.is_call(block) else None)
        for block in state["blocks"]
    ]
    return places + [({}, call) for call in waiting.values()]


def plain_state(provider: Provider, message: Json) -> Json:
    """Return a turn of text and calls alone in the form of a state."""
    calls: list[Json] = message.get("tool_calls") or []
    text = as_unicode(message.get("content") or "")
    return {"blocks": provider.plain_blocks(text, len(calls)), "ids": [call["id"] for call in calls]}


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
