"""A stream that fails after something came ends as a whole answer does: with what came, told once."""

import json
from typing import Any

import dspy
import pytest
from asking import ask

from sigadapt.errors import UnusableAnswer

Json = dict[str, Any]


def sse(*events: Json) -> bytes:
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)


def gemini(*parts: Json, finish: str | None = None, **more: Any) -> Json:
    end = {"finishReason": finish, **more} if finish else {}
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **end}]}


def chunk(delta: Json) -> Json:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


MESSAGE: Json = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
HALF: Json = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half"}}
BEGUN: tuple[Json, ...] = (
    {"type": "message_start", "message": {**MESSAGE, "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
)

BEGIN = sse(chunk({"content": "Half"}))
CROWDED = sse(*BEGUN, HALF, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
BUSY = b'event: error\ndata: {"message": "busy"}\n\ndata: [DONE]\n\n'
UNSAFE = sse(gemini({"text": "Half"}), gemini(finish="SAFETY"))
FAILURES: dict[str, tuple[str, bytes, str, str]] = {
    "a chunk": ("openai", BEGIN + sse({"error": {"code": 502, "message": "it died"}}), "failed", "it died"),
    "overloaded": ("anthropic", CROWDED, "failed", "Overloaded"),
    "no finish reason": ("openai", BEGIN + b"data: [DONE]\n\n", "failed", "without a finish reason"),
    "vLLM": ("openai", BEGIN + sse({"object": "error", "message": "busy", "code": 500}), "failed", "busy"),
    "a detail of FastAPI": ("openai", BEGIN + sse({"detail": "busy"}), "failed", "busy"),
    "an error event": ("openai", BEGIN + BUSY, "failed", "busy"),
    "filtered": ("gemini", UNSAFE, "filtered", "SAFETY"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_stream_that_fails_tells_what_came(name: str) -> None:
    """streaming: A stream without a reason to end is no answer"""
    wire, body, code, told = FAILURES[name]
    error = ask(wire, body, is_streamed=True)
    assert isinstance(error, UnusableAnswer)
    assert (error.code, error.choice.text, told in str(error)) == (code, "Half", True)


def test_a_failure_before_anything_came_is_dspys() -> None:
    """tool-call-outputs: A stream that fails after text tells both."""
    limited: Json = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
    error = ask("anthropic", sse(BEGUN[0], limited), is_streamed=True)
    assert (isinstance(error, dspy.LMError), "slow" in str(error)) == (True, True)
