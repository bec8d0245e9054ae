"""Anthropic's messages, whole and streamed.

Source: Anthropic's API reference, "Messages", "Streaming messages" and "Errors". A whole body has a
call's input as an object, a stream has it as JSON text. So only in a stream can a script send invalid JSON.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from sigadapt.testing.answers import Answer, Received
from sigadapt.testing.wires import openai_chat
from sigadapt.testing.wires.wire import SSE, Event, calls_made, named_sse

PATH = re.compile(r"(/v1)?/messages(\?.*)?")
STREAM_TYPE = SSE

_STOP_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
}
_ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
# Sent if the script gives no signature, because Anthropic signs every thinking block.
_SIGNATURE = "bG9vcGJhY2s="

streams = openai_chat.streams
encode = named_sse


def render(answer: Answer, request: Received) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if _thinks(answer):
        signature = answer.signature or _SIGNATURE
        content.append({"type": "thinking", "thinking": answer.reasoning or "", "signature": signature})
    if answer.text is not None:
        content.append({"type": "text", "text": answer.text})
    for call_id, call in answer.calls_with_ids("toolu_", calls_made(request)):
        content.append({"type": "tool_use", "id": call_id, "name": call.name, "input": call.object})
    end = {"stop_reason": _stop(answer), "usage": _usage(answer)}
    return {**_opening(answer, request), "content": content, **end}


def stream(answer: Answer, request: Received) -> Iterable[Event]:
    yield {"type": "message_start", "message": _opening(answer, request)}
    yield {"type": "ping"}
    for index, (block, deltas) in enumerate(_blocks(answer, request)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": _stop(answer), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": _usage(answer)}
    yield {"type": "message_stop"}


def failure(status: int, message: str) -> dict[str, Any]:
    default = "api_error" if status >= 500 else "invalid_request_error"
    return {"type": "error", "error": {"type": _ERRORS.get(status, default), "message": message}}


def _blocks(answer: Answer, request: Received) -> Iterator[tuple[dict[str, Any], Iterable[dict[str, str]]]]:
    if _thinks(answer):
        thoughts = [
            {"type": "thinking_delta", "thinking": piece} for piece in answer.pieces(answer.reasoning)
        ]
        thoughts.append({"type": "signature_delta", "signature": answer.signature or _SIGNATURE})
        yield {"type": "thinking", "thinking": "", "signature": ""}, thoughts
    if answer.text is not None:
        deltas_of_text = ({"type": "text_delta", "text": piece} for piece in answer.pieces(answer.text))
        yield {"type": "text", "text": ""}, deltas_of_text
    for call_id, call in answer.calls_with_ids("toolu_", calls_made(request)):
        # The first delta is empty, as it is in Anthropic's streams.
        pieces = ["", *answer.pieces(call.text)]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        yield {"type": "tool_use", "id": call_id, "name": call.name, "input": {}}, deltas


def _thinks(answer: Answer) -> bool:
    return answer.reasoning is not None or answer.signature is not None


def _stop(answer: Answer) -> str:
    return _STOP_REASONS.get(answer.reason, answer.reason)


def _opening(answer: Answer, request: Received) -> dict[str, Any]:
    return {
        "id": f"msg_{request.number}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**_usage(answer), "output_tokens": 1},
    }


def _usage(answer: Answer) -> dict[str, int]:
    input_tokens, output_tokens = answer.usage
    cache = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"input_tokens": input_tokens, **cache, "output_tokens": output_tokens}
