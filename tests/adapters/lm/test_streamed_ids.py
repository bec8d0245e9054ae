"""One call has one id in all events of a stream, whatever the server says of its id."""

import itertools
import json
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from asking import encoded, events, whole
from support import ENGINES, May, get_weather, lm_of

import sigadapt
from sigadapt.testing import Answer, Call, LoopbackProvider

pytestmark = pytest.mark.usefixtures("closed_streams")

Json = dict[str, Any]
GONE = object()
IDS: dict[str, Any] = {
    "empty": "",
    "null": None,
    "left out": GONE,
    "a number": 7,
    "the same": "x1",
    "a list": [1],
    "an object": {},
    "a boolean": True,
}
ANSWER = Answer(
    text="Well.",
    calls=[
        Call("get_weather", {"city": city}, id=f"c{n}") for n, city in enumerate(("Rome", "Oslo", "Bern"))
    ],
    chunk=3,
)


def calls_in(wire: str, event: Json) -> Iterator[tuple[Json, str]]:
    """The places of calls in an event, and the key of their ids."""
    if wire == "openai":
        for choice in event.get("choices", ()):
            yield from ((call, "id") for call in choice["delta"].get("tool_calls") or () if "id" in call)
    elif wire == "responses":
        items = [event.get("item"), *(event.get("response") or event).get("output", ())]
        yield from ((item, "call_id") for item in items if item and item["type"] == "function_call")
    elif wire == "anthropic":
        block = event.get("content_block", {})
        yield from [(block, "id")] if block.get("type") == "tool_use" else ()
    else:
        parts = [part for each in event.get("candidates", ()) for part in each["content"]["parts"]]
        yield from ((part["functionCall"], "id") for part in parts if "functionCall" in part)


def place_of(wire: str, event: Json) -> Any:
    """The place of the call of which an event is a piece; None for any other event."""
    if wire == "openai":
        calls = [call for each in event.get("choices", ()) for call in each["delta"].get("tool_calls") or ()]
        return calls[0]["index"] if calls else None
    if wire == "responses":
        item: Json = event.get("item") or {}
        is_piece = item.get("type") == "function_call" or "function_call" in event["type"]
        return event["output_index"] if is_piece else None
    is_block = wire == "anthropic" and event["type"].startswith("content_block") and event["index"] > 0
    return event["index"] if is_block else None


def interleaved(wire: str, events: list[Json]) -> list[Json]:
    """The events, with the pieces of the calls by turns where the first of them stood."""
    groups: OrderedDict[Any, list[Json]] = OrderedDict()
    for event in events:
        if (place := place_of(wire, event)) is not None:
            groups.setdefault(place, []).append(event)
    pieces = [each for row in itertools.zip_longest(*groups.values()) for each in row if each is not None]
    first = next((n for n, event in enumerate(events) if place_of(wire, event) is not None), len(events))
    others = [event for event in events[first:] if place_of(wire, event) is None]
    return [*events[:first], *pieces, *others]


def sent(wire: str, engine: str, value: Any, *, mixed: bool) -> bytes:
    """The bytes of an answer whose calls have this in the place of their ids."""
    is_whole = (wire, engine) == ("responses", "litellm")  # which DSPy does not stream
    given: list[Json] = [whole(wire, ANSWER)] if is_whole else events(wire, ANSWER)
    for place, key in [each for event in given for each in calls_in(wire, event)]:
        place.pop(key, None)
        if value is not GONE:
            place[key] = value
    if is_whole:
        return json.dumps(given[0]).encode()
    return b"".join(encoded(wire, interleaved(wire, given) if mixed else given))


def is_lost_by_litellm(wire: str, engine: str, ids: str, *, mixed: bool) -> bool:
    """Whether LiteLLM refuses such a stream, or loses names or arguments (measured on 1.106)."""
    is_text = isinstance(IDS[ids], str) or IDS[ids] in (None, GONE)
    is_read = (is_text and ids != "left out") or wire == "openai"
    return engine == "litellm" and (not is_text or not is_read or (mixed and wire == "anthropic"))


@pytest.mark.parametrize("mixed", [False, True], ids=["in order", "interleaved"])
@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini"])
def test_every_event_of_a_call_has_the_id_of_the_call(wire: str, engine: str, ids: str, mixed: bool) -> None:
    """streaming: Every event of a call has the id of the call."""
    body = sent(wire, engine, IDS[ids], mixed=mixed)
    with LoopbackProvider(lambda _: body) as provider:
        lm = lm_of(provider, wire, engine, cache=False, num_retries=0)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
            try:
                events = [*sigadapt.stream_sync(dspy.Predict(May), question="?", tools=[get_weather])]
            except (dspy.LMError, sigadapt.SigadaptError):
                if not is_lost_by_litellm(wire, engine, ids, mixed=mixed):
                    raise
                return
    ready: list[Any] = [event.call for event in events if isinstance(event, sigadapt.events.CallReady)]
    texts: defaultdict[str | None, str] = defaultdict(str)
    for event in events:
        if isinstance(event, sigadapt.events.CallDelta):
            texts[event.id] += event.arguments
    last: Any = events[-1]
    assert sorted(call.id for call in ready) == sorted(call.id for call in last.prediction.calls)
    assert len({call.id for call in ready}) == 3
    assert {key: json.loads(text) for key, text in texts.items()} == {call.id: call.args for call in ready}
