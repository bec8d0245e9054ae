"""OpenAI's chat completions, whole and streamed, as OpenAI and compatible servers send them.

Source: OpenAI's API reference, "Chat Completions" and "The chat completion chunk object". `reasoning_content`
comes from DeepSeek and is used by other compatible servers; OpenAI sends no reasoning on this wire.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sigadapt.providers.wire.values import an_object
from sigadapt.testing.answers import Answer, Received
from sigadapt.testing.wires.wire import SSE, Event, calls_made, sse

PATH = re.compile(r"(/v1)?/chat/completions(\?.*)?")
STREAM_TYPE = SSE


def streams(path: str, body: Mapping[str, Any]) -> bool:
    return body.get("stream") is True


def render(answer: Answer, request: Received) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.reasoning is not None:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
            for call_id, call in answer.calls_with_ids("call_", calls_made(request))
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.reason}
    return {**_head(request, "chat.completion"), "choices": [choice], "usage": _usage(answer)}


def stream(answer: Answer, request: Received) -> Iterable[Event]:
    head = _head(request, "chat.completion.chunk")
    options = an_object(request.body.get("stream_options"))
    usage = options.get("include_usage") is True
    blank = {"usage": None} if usage else {}
    deltas = [(delta, None) for delta in _deltas(answer, request)]
    for delta, finish in (*deltas, ({}, answer.reason)):
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        yield {**head, "choices": [choice], **blank}
    if usage:
        yield {**head, "choices": [], "usage": _usage(answer)}


def encode(events: Iterable[Event]) -> Iterator[bytes]:
    yield from sse(events)
    yield b"data: [DONE]\n\n"


def failure(status: int, message: str) -> dict[str, Any]:
    if status >= 500:
        kind = "server_error"
    elif status == 429:
        kind = "rate_limit_error"
    else:
        kind = "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _deltas(answer: Answer, request: Received) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None if answer.text is None else "", "refusal": None}
    for piece in answer.pieces(answer.reasoning):
        yield {"reasoning_content": piece}
    for piece in answer.pieces(answer.text):
        yield {"content": piece}
    for index, (call_id, call) in enumerate(answer.calls_with_ids("call_", calls_made(request))):
        head = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": head}]}
        for piece in answer.pieces(call.text):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _head(request: Received, kind: str) -> dict[str, Any]:
    number = request.number
    model = request.model
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_700_000_000, "model": model}


def _usage(answer: Answer) -> dict[str, int]:
    prompt, completion = answer.usage
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
