"""Every answer of tests/wires, read whole, and as its stream in each framing."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_cases import WIRES, Json, check, check_case, json_array, ndjson, server_sent

from sigadapt.errors import UnreadableResponse
from sigadapt.response import choice_from_stream

ANSWERS = sorted(WIRES.glob("*/*.json"))


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_answer_reads_as_expected(path: Path) -> None:
    """What a provider sends is what the Choice says, and nothing that it sent is left out of `raw`.

    response-choice: A stream gives the Choice of the whole answer
    response-choice: An odd shape keeps its text and calls
    response-choice: Interleaved fragments of two calls are kept apart
    response-choice: A missing id is synthesised
    response-choice: A status without details cuts the last call off
    response-choice: A stream that breaks off leaves what was said
    response-choice: Provider-executed blocks are no calls
    response-choice: An unknown block stays in raw
    response-choice: Arguments that are no object become a tagged bad call
    response-choice: A call without arguments has none
    """
    case = json.loads(path.read_text(encoding="utf-8"))
    check_case(case["expect"], case.get("body"), case.get("events"))


def test_bytes_of_an_sdk_are_read_as_the_text_of_the_wire() -> None:
    """response-choice: An SDK's object reads as its body"""
    content = [{"reasoningContent": {"redactedContent": b"x"}}, {"text": "Hi."}]
    body = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}
    check_case({"text": "Hi.", "finish": "stop"}, body)


def test_an_error_ends_a_stream_of_mistrals_conversations() -> None:
    """response-choice: A stream that breaks off leaves what was said"""
    started = {"type": "conversation.response.started", "conversation_id": "conv_1"}
    error = {"type": "conversation.response.error", "code": 3000, "message": "The model is overloaded."}
    with pytest.raises(UnreadableResponse, match="The model is overloaded"):
        choice_from_stream([started, error])
    half = {"type": "message.output.delta", "output_index": 0, "id": "msg_1", "content": "Half"}
    check_case({"text": "Half", "finish": "error"}, None, [started, half, error])


STREAMS = [case for path in ANSWERS if (case := json.loads(path.read_text(encoding="utf-8"))).get("events")]


@given(
    st.sampled_from(STREAMS),
    st.sampled_from([server_sent, ndjson, json_array]),
    st.lists(st.integers(0, 400)),
)
def test_a_stream_may_be_cut_anywhere(case: Json, framing: Callable[[Any], str], cuts: list[int]) -> None:
    """response-choice: A stream may come as events, SDK objects or SSE text"""
    data = framing(case["events"]).encode()
    ends = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    check(case["expect"], choice_from_stream(data[a:b] for a, b in pairwise(ends)))


@pytest.mark.parametrize("stream", ["", b"", [], ["<html>", "502"], "data: [DONE]\n\n", b"<html>502"])
def test_a_text_without_an_event_is_quoted(stream: Any) -> None:
    """response-choice: Something that is no response is unreadable"""
    with pytest.raises(UnreadableResponse, match="without an event") as caught:
        choice_from_stream(stream)
    assert ("502" in str(caught.value)) == ("502" in repr(stream))


@pytest.mark.parametrize(
    "text",
    [
        'data: {"a": 1}\n\ndata: {broken}\n\n',
        'data: {"a": 1}\n\ndata: {broken}',
        'data: {"a":\n\n',
        '{"a": 1}\n{broken}\n{"a": 2}\n',
        '{"a": 1}\nOops',
        'data: {"a": 1}data: {"a": 2}',
    ],
)
def test_what_is_no_json_is_not_passed_over(text: str) -> None:
    """response-choice: Something that is no response is unreadable"""
    with pytest.raises(UnreadableResponse, match="invalid JSON"):
        choice_from_stream(text)
