"""A key twice in a stream's own text: a bad call where it stands in decoded arguments, nothing elsewhere."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigadapt.adapters.response.choice import choice_from_stream
from sigadapt.schemas.arguments import check_decoded
from sigadapt.schemas.json_values import RepeatedKeys
from sigadapt.schemas.repeated_keys import decode, decode_at

TWICE = '{"a":1,"a":2}'
DEEP = '{"b":[{"c":{"a":1,"a":2}}]}'


EVENTS = {
    "gemini": [
        """{"candidates":[{"content":{"parts":[{"text":"Hm."},
        {"functionCall":{"id":"g1","name":"f","args":ARGS}}]},"finishReason":"STOP"}]}""",
    ],
    "ollama": [
        """{"message":{"content":"Hm.","tool_calls":[
        {"id":"g1","function":{"name":"f","arguments":ARGS}}]},"done":false}""",
        '{"message":{"content":""},"done":true,"done_reason":"stop"}',
    ],
    "anthropic": [
        '{"type":"message_start","message":{"type":"message","content":[]}}',
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hm."}}',
        """{"type":"content_block_start","index":1,
        "content_block":{"type":"tool_use","id":"g1","name":"f","input":ARGS}}""",
        '{"type":"content_block_stop","index":1}',
        '{"type":"message_delta","delta":{"stop_reason":"tool_use"}}',
    ],
    "chat": [
        """{"choices":[{"delta":{"content":"Hm.","tool_calls":[
        {"index":0,"id":"g1","function":{"name":"f","arguments":ARGS}}]}}]}""",
        '{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}',
    ],
}


def events_of(wire: str, arguments: str) -> list[str]:
    return [event.replace("\n", "").replace("ARGS", arguments) for event in EVENTS[wire]]


def framed(events: list[str]) -> list[Any]:
    sse = "".join(f"data: {event}\n\n" for event in events)
    return [
        sse,
        [sse[n : n + 1].encode() for n in range(len(sse))],
        "\n".join(events),
        f"[{','.join(events)}]",
    ]


@pytest.mark.parametrize("arguments", [TWICE, DEEP])
@pytest.mark.parametrize("wire", sorted(EVENTS))
def test_a_key_twice_in_arguments_is_a_bad_call(wire: str, arguments: str) -> None:
    """response-choice: A key twice in a stream's own text is a bad call"""
    for stream in framed(events_of(wire, arguments)):
        choice = choice_from_stream(stream)
        assert choice.text == "Hm."
        assert choice.tool_calls is not None
        bad = [(call.id, call.name, call.code, call.arguments) for call in choice.tool_calls.invalid]
        assert bad == [("g1", "f", "duplicate_key", arguments)]
        assert len(choice.tool_calls) == 0


@pytest.mark.parametrize(
    ("key", "wire"), [("args", "gemini"), ("arguments", "ollama"), ("input", "anthropic")]
)
def test_arguments_given_twice_are_a_bad_call(key: str, wire: str) -> None:
    """response-choice: A key twice in a stream's own text is a bad call"""
    twice = f'{{"x":1}},"{key}":{{"x":2}}'
    choice = choice_from_stream(framed(events_of(wire, twice))[0])
    assert choice.tool_calls is not None
    kept = f'{{"{key}":{{"x":1}},"{key}":{{"x":2}}}}'
    assert [(bad.code, bad.arguments) for bad in choice.tool_calls.invalid] == [("duplicate_key", kept)]


@pytest.mark.parametrize("wire", sorted(EVENTS))
def test_a_key_twice_elsewhere_costs_nothing(wire: str) -> None:
    """response-choice: A key twice elsewhere costs nothing"""
    more = ',"extra":{"x":1,"x":{"y":1,"y":2}},"extra":0}'
    events = [event[:-1] + more for event in events_of(wire, '{"city":"Paris"}')]
    for stream in framed(events):
        choice = choice_from_stream(stream)
        assert choice.text == "Hm."
        assert choice.finish_reason == "tool_calls"
        assert choice.tool_calls is not None
        assert [(call.id, call.args) for call in choice.tool_calls] == [("g1", {"city": "Paris"})]


def test_a_leaf_with_a_key_twice_is_a_bad_call() -> None:
    """response-choice: A key twice in a stream's own text is a bad call"""
    leaf = '{"jsonPath":"$.a","stringValue":"x","stringValue":"y"}'
    (event,) = events_of("gemini", "{}")
    event = event.replace('"args":{}', f'"partialArgs":[{leaf}]')
    choice = choice_from_stream(f"data: {event}\n\n")
    assert choice.tool_calls is not None
    (bad,) = choice.tool_calls.invalid
    assert (bad.code, bad.arguments) == ("duplicate_key", f"[{leaf}]")


class Pairs(tuple[Any, ...]):
    """The pairs of an object, some of which may have the same key."""

    __slots__ = ()


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(st.sampled_from("abc"), inner), max_size=3).map(Pairs)
    ),
    max_leaves=12,
)


def written(value: Any) -> str:
    if isinstance(value, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{written(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"  # pyright: ignore[reportUnknownArgumentType]
    return json.dumps(value, ensure_ascii=False)


def repeats(value: Any) -> bool:
    if isinstance(value, Pairs):
        return len(dict(value)) < len(value) or any(repeats(item) for _, item in value)
    return isinstance(value, list) and any(map(repeats, value))  # pyright: ignore[reportUnknownArgumentType]


@given(st.lists(st.tuples(st.sampled_from("abc"), VALUES), max_size=4).map(Pairs))
def test_any_object_is_marked_exactly_if_a_key_repeats(value: Pairs) -> None:
    """response-choice: A key twice in a stream's own text is a bad call"""
    text = written(value)
    found = decode(text)
    assert found == json.loads(text)
    assert decode_at(text) == (found, len(text))
    assert (type(found) is RepeatedKeys) == repeats(value)
    if repeats(value):
        sent, flaw = check_decoded(found)
        assert sent == text
        assert not isinstance(flaw, dict)
        assert flaw.code == "duplicate_key"
