"""Every answer of tests/wires, read whole, and as its stream in each framing."""

import json
from pathlib import Path

import pytest
from wire_cases import WIRES, check_case

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
