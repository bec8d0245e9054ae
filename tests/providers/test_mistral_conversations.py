"""Mistral's Conversations, whole and streamed."""

from typing import Any

import pytest
from wire_cases import ARGUMENTS, HALVES, SAID, THOUGHT, ZURICH, Case, Json, Sample, check_case, params

from sigadapt.errors import UnreadableResponse
from sigadapt.response import choice_from_stream

STARTED: Json = {"type": "conversation.response.started", "conversation_id": "conv_1"}
DONE: Json = {"type": "conversation.response.done", "usage": {"total_tokens": 3}}
THINKS: Json = {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}
SEARCH: Json = {"type": "tool.execution", "id": "tool_1", "name": "web_search", "arguments": '{"query":"x"}'}
REFERENCE: Json = {"type": "tool_reference", "tool": "web_search", "title": "A", "url": "https://a.example"}


def body(*outputs: Json) -> Json:
    usage = {"total_tokens": 3}
    return {"object": "conversation.response", "conversation_id": "c", "usage": usage, "outputs": [*outputs]}


def said(content: Any) -> Json:
    return {
        "type": "message.output",
        "object": "entry",
        "id": "msg_1",
        "role": "assistant",
        "content": content,
    }


def call(arguments: Any, call_id: str = "c1") -> Json:
    entry = {"type": "function.call", "object": "entry", "id": f"fc_{call_id}", "tool_call_id": call_id}
    return {**entry, "name": "get_weather", "arguments": arguments}


def text_delta(content: Any, place: int = 0) -> Json:
    return {"type": "message.output.delta", "output_index": place, "id": "msg_1", "content": content}


def call_delta(text: str, place: int = 1, call_id: str = "c1") -> Json:
    head = {
        "type": "function.call.delta",
        "output_index": place,
        "id": f"fc_{call_id}",
        "tool_call_id": call_id,
    }
    return {**head, "name": "get_weather", "arguments": text}


SAMPLE = Sample(
    "mistral-conversations",
    body(said([THINKS, {"type": "text", "text": SAID}]), call(ARGUMENTS)),
    [STARTED, text_delta(THINKS), text_delta(SAID[:3]), text_delta(SAID[3:]), *map(call_delta, HALVES), DONE],
)
CASES = [
    Case(
        "the sample",
        SAMPLE.body,
        SAMPLE.events,
        text=SAID,
        reasoning=THOUGHT,
        calls=(("c1", "get_weather", ZURICH),),
        finish="tool_calls",
    ),
    Case("a text", body(said("Hello.")), [STARTED, text_delta("Hel"), text_delta("lo."), DONE],
         text="Hello.", finish="stop"),
    Case(
        "two calls, one with decoded arguments",
        body(call({"city": "Paris"}), call('{"city":"Rome"}', "c2")),
        [STARTED, call_delta('{"city":"Paris"}', 0), call_delta('{"city":"Rome"}', 1, "c2"), DONE],
        calls=(("c1", "get_weather", {"city": "Paris"}), ("c2", "get_weather", {"city": "Rome"})),
        finish="tool_calls",
    ),
    Case(
        "a tool that Mistral ran, between two texts",
        body(said("Let me look."), SEARCH, said([{"type": "text", "text": "Sunny."}, REFERENCE])),
        [
            *(STARTED, text_delta("Let me look.")),
            {**SEARCH, "type": "tool.execution.started", "output_index": 1},
            {**SEARCH, "type": "tool.execution.done", "output_index": 1},
            *(text_delta("Sunny.", 2), text_delta(REFERENCE, 2), DONE),
        ],
        text="Let me look.\n\nSunny.",
        finish="stop",
    ),
    Case("broken arguments", body(call('{"city":')), [STARTED, call_delta('{"city":'), DONE],
         bad=("invalid_json",), finish="tool_calls"),
    Case("a stream that breaks off", None, [STARTED, text_delta("Let"), call_delta('{"city":"Paris"')],
         text="Let", bad=("truncated",)),
    Case(
        "a call that was answered already",
        body(call("{}"), {"type": "function.result", "tool_call_id": "c1", "result": "x"}, said("Done.")),
        text="Done.",
        finish="stop",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", params(CASES))
def test_an_answer_is_read(case: Case) -> None:
    """response-choice: The same answer reads the same on every wire"""
    check_case(case)


def test_an_error_ends_the_stream() -> None:
    """response-choice: A stream that breaks off leaves what was said"""
    error = {"type": "conversation.response.error", "code": 3000, "message": "The model is overloaded."}
    with pytest.raises(UnreadableResponse, match="The model is overloaded"):
        choice_from_stream([STARTED, error])
    choice = choice_from_stream([STARTED, text_delta("Half"), error])
    assert (choice.text, choice.finish_reason) == ("Half", "error")
