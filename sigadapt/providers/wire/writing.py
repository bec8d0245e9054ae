"""Helpers for the way back: a turn of the model as its provider sent it, with the calls of the conversation.

A provider's `turn` writes the rows of the turn from what `blocks_with_calls` returns.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sigadapt.json_values import Json, as_unicode, compact
from sigadapt.providers.provider import Provider
from sigadapt.schemas.arguments import parse_arguments


class PlacedBlock(NamedTuple):
    """A block of a turn, where it goes back."""

    block: Json
    kind: str  # of its part
    call: Json | None  # as the canonical Request has it; None for any other block


def blocks_with_calls(provider: Provider, message: Json, state: Json | None) -> list[PlacedBlock]:
    """Return the blocks of a turn with the calls that go back, in the provider's order."""
    return _remaining(_places(provider, message, state))


def drops_thinking(provider: Provider, message: Json, state: Json) -> bool:
    """Return whether thinking is left out with a call that the program took out."""
    whole = _places(provider, message, state)
    counts = [sum(place.kind == "thinking" for place in places) for places in (whole, _remaining(whole))]
    return counts[1] < counts[0]


def _remaining(whole: Sequence[PlacedBlock]) -> list[PlacedBlock]:
    # A call that the program took out is left out. So is the thinking directly before it, unless the next
    # block is one that thinking may precede: providers refuse thinking that leads to nothing. A call that the
    # program added comes last.
    places: list[PlacedBlock] = []
    taken_out = False
    for place in reversed(whole):
        is_thinking = place.kind == "thinking"
        leads_to_nothing = not places or places[-1].kind == "thinking"
        if place.call is None and place.kind == "call":
            taken_out = True
        elif not (taken_out and leads_to_nothing and is_thinking):
            taken_out = False
            places.append(place)
    return places[::-1]


def _places(provider: Provider, message: Json, state: Json | None) -> list[PlacedBlock]:
    calls: list[Any] = message.get("tool_calls") or []
    if state is None:  # a turn of text and calls alone
        state = {"blocks": provider.plain_blocks(message.get("content"), len(calls))}
        state["ids"] = [call["id"] for call in calls]
    waiting = {call["id"]: call for call in calls}
    ids = iter(state.get("ids", ()))
    places: list[PlacedBlock] = []
    for block in state["blocks"]:
        kind = provider.part_of(block).kind
        call = waiting.pop(next(ids, ""), None) if kind == "call" else None
        places.append(PlacedBlock(block, kind, call))
    return places + [PlacedBlock({}, "", call) for call in waiting.values()]


def plain_text(content: str | Sequence[Json]) -> str:
    """Return instructions inside of a conversation as one text."""
    return content if isinstance(content, str) else "\n".join(str(block.get("text")) for block in content)


def functions_chosen(choice: str | Json | None) -> tuple[str, list[str]] | None:
    """Return the mode of a tool choice and the functions that it names; None if it names other tools."""
    if choice is None or isinstance(choice, str):
        return choice or "auto", []
    subset: Json = choice.get("allowed_tools") or {"mode": "required", "tools": [choice]}
    if subset["mode"] == "validated" or any(tool["type"] != "function" for tool in subset["tools"]):
        return None
    return subset["mode"], [tool["function"]["name"] for tool in subset["tools"]]


def written_text(call: Json) -> str:
    """Return the text of a call of a canonical Request as the model wrote it."""
    return as_unicode(call["custom"]["input"] if "custom" in call else call["function"]["arguments"])


def text_of_arguments(call: Json) -> str:
    """Return the arguments of a call of a canonical Request as JSON text of an object."""
    # Of arguments that are not an object, an empty object goes back; the call's result describes them.
    if "custom" in call:
        return compact({"input": written_text(call)})
    text: str = call["function"]["arguments"]
    return text if isinstance(parse_arguments(text), dict) and text.strip() else "{}"


def arguments_of(call: Json) -> Json:
    """Return the arguments of a call of a canonical Request; an empty object if they are not an object."""
    args = parse_arguments(text_of_arguments(call))
    return args if isinstance(args, dict) else {}
