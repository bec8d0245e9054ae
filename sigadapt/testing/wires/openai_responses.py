"""OpenAI's responses, whole and streamed.

Source: OpenAI's API reference, "The response object" and "Streaming events". An answer is a list of output
items: reasoning, message, function calls. A stream opens each item, sends its text in deltas and closes it
with the whole item. The last event holds the whole response.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from sigadapt.testing.answers import Answer, Received
from sigadapt.testing.wires import openai_chat
from sigadapt.testing.wires.wire import SSE, Event, calls_made, named_sse

PATH = re.compile(r"(/v1)?/responses(\?.*)?")
STREAM_TYPE = SSE

# Why a response is incomplete, by finish reason; with the two of `_COMPLETE` it is complete.
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_COMPLETE = {"stop", "tool_calls"}

streams = openai_chat.streams
failure = openai_chat.failure
encode = named_sse


def render(answer: Answer, request: Received) -> dict[str, Any]:
    complete = answer.reason in _COMPLETE
    input_tokens, output_tokens = answer.usage
    return {
        **_opening(request),
        "status": "completed" if complete else "incomplete",
        "incomplete_details": None if complete else {"reason": _INCOMPLETE.get(answer.reason, answer.reason)},
        "output": list(_items(answer, request)),
        "usage": {
            "input_tokens": input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input_tokens + output_tokens,
        },
    }


def stream(answer: Answer, request: Received) -> Iterable[Event]:
    for number, event in enumerate(_events(answer, request)):
        yield {**event, "sequence_number": number}


def _events(answer: Answer, request: Received) -> Iterator[dict[str, Any]]:
    response = render(answer, request)
    for name in ("created", "in_progress"):
        yield {"type": f"response.{name}", "response": _opening(request)}
    for index, item in enumerate(response["output"]):
        item_ids = {"output_index": index, "item_id": item["id"]}
        empty_item = {**item, "status": "in_progress", **_EMPTY[item["type"]]}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty_item}
        yield from _pieces(answer, item, item_ids)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _pieces(answer: Answer, item: dict[str, Any], item_ids: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events between the opening and the end of an item."""
    if item["type"] == "function_call":
        for piece in answer.pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **item_ids, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **item_ids, "arguments": item["arguments"]}
        return
    key, part_event, text_event, extras = _TEXTS[item["type"]]
    for index, content in enumerate(item[key]):
        ids = {**item_ids, f"{key}_index": index}
        yield {"type": f"response.{part_event}.added", **ids, "part": {**content, "text": ""}}
        for piece in answer.pieces(content["text"]):
            yield {"type": f"response.{text_event}.delta", **ids, "delta": piece, **extras}
        yield {"type": f"response.{text_event}.done", **ids, "text": content["text"], **extras}
        yield {"type": f"response.{part_event}.done", **ids, "part": content}


_TEXTS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "reasoning": ("summary", "reasoning_summary_part", "reasoning_summary_text", {}),
    "message": ("content", "content_part", "output_text", {"logprobs": []}),
}
_EMPTY: dict[str, dict[str, Any]] = {
    "reasoning": {"summary": []},
    "message": {"content": []},
    "function_call": {"arguments": ""},
}


def _items(answer: Answer, request: Received) -> Iterator[dict[str, Any]]:
    number = request.number
    status = "completed" if answer.reason in _COMPLETE else "incomplete"
    if answer.reasoning is not None or answer.signature is not None:
        summary = [] if answer.reasoning is None else [{"type": "summary_text", "text": answer.reasoning}]
        item: dict[str, Any] = {"id": f"rs_{number}", "type": "reasoning", "summary": summary}
        if answer.signature is not None:
            item["encrypted_content"] = answer.signature
        yield item
    if answer.text is not None:
        content: dict[str, Any] = {"type": "output_text", "text": answer.text}
        content |= {"annotations": [], "logprobs": []}
        message_status = "completed" if answer.calls else status
        yield {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "status": message_status,
            "content": [content],
        }
    for index, (call_id, call) in enumerate(answer.calls_with_ids("call_", calls_made(request)), 1):
        is_last = index == len(answer.calls)
        yield {
            "id": f"fc_{number}_{index}",
            "type": "function_call",
            "status": status if is_last else "completed",
            "call_id": call_id,
            "name": call.name,
            "arguments": call.text,
        }


def _opening(request: Received) -> dict[str, Any]:
    # The settings are repeated, because clients require them in a response.
    return {
        "id": f"resp_{request.number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": request.body.get("instructions"),
        "metadata": {},
        "model": request.model,
        "output": [],
        "parallel_tool_calls": request.body.get("parallel_tool_calls") is not False,
        "temperature": request.body.get("temperature", 1.0),
        "tool_choice": request.body.get("tool_choice", "auto"),
        "tools": request.body.get("tools", []),
        "top_p": request.body.get("top_p", 1.0),
        "usage": None,
    }
