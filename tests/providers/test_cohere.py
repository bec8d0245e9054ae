"""Cohere's version 2 chat, whole and streamed."""

from typing import Any

import pytest
from wire_cases import ARGUMENTS, HALVES, SAID, THOUGHT, Case, Json, Sample, check_case, params

BODY: Json = {
    "id": "x",
    "finish_reason": "TOOL_CALL",
    "usage": {},
    "message": {
        "role": "assistant",
        "tool_plan": THOUGHT,
        "content": [{"type": "text", "text": SAID}],
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENTS}}
        ],
    },
}
SAMPLE = Sample(
    "cohere",
    BODY,
    [
        {"type": "message-start", "id": "x", "delta": {"message": {"role": "assistant"}}},
        {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": THOUGHT}}},
        {
            "type": "content-start",
            "index": 0,
            "delta": {"message": {"content": {"type": "text", "text": ""}}},
        },
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": SAID}}}},
        {
            "type": "tool-call-start",
            "index": 0,
            "delta": {
                "message": {
                    "tool_calls": {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": ""},
                    }
                }
            },
        },
        {
            "type": "tool-call-delta",
            "index": 0,
            "delta": {"message": {"tool_calls": {"function": {"arguments": HALVES[0]}}}},
        },
        {
            "type": "tool-call-delta",
            "index": 0,
            "delta": {"message": {"tool_calls": {"function": {"arguments": HALVES[1]}}}},
        },
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL", "usage": {}}},
    ],
)

PARIS = ("get_weather_1", "get_weather", {"city": "Paris"})
ROME = ("get_weather_2", "get_weather", {"city": "Rome"})


def call(arguments: Any, call_id: str = "get_weather_1") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}


def body(message: Json, finish: Any = "TOOL_CALL") -> Json:
    return {"id": "x", "finish_reason": finish, "message": {"role": "assistant", **message}, "usage": {}}


def event(kind: str, index: int | None = None, **message: Any) -> Json:
    at = {} if index is None else {"index": index}
    return {"type": kind, **at, **({"delta": {"message": message}} if message else {})}


def content_events(index: int, *pieces: str, key: str = "text") -> list[Json]:
    start = event("content-start", index, content={"type": key, key: ""})
    deltas = [event("content-delta", index, content={key: piece}) for piece in pieces]
    return [start, *deltas, event("content-end", index)]


def call_events(index: int, *pieces: str, call_id: str = "get_weather_1", ended: bool = True) -> list[Json]:
    deltas = [
        event("tool-call-delta", index, tool_calls={"function": {"arguments": piece}}) for piece in pieces
    ]
    ending = [event("tool-call-end", index)] if ended else []
    return [event("tool-call-start", index, tool_calls=call("", call_id)), *deltas, *ending]


def stream(*groups: list[Json], finish: Any = "TOOL_CALL", **delta: Any) -> list[Json]:
    started = {"type": "message-start", "id": "x", "delta": {"message": {"role": "assistant"}}}
    events = [started, *[event for group in groups for event in group]]
    if finish is None:
        return events
    return [*events, {"type": "message-end", "delta": {"finish_reason": finish, "usage": {}, **delta}}]


PLAN = [event("tool-plan-delta", tool_plan="I will "), event("tool-plan-delta", tool_plan="look.")]

CASES = [
    Case(
        "text, with its citations",
        body(
            {"content": [{"type": "text", "text": "It is sunny."}], "citations": [{"text": "sunny"}]},
            "COMPLETE",
        ),
        stream(
            content_events(0, "It is ", "sunny."),
            [event("citation-start", 0, citations={"text": "sunny"}), event("citation-end", 0)],
            finish="COMPLETE",
        ),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "a plan and two calls",
        body(
            {
                "tool_plan": "I will look.",
                "tool_calls": [call('{"city":"Paris"}'), call('{"city":"Rome"}', "get_weather_2")],
            }
        ),
        stream(
            PLAN,
            call_events(0, '{"city":', '"Paris"}'),
            call_events(1, '{"city":"Rome"}', call_id="get_weather_2"),
        ),
        reasoning="I will look.",
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "thinking and text",
        body(
            {
                "content": [
                    {"type": "thinking", "thinking": "Weather is asked."},
                    {"type": "text", "text": "Sunny."},
                ]
            },
            "STOP_SEQUENCE",
        ),
        stream(
            content_events(0, "Weather ", "is asked.", key="thinking"),
            content_events(1, "Sunny."),
            finish="STOP_SEQUENCE",
        ),
        text="Sunny.",
        reasoning="Weather is asked.",
        finish="stop",
    ),
    Case(
        "no arguments",
        body({"tool_calls": [call("")]}),
        stream(call_events(0)),
        calls=(("get_weather_1", "get_weather", {}),),
        finish="tool_calls",
    ),
    Case(
        "two calls at one index",
        None,
        stream(
            call_events(0, '{"city":"Paris"}'), call_events(0, '{"city":"Rome"}', call_id="get_weather_2")
        ),
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "cut off inside a call",
        body({"tool_calls": [call('{"city":"Paris"}'), call('{"city":"Ro', "get_weather_2")]}, "MAX_TOKENS"),
        stream(
            call_events(0, '{"city":"Paris"}'),
            call_events(1, '{"city":"Ro', call_id="get_weather_2"),
            finish="MAX_TOKENS",
        ),
        calls=(PARIS,),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "a generation that failed",
        body({"content": [{"type": "text", "text": "It"}]}, "ERROR"),
        stream(content_events(0, "It"), finish="ERROR"),
        text="It",
        finish="error",
    ),
    Case(
        "a generation that failed, and why",
        None,
        stream(content_events(0, "It"), finish="ERROR", error="out of memory"),
        text="It",
        finish="error",
    ),
    Case(
        "a stream that breaks off inside a call",
        None,
        stream(
            PLAN,
            call_events(0, '{"city":"Paris"}'),
            call_events(1, ended=False, call_id="get_weather_2"),
            finish=None,
        ),
        reasoning="I will look.",
        calls=(PARIS,),
        bad=("truncated",),
    ),
    Case(
        "a fragment without a start",
        None,
        stream([event("tool-call-delta", 0, tool_calls={"function": {"arguments": "{}"}})]),
        bad=("missing_name",),
        finish="tool_calls",
    ),
]


@pytest.mark.parametrize("case", params(CASES))
def test_case(case: Case) -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    check_case(case)


ODD = [
    Case(
        "content as a text", body({"content": "It is sunny."}, "COMPLETE"), text="It is sunny.", finish="stop"
    ),
    Case(
        "one call as an object",
        body({"tool_calls": call('{"city":"Paris"}')}),
        calls=(PARIS,),
        finish="tool_calls",
    ),
    Case(
        "a streamed call in a list, and text without a part",
        None,
        stream(
            [event("content-start", 0, content="It is "), event("content-delta", 0, content="sunny.")],
            [event("tool-call-start", 0, tool_calls=[call("")])],
            [event("tool-call-delta", 0, tool_calls=[{"function": {"arguments": '{"city":"Paris"}'}}])],
        ),
        text="It is sunny.",
        calls=(PARIS,),
        finish="tool_calls",
    ),
    Case(
        "a call without a function",
        body({"tool_calls": [{"id": "x", "name": 3}]}),
        bad=("missing_name",),
        finish="tool_calls",
    ),
]


@pytest.mark.parametrize("case", params(ODD))
def test_odd_shape(case: Case) -> None:
    """response-choice: An odd shape keeps its text and calls"""
    check_case(case)
