"""Blocks that providers send beside text and calls, one table for each wire form, and turns made of them."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from tables import table

Json = dict[str, Any]

ANTHROPIC: dict[str, Json] = table(__file__, "ANTHROPIC")


RESPONSES: dict[str, Json] = table(__file__, "RESPONSES")

GEMINI: dict[str, Json] = table(__file__, "GEMINI")

CHAT: dict[str, Json] = table(__file__, "CHAT")
"""Whole messages: a chat message has one place for each thing."""

BLOCKS: dict[str, dict[str, Json]] = {"anthropic": ANTHROPIC, "responses": RESPONSES, "gemini": GEMINI}
IS_CALL: dict[str, Callable[[Json], bool]] = {
    "anthropic": lambda block: block["type"] == "tool_use",
    "responses": lambda block: block["type"] in ("function_call", "custom_tool_call"),
    "gemini": lambda block: "functionCall" in block,
}


def events(wire: str, blocks: Iterable[Json]) -> list[Json]:
    """The stream of an answer made of these blocks."""
    return [event for number, block in enumerate(blocks) for event in _EVENTS[wire](number, block)] + [
        *_ENDS[wire]
    ]


def _anthropic(number: int, block: Json) -> Iterable[Json]:
    deltas: list[Json] = []
    start = dict(block)
    if block["type"] == "text":
        start = {"type": "text", "text": ""}
        deltas = [{"type": "citations_delta", "citation": each} for each in block.get("citations", ())]
        deltas += [{"type": "text_delta", "text": piece} for piece in block["text"]]
    elif block["type"] == "thinking":
        start = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        deltas += [{"type": "signature_delta", "signature": block["signature"]}]
    elif block["type"] == "compaction":
        start = {"type": "compaction", "content": None}
        deltas = [{**block, "type": "compaction_delta"}]
    elif "input" in block:
        start["input"] = {}
        text = json.dumps(block["input"])
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", text[:5], text[5:])]
    yield {"type": "content_block_start", "index": number, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": number, "delta": delta}
    yield {"type": "content_block_stop", "index": number}


def _responses(number: int, item: Json) -> Iterable[Json]:
    opened = {**item, "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": number, "item": opened}
    yield {"type": "response.output_item.done", "output_index": number, "item": item}


def _gemini(number: int, part: Json) -> Iterable[Json]:
    yield {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]}


_EVENTS: dict[str, Callable[[int, Json], Iterable[Json]]] = {
    "anthropic": _anthropic,
    "responses": _responses,
    "gemini": _gemini,
}
_ENDS: dict[str, list[Json]] = {
    "anthropic": [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}],
    "responses": [
        {
            "type": "response.completed",
            "response": {"object": "response", "status": "completed", "output": []},
        }
    ],
    "gemini": [{"candidates": [{"index": 0, "content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]}],
}
