"""Bedrock's Converse and ConverseStream."""

from typing import Any

import pytest
from wire_cases import HALVES, SAID, THOUGHT, ZURICH, Case, Json, Sample, check_case, params

from sigadapt import choice_from_response

BODY: Json = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": THOUGHT}}},
                {"text": SAID},
                {"toolUse": {"toolUseId": "c1", "name": "get_weather", "input": ZURICH}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {"totalTokens": 2},
}
SAMPLE = Sample(
    "bedrock-converse",
    BODY,
    [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"delta": {"reasoningContent": {"text": THOUGHT}}, "contentBlockIndex": 0}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"contentBlockDelta": {"delta": {"text": SAID}, "contentBlockIndex": 1}},
        {"contentBlockStop": {"contentBlockIndex": 1}},
        {
            "contentBlockStart": {
                "start": {"toolUse": {"toolUseId": "c1", "name": "get_weather"}},
                "contentBlockIndex": 2,
            }
        },
        {"contentBlockDelta": {"delta": {"toolUse": {"input": HALVES[0]}}, "contentBlockIndex": 2}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": HALVES[1]}}, "contentBlockIndex": 2}},
        {"contentBlockStop": {"contentBlockIndex": 2}},
        {"messageStop": {"stopReason": "tool_use"}},
    ],
)

PARIS = ("tooluse_1", "get_weather", {"city": "Paris"})
ROME = ("tooluse_2", "get_weather", {"city": "Rome"})


def body(*content: Json, stop: Any = "tool_use") -> Json:
    return {
        "output": {"message": {"role": "assistant", "content": list(content)}},
        "stopReason": stop,
        "usage": {"totalTokens": 2},
        "metrics": {"latencyMs": 1},
        "ResponseMetadata": {},
    }


def use(args: Any, call_id: str = "tooluse_1", **more: Any) -> Json:
    return {"toolUse": {"toolUseId": call_id, "name": "get_weather", "input": args, **more}}


def thinking(said: str) -> Json:
    return {"reasoningContent": {"reasoningText": {"text": said, "signature": "SIG"}}}


def started(index: int, call_id: str = "tooluse_1", **more: Any) -> Json:
    start = {"toolUse": {"toolUseId": call_id, "name": "get_weather", **more}}
    return {"contentBlockStart": {"start": start, "contentBlockIndex": index}}


def delta(index: int, piece: Json) -> Json:
    return {"contentBlockDelta": {"delta": piece, "contentBlockIndex": index}}


def stopped(index: int) -> Json:
    return {"contentBlockStop": {"contentBlockIndex": index}}


def text_block(index: int, *pieces: str) -> list[Json]:
    return [*[delta(index, {"text": piece}) for piece in pieces], stopped(index)]


def use_block(
    index: int, *pieces: str, call_id: str = "tooluse_1", ended: bool = True, **more: Any
) -> list[Json]:
    deltas = [delta(index, {"toolUse": {"input": piece}}) for piece in pieces]
    return [started(index, call_id, **more), *deltas, *([stopped(index)] if ended else [])]


def stream(*blocks: list[Json], stop: Any = "tool_use") -> list[Json]:
    events: list[Json] = [{"messageStart": {"role": "assistant"}}]
    events += [event for block in blocks for event in block]
    if stop is None:
        return events
    return [*events, {"messageStop": {"stopReason": stop}}, {"metadata": {"usage": {"totalTokens": 2}}}]


CASES = [
    Case(
        "text",
        body({"text": "It is "}, {"text": "sunny."}, stop="end_turn"),
        stream(text_block(0, "It is "), text_block(1, "sun", "ny."), stop="end_turn"),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "reasoning, text and two calls",
        body(
            thinking("Weather is asked."),
            {"text": "Let me look."},
            use({"city": "Paris"}, type="tool_use"),
            use({"city": "Rome"}, "tooluse_2"),
        ),
        stream(
            [
                delta(0, {"reasoningContent": {"text": "Weather "}}),
                delta(0, {"reasoningContent": {"text": "is asked."}}),
                delta(0, {"reasoningContent": {"signature": "SIG"}}),
                stopped(0),
            ],
            text_block(1, "Let me ", "look."),
            use_block(2, '{"city":', '"Paris"}'),
            use_block(3, '{"city":"Rome"}', call_id="tooluse_2"),
        ),
        text="Let me look.",
        reasoning="Weather is asked.",
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "no arguments",
        body(use({})),
        stream(use_block(0)),
        calls=(("tooluse_1", "get_weather", {}),),
        finish="tool_calls",
    ),
    Case(
        "two blocks at one index",
        None,
        stream(use_block(0, '{"city":"Paris"}'), use_block(0, '{"city":"Rome"}', call_id="tooluse_2")),
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "what Bedrock ran itself",
        body(
            use({"q": 1}, type="server_tool_use"),
            {"toolResult": {"toolUseId": "tooluse_1", "content": []}},
            {"hologram": {}},
            {"text": "Hi."},
            stop="end_turn",
        ),
        stream(
            use_block(0, '{"q":1}', type="server_tool_use"),
            [
                {
                    "contentBlockStart": {
                        "start": {"toolResult": {"toolUseId": "tooluse_1"}},
                        "contentBlockIndex": 1,
                    }
                },
                delta(1, {"toolResult": [{"text": "x"}]}),
                stopped(1),
            ],
            text_block(2, "Hi."),
            stop="end_turn",
        ),
        text="Hi.",
        finish="stop",
    ),
    Case(
        "cited text",
        body(
            {"citationsContent": {"content": [{"text": "It is sunny."}], "citations": [{"title": "x"}]}},
            stop="end_turn",
        ),
        stream(
            [delta(0, {"text": "It is sunny."}), delta(0, {"citation": {"title": "x"}}), stopped(0)],
            stop="end_turn",
        ),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "redacted reasoning",
        body({"reasoningContent": {"redactedContent": b"x"}}, {"text": "Hi."}, stop="end_turn"),
        text="Hi.",
        finish="stop",
    ),
    Case(
        "redacted reasoning, streamed",
        None,
        stream(
            [delta(0, {"reasoningContent": {"redactedContent": "eA=="}})],
            text_block(1, "Hi."),
            stop="end_turn",
        ),
        text="Hi.",
        finish="stop",
    ),
    Case(
        "a guardrail",
        body({"text": "No."}, stop="guardrail_intervened"),
        stream(text_block(0, "No."), stop="guardrail_intervened"),
        text="No.",
        finish="content_filter",
    ),
    Case(
        "a call that the provider could not read",
        body(stop="malformed_tool_use"),
        stream(stop="malformed_tool_use"),
        bad=("malformed_call",),
        finish="malformed_tool_use",
    ),
    Case(
        "cut off after a call, which cannot be known to be whole",
        body(use({"city": "Paris"}), use({"city": "Ro"}, "tooluse_2"), stop="max_tokens"),
        calls=(PARIS,),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "cut off inside a call",
        None,
        stream(
            use_block(0, '{"city":"Paris"}'),
            use_block(1, '{"city":"Ro', call_id="tooluse_2"),
            stop="max_tokens",
        ),
        calls=(PARIS,),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "a stream that breaks off inside a call",
        None,
        stream(
            text_block(0, "Let me look."),
            use_block(1, '{"city":"Paris"}'),
            use_block(2, call_id="tooluse_2", ended=False),
            stop=None,
        ),
        text="Let me look.",
        calls=(PARIS,),
        bad=("truncated",),
    ),
    Case(
        "a stream an exception breaks into",
        None,
        [
            *stream(text_block(0, "Let me"), stop=None),
            {"throttlingException": {"message": "Too many requests"}},
        ],
        text="Let me",
        finish="error",
    ),
    Case("an input as text", body(use("{}")), bad=("not_an_object",), finish="tool_calls"),
    Case(
        "deltas without a start",
        None,
        stream([delta(0, {"toolUse": {"input": "{}"}})]),
        bad=("missing_name",),
        finish="tool_calls",
    ),
]


@pytest.mark.parametrize("case", params(CASES))
def test_case(case: Case) -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    check_case(case)


def test_what_bedrock_ran_itself_stays_in_raw() -> None:
    """response-choice: Provider-executed blocks are no calls"""
    whole = body(use({"q": 1}, type="server_tool_use"), stop="end_turn")
    choice = choice_from_response(whole)
    assert choice.tool_calls is None
    assert choice.raw is whole


TWO_USES = [use({"city": "Paris"})["toolUse"], use({"city": "Rome"}, "tooluse_2")["toolUse"]]
ODD = [
    Case("a list of calls in a block", body({"toolUse": TWO_USES}), calls=(PARIS, ROME), finish="tool_calls"),
    Case("a call that is no JSON", body({"toolUse": "{x"}), bad=("missing_name",), finish="tool_calls"),
    Case(
        "content as a text",
        {"output": {"message": {"content": "It is sunny."}}, "stopReason": "end_turn"},
        text="It is sunny.",
        finish="stop",
    ),
]


@pytest.mark.parametrize("case", params(ODD))
def test_odd_shape(case: Case) -> None:
    """response-choice: An odd shape keeps its text and calls"""
    check_case(case)
