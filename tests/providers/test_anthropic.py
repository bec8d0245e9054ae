"""Anthropic Messages, whole and streamed."""

from typing import Any

import pytest
from wire_cases import HALVES, SAID, THOUGHT, ZURICH, Case, Json, Sample, check_case, params

from sigadapt import choice_from_response
from sigadapt.response import choice_from_stream

USAGE = {"input_tokens": 1, "output_tokens": 1}
BODY: Json = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "content": [
        {"type": "thinking", "thinking": THOUGHT, "signature": "SIG"},
        {"type": "text", "text": SAID},
        {"type": "tool_use", "id": "c1", "name": "get_weather", "input": ZURICH},
    ],
    "usage": USAGE,
}
SAMPLE = Sample(
    "anthropic",
    BODY,
    [
        {"type": "message_start", "message": {**BODY, "content": [], "stop_reason": None}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": THOUGHT}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "signature_delta", "signature": "SIG"},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": SAID}},
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": HALVES[0]},
        },
        {
            "type": "content_block_delta",
            "index": 2,
            "delta": {"type": "input_json_delta", "partial_json": HALVES[1]},
        },
        {"type": "content_block_stop", "index": 2},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": USAGE,
        },
        {"type": "message_stop"},
    ],
)

PARIS = ("toolu_1", "get_weather", {"city": "Paris"})
ROME = ("toolu_2", "get_weather", {"city": "Rome"})


def message(*content: Json, stop: Any = "tool_use") -> Json:
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def thinking(said: str) -> Json:
    return {"type": "thinking", "thinking": said, "signature": "SIG"}


def use(args: Any, call_id: Any = "toolu_1", name: Any = "get_weather", kind: str = "tool_use") -> Json:
    return {"type": kind, "id": call_id, "name": name, "input": args}


def delta(index: int, kind: str, **piece: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **piece}}


def block(index: int, start: Json, *deltas: Json, ended: bool = True) -> list[Json]:
    stop: list[Json] = [{"type": "content_block_stop", "index": index}] if ended else []
    return [{"type": "content_block_start", "index": index, "content_block": start}, *deltas, *stop]


def text_block(index: int, *pieces: str) -> list[Json]:
    return block(index, text(""), *[delta(index, "text_delta", text=piece) for piece in pieces])


def use_block(
    index: int, *pieces: str, call_id: str = "toolu_1", kind: str = "tool_use", ended: bool = True
) -> list[Json]:
    deltas = [delta(index, "input_json_delta", partial_json=piece) for piece in pieces]
    return block(index, use({}, call_id, kind=kind), *deltas, ended=ended)


def stream(*blocks: list[Json], stop: Any = "tool_use") -> list[Json]:
    """The events of a Message; without a stop reason, of one that broke off."""
    events: list[Json] = [{"type": "message_start", "message": message(stop=None)}, {"type": "ping"}]
    events += [event for block_events in blocks for event in block_events]
    if stop is not None:
        ending = {"stop_reason": stop, "stop_sequence": None}
        events += [{"type": "message_delta", "delta": ending, "usage": {}}, {"type": "message_stop"}]
    return events


CASES = [
    Case(
        "text",
        message(text("It is "), text("sunny."), stop="end_turn"),
        stream(text_block(0, "It ", "is "), text_block(1, "sunny."), stop="end_turn"),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "thinking, text and two calls",
        message(
            thinking("Weather is asked."),
            text("Let me look."),
            use({"city": "Paris"}),
            use({"city": "Rome"}, "toolu_2"),
        ),
        stream(
            block(
                0,
                {"type": "thinking", "thinking": "", "signature": ""},
                delta(0, "thinking_delta", thinking="Weather "),
                delta(0, "thinking_delta", thinking="is asked."),
                delta(0, "signature_delta", signature="SIG"),
            ),
            text_block(1, "Let me look."),
            use_block(2, "", '{"city":', '"Paris"}'),
            use_block(3, "", '{"city":"Rome"}', call_id="toolu_2"),
        ),
        text="Let me look.",
        reasoning="Weather is asked.",
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "interleaved blocks",
        None,
        stream(
            [
                *use_block(0, '{"city":', ended=False),
                *use_block(1, '{"city":', call_id="toolu_2", ended=False),
                delta(0, "input_json_delta", partial_json='"Paris"}'),
                delta(1, "input_json_delta", partial_json='"Rome"}'),
            ]
        ),
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "two blocks at one index",
        None,
        stream(use_block(0, '{"city":"Paris"}'), use_block(0, '{"city":"Rome"}', call_id="toolu_2")),
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "no arguments",
        message(use({})),
        stream(use_block(0)),
        calls=(("toolu_1", "get_weather", {}),),
        finish="tool_calls",
    ),
    Case(
        "redacted thinking",
        message({"type": "redacted_thinking", "data": "x"}, text("Hi."), stop="end_turn"),
        stream(
            block(0, {"type": "redacted_thinking", "data": "x"}), text_block(1, "Hi."), stop="stop_sequence"
        ),
        text="Hi.",
        finish="stop",
    ),
    Case(
        "what Anthropic ran itself",
        message(
            use({"query": "weather"}, "srvtoolu_1", "web_search", "server_tool_use"),
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            use({"q": 1}, "mcptoolu_1", "lookup", "mcp_tool_use"),
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": []},
            {"type": "hologram", "input": {}},
            text("Sunny."),
            stop="end_turn",
        ),
        stream(
            use_block(0, '{"query":"weather"}', call_id="srvtoolu_1", kind="server_tool_use"),
            block(1, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
            use_block(2, '{"q":1}', kind="mcp_tool_use"),
            block(3, {"type": "hologram", "input": {}}, delta(3, "hologram_delta", light=1)),
            text_block(4, "Sunny."),
            stop="end_turn",
        ),
        text="Sunny.",
        finish="stop",
    ),
    Case(
        "citations",
        message({**text("It is sunny."), "citations": [{"type": "x"}]}, stop="end_turn"),
        stream(
            block(
                0,
                {**text(""), "citations": []},
                delta(0, "text_delta", text="It is sunny."),
                delta(0, "citations_delta", citation={"type": "x"}),
            ),
            stop="end_turn",
        ),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "a refusal",
        message(text("I"), stop="refusal"),
        stream(text_block(0, "I"), stop="refusal"),
        text="I",
        finish="refusal",
    ),
    Case(
        "a full context", message(text("I"), stop="model_context_window_exceeded"), text="I", finish="length"
    ),
    Case(
        "a paused turn",
        message(text("I"), stop="pause_turn"),
        stream(text_block(0, "I"), stop="pause_turn"),
        text="I",
        finish="pause",
    ),
    Case(
        "cut off after a call, which cannot be known to be whole",
        message(use({"city": "Paris"}), use({"city": "Ro"}, "toolu_2"), stop="max_tokens"),
        calls=(PARIS,),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "cut off inside a call",
        None,
        stream(
            use_block(0, '{"city":"Paris"}'),
            use_block(1, '{"city":"Ro', call_id="toolu_2"),
            stop="max_tokens",
        ),
        calls=(PARIS,),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "cut off after a call streamed whole",
        None,
        stream(use_block(0, '{"city":"Paris"}'), stop="max_tokens"),
        calls=(PARIS,),
        finish="length",
    ),
    Case(
        "cut off before the arguments",
        None,
        stream(use_block(0, ended=False), stop="max_tokens"),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "cut off in the text after a call",
        message(use({"city": "Paris"}), text("And"), stop="max_tokens"),
        stream(use_block(0, '{"city":"Paris"}'), text_block(1, "And"), stop="max_tokens"),
        text="And",
        calls=(PARIS,),
        finish="length",
    ),
    Case(
        "a stream that breaks off inside a call",
        None,
        stream(
            text_block(0, "Let me look."),
            use_block(1, '{"city":"Paris"}'),
            use_block(2, '{"city":', call_id="toolu_2", ended=False),
            stop=None,
        ),
        text="Let me look.",
        calls=(PARIS,),
        bad=("truncated",),
    ),
    Case(
        "a stream that breaks off before a call's arguments",
        None,
        stream(use_block(0, ended=False), stop=None),
        bad=("truncated",),
    ),
    Case(
        "a stream that breaks off after a call without arguments",
        None,
        stream(use_block(0), stop=None),
        calls=(("toolu_1", "get_weather", {}),),
    ),
    Case(
        "a stream an error breaks into",
        None,
        [
            *stream(text_block(0, "Let me"), stop=None),
            {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        ],
        text="Let me",
        finish="error",
    ),
    Case(
        "an input that is no object",
        message(use("{}"), use([1], "toolu_2"), use(None, "toolu_3")),
        bad=("not_an_object", "not_an_object"),
        calls=(("toolu_3", "get_weather", {}),),
        finish="tool_calls",
    ),
    Case(
        "deltas without a start",
        None,
        [
            delta(0, "text_delta", text="Hi."),
            delta(1, "input_json_delta", partial_json="{}"),
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        ],
        text="Hi.",
        bad=("missing_name",),
        finish="tool_calls",
    ),
]


@pytest.mark.parametrize("case", params(CASES))
def test_case(case: Case) -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    check_case(case)


def test_streamed_arguments_are_kept_as_the_text_that_was_sent() -> None:
    """response-choice: Arguments come out as they were sent"""
    choice = choice_from_stream(stream(use_block(0, '{"city": ', ' "Paris" }')))
    assert choice.tool_calls is not None
    assert choice.tool_calls[0].arguments == '{"city":  "Paris" }'
    assert type(choice.tool_calls[0].arguments) is str


def test_provider_executed_blocks_and_unknown_ones_stay_in_raw() -> None:
    """response-choice: Provider-executed blocks are no calls"""
    body = message(use({"query": "x"}, kind="server_tool_use"), {"type": "hologram"}, stop="end_turn")
    choice = choice_from_response(body)
    assert choice.tool_calls is None
    assert choice.raw is body
    assert [item["type"] for item in choice.raw["content"]] == ["server_tool_use", "hologram"]


ODD = [
    Case(
        "content as a text",
        {**message(stop="end_turn"), "content": "It is sunny."},
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "texts among the blocks",
        {**message(), "content": ["Let me look.", use({"city": "Paris"})]},
        text="Let me look.",
        calls=(PARIS,),
        finish="tool_calls",
    ),
    Case("one block", {**message(), "content": use({"city": "Paris"})}, calls=(PARIS,), finish="tool_calls"),
    Case(
        "a stream with the whole message in its start",
        None,
        [{"type": "message_start", "message": {**message(), "content": "Hi."}}, *stream()[1:]],
        text="Hi.",
        bad=("malformed_call",),  # which is announced and does not come
        finish="tool_calls",
    ),
    Case(
        "a stream with the whole input in a block's start",
        None,
        stream(block(0, use({"city": "Paris"}), delta(0, "input_json_delta", partial_json=""))),
        calls=(PARIS,),
        finish="tool_calls",
    ),
    Case(
        "the input in a block's start and in its pieces",
        None,
        stream(
            block(0, use({"city": "Paris"}), delta(0, "input_json_delta", partial_json='{"city": "Paris"}'))
        ),
        calls=(PARIS,),
        finish="tool_calls",
    ),
    Case(
        "another input in a block's start than in its pieces",
        None,
        stream(
            block(0, use({"city": "Paris"}), delta(0, "input_json_delta", partial_json='{"city": "Rome"}'))
        ),
        bad=("invalid_json",),
        finish="tool_calls",
    ),
]


@pytest.mark.parametrize("case", params(ODD))
def test_odd_shape(case: Case) -> None:
    """response-choice: An odd shape keeps its text and calls"""
    check_case(case)
