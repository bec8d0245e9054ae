"""A key twice: a bad call in a text of arguments, the last value in a body."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigadapt.response import choice_from_response, choice_from_stream

EVENTS = {
    "gemini": [
        """{"candidates":[{"content":{"parts":[{"text":"Hm."},
        {"functionCall":{"id":"g1","name":"f","args":ARGS}}]},"finishReason":"STOP"}]}"""
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


@pytest.mark.parametrize("wire", sorted(EVENTS))
def test_a_key_twice_elsewhere_costs_nothing(wire: str) -> None:
    """response-choice: A key twice elsewhere costs nothing"""
    more = ',"extra":{"x":1,"x":{"y":1,"y":2}},"extra":0}'
    events = [event[:-1] + more for event in events_of(wire, '{"city":"Rome","city":"Paris"}')]
    for stream in framed(events):
        choice = choice_from_stream(stream)
        assert choice.text == "Hm."
        assert choice.finish_reason == "tool_calls"
        assert choice.tool_calls is not None
        assert [(call.id, call.args) for call in choice.tool_calls] == [("g1", {"city": "Paris"})]


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
    """response-choice: A key twice in a text of arguments is a bad call"""
    text = written(value)
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}
    calls = choice_from_response({"choices": [{"message": {"tool_calls": [call]}}]}).tool_calls
    assert calls is not None
    made: Any
    [made] = calls.in_order()
    assert made.arguments == text
    if repeats(value):
        assert made.code == "duplicate_key"
    else:
        assert made.args == json.loads(text)
