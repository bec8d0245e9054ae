"""Ollama's own chat endpoint, whole and as JSON lines.

Source: Ollama's API documentation, "Generate a chat completion". A call is one object, in a stream too. With
calls `done_reason` is `stop`. Ollama streams unless the request has `"stream": false`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sigadapt.testing.answers import Answer, Call, Received, dumps
from sigadapt.testing.wires.wire import Event

PATH = re.compile(r"/api/chat")
STREAM_TYPE: str = "application/x-ndjson"


def streams(path: str, body: Mapping[str, Any]) -> bool:
    return body.get("stream") is not False


def render(answer: Answer, request: Received) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or ""}
    if answer.reasoning is not None:
        message["thinking"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [_call(call) for call in answer.calls]
    return {**_head(message, request), **_end(answer)}


def stream(answer: Answer, request: Received) -> Iterable[Event]:
    messages: list[dict[str, Any]] = [{"thinking": piece} for piece in answer.pieces(answer.reasoning)]
    messages += [{"content": piece} for piece in answer.pieces(answer.text)]
    messages += [{"tool_calls": [_call(call)]} for call in answer.calls]
    for message in messages:
        yield {**_head({"role": "assistant", "content": "", **message}, request), "done": False}
    yield {**_head({"role": "assistant", "content": ""}, request), **_end(answer)}


def encode(events: Iterable[Event]) -> Iterator[bytes]:
    for event in events:
        yield f"{dumps(event)}\n".encode()


def failure(status: int, message: str) -> dict[str, Any]:
    return {"error": message}


def _call(call: Call) -> dict[str, Any]:
    ids: dict[str, str] = {} if call.id is None else {"id": call.id}
    return {**ids, "function": {"name": call.name, "arguments": call.object}}


def _head(message: dict[str, Any], request: Received) -> dict[str, Any]:
    return {"model": request.model, "created_at": "2023-11-14T22:13:20Z", "message": message}


def _end(answer: Answer) -> dict[str, Any]:
    input_tokens, output_tokens = answer.usage
    return {
        "done": True,
        "done_reason": "stop" if answer.reason == "tool_calls" else answer.reason,
        "total_duration": 1_000_000,
        "load_duration": 0,
        "prompt_eval_count": input_tokens,
        "prompt_eval_duration": 500_000,
        "eval_count": output_tokens,
        "eval_duration": 500_000,
    }
