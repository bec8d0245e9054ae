"""Ollama's native chat, whole and streamed."""

import json
from typing import Any

import pytest
from wire_cases import SAID, THOUGHT, ZURICH, Case, Json, Sample, check_case, params

BODY: Json = {
    "model": "m",
    "created_at": "2026-01-01T00:00:00Z",
    "done": True,
    "done_reason": "stop",
    "message": {
        "role": "assistant",
        "content": SAID,
        "thinking": THOUGHT,
        "tool_calls": [{"id": "c1", "function": {"name": "get_weather", "arguments": ZURICH}}],
    },
}
SAMPLE = Sample(
    "ollama",
    BODY,
    [
        {"model": "m", "message": {"role": "assistant", "content": "", "thinking": THOUGHT}, "done": False},
        {"model": "m", "message": {"role": "assistant", "content": SAID}, "done": False},
        {
            "model": "m",
            "message": {
                "role": "assistant",
                "content": "",
                "tool_calls": BODY["message"]["tool_calls"],
            },
            "done": False,
        },
        {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
    ],
)

PARIS = {"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}
ROME = {"id": "call_x", "function": {"index": 1, "name": "get_weather", "arguments": {"city": "Rome"}}}
CALLS = (("call_1", "get_weather", {"city": "Paris"}), ("call_x", "get_weather", {"city": "Rome"}))


def body(message: Json, reason: Any = "stop", *, done: bool = True) -> Json:
    head = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", **message}}
    return {**head, "done": done, **({"done_reason": reason, "eval_count": 3} if done else {})}


def stream(*messages: Json, reason: Any = "stop") -> list[Json]:
    events = [body(message, done=False) for message in messages]
    return events if reason is None else [*events, body({"content": ""}, reason)]


CASES = [
    Case(
        "text",
        body({"content": "It is sunny."}),
        stream({"content": "It is "}, {"content": "sunny."}),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "thinking, text and two calls",
        body({"thinking": "Weather is asked.", "content": "Let me look.", "tool_calls": [PARIS, ROME]}),
        stream(
            {"thinking": "Weather ", "content": ""},
            {"thinking": "is asked.", "content": ""},
            {"content": "Let me look."},
            {"content": "", "tool_calls": [PARIS]},
            {"content": "", "tool_calls": [ROME]},
        ),
        text="Let me look.",
        reasoning="Weather is asked.",
        calls=CALLS,
        finish="tool_calls",
    ),
    Case(
        "no arguments",
        body({"tool_calls": [{"function": {"name": "now"}}]}),
        calls=(("call_1", "now", {}),),
        finish="tool_calls",
    ),
    Case(
        "arguments as text",
        body({"tool_calls": [{"function": {"name": "now", "arguments": "{}"}}]}),
        bad=("not_an_object",),
        finish="tool_calls",
    ),
    Case("no name", body({"tool_calls": [{}]}), bad=("missing_name",), finish="tool_calls"),
    Case(
        "cut off in the text",
        body({"content": "It is"}, "length"),
        stream({"content": "It is"}, reason="length"),
        text="It is",
        finish="length",
    ),
    Case(
        "cut off with calls, the last of which cannot be known to be whole",
        body({"tool_calls": [PARIS, ROME]}, "length"),
        stream({"content": "", "tool_calls": [PARIS, ROME]}, reason="length"),
        calls=CALLS[:1],
        bad=("truncated",),
        finish="length",
    ),
    Case("another word", body({"content": ""}, "unload"), finish="unload"),
    Case("no reason", body({"content": "Hi."}, None), text="Hi."),
    Case(
        "a stream that breaks off",
        None,
        stream({"content": "Let me "}, {"content": "", "tool_calls": [PARIS]}, reason=None),
        text="Let me ",
        calls=CALLS[:1],
    ),
    Case(
        "a stream an error breaks into",
        None,
        [*stream({"content": "Let me"}, reason=None), {"error": "model runner has stopped"}],
        text="Let me",
        finish="error",
    ),
]


@pytest.mark.parametrize("case", params(CASES))
def test_case(case: Case) -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    check_case(case)


ODD = [
    Case(
        "one call as an object",
        body({"tool_calls": PARIS}),
        stream({"tool_calls": PARIS}),
        calls=CALLS[:1],
        finish="tool_calls",
    ),
    Case(
        "calls as JSON texts",
        body({"tool_calls": [json.dumps(PARIS), json.dumps(ROME)]}),
        stream({"tool_calls": json.dumps(PARIS)}, {"tool_calls": json.dumps([ROME])}),
        calls=CALLS,
        finish="tool_calls",
    ),
    Case(
        "text that is not JSON",
        body({"tool_calls": "[{"}),
        stream({"tool_calls": "[{"}),
        bad=("missing_name",),
        finish="tool_calls",
    ),
    Case(
        "content in pieces",
        body({"content": ["It is ", {"text": "sunny."}]}),
        stream({"content": ["It is "]}, {"content": {"text": "sunny."}}),
        text="It is sunny.",
        finish="stop",
    ),
]


@pytest.mark.parametrize("case", params(ODD))
def test_odd_shape(case: Case) -> None:
    """response-choice: An odd shape keeps its text and calls"""
    check_case(case)
