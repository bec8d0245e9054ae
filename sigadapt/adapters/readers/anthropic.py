"""Anthropic Messages, on Anthropic's own API and on the clouds and servers that speak it.

Sources: Anthropic's API reference (Message, its content blocks, the streaming events) and recorded answers.

Only `tool_use` blocks are calls; `server_tool_use` and `mcp_tool_use` were run by the provider. Reasoning
is the `thinking` blocks' text; a redacted one shows none. A refusal is the finish `content_filter`. A
stream's block is finished by its `content_block_stop`, or by the stop reason that closes the message.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from sigadapt.adapters.readers.blocks import Blocks
from sigadapt.adapters.readers.reading import (
    CutOff,
    Json,
    JsonText,
    Reading,
    an_object,
    cut_last,
    decoded,
    ends_in,
    is_text,
    joined,
    json_text,
    kind_of,
    objects,
    word,
)
from sigadapt.adapters.readers.replay import Item, called, claude_thinking, said, state

DIALECT = "anthropic"

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_EVENTS = {
    "message_start", "message_delta", "message_stop",
    "content_block_start", "content_block_delta", "content_block_stop",
}  # fmt: skip
_PIECES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
    "citations_delta": "citation",
}

_BLOCKS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}


def reads(body: Json) -> bool:
    """Whether a body is a Message."""
    return body.get("type") == "message" or ("stop_reason" in body and "content" in body)


def read(body: Json) -> list[Reading]:
    """The one reading of a Message."""
    blocks = objects(body.get("content"))
    finish = word(body.get("stop_reason"), _FINISH)
    uses = filter(_is_call, blocks)
    calls = [(use.get("id"), use.get("name"), decoded(use.get("input"))) for use in uses]
    if ends_in(blocks, _is_call):
        calls = cut_last(calls, finish)
    text = joined(block.get("text") for block in blocks if block.get("type") == "text")
    thinking = joined(block.get("thinking") for block in blocks if block.get("type") == "thinking")
    return [Reading(text, thinking, calls, finish, state(DIALECT, _items(blocks)))]


def _items(blocks: list[Json]) -> Iterator[Item]:
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            yield said("text", block.get("text"))
        elif kind == "tool_use":
            yield called()
        elif (thinking := claude_thinking(block)) is not None:
            yield thinking


def _is_call(block: Json) -> bool:
    return block.get("type") == "tool_use"


def opens(event: Json) -> bool:
    """Whether an event is one of the Messages stream."""
    return kind_of(event) in _EVENTS


class _Block:
    """A content block as far as it has arrived."""

    def __init__(self) -> None:
        self.start: Json = {}
        self.pieces: dict[str, list[Any]] = defaultdict(list)
        self.ended = False

    def add(self, delta: Json) -> None:
        kind = kind_of(delta)
        if not self.start:
            self.start = {"type": _BLOCKS.get(kind, "unknown")}
        key = _PIECES.get(kind)
        if key is not None and delta.get(key) is not None:
            self.pieces[key].append(delta[key])

    def whole(self, *, ended: bool) -> Json:
        block = dict(self.start)
        for key in ("text", "thinking", "signature"):
            if key in self.pieces:
                block[key] = joined([block.get(key), *self.pieces[key]]) or ""
        if "citation" in self.pieces:
            block["citations"] = self.pieces["citation"]
        if "partial_json" in self.pieces:
            block["input"] = JsonText(json_text(self.pieces["partial_json"]))
        if block.get("type") == "tool_use" and not (ended or self.ended):
            block["input"] = CutOff(block.get("input") or JsonText())
        return block


def join(events: Iterable[Json]) -> Json:
    """The Message that the stream's events amount to."""
    message: Json = {"type": "message", "stop_reason": None}
    blocks = Blocks(_Block)
    for event in events:
        kind, index = kind_of(event), event.get("index")
        if kind == "message_start":
            message.update(an_object(event.get("message")))
        elif kind == "content_block_start":
            blocks.open(index).start = an_object(event.get("content_block"))
        elif kind == "content_block_delta":
            blocks.at(index).add(an_object(event.get("delta")))
        elif kind == "content_block_stop":
            blocks.at(index).ended = True
        elif kind == "message_delta":
            message.update(an_object(event.get("delta")))
        elif kind == "message_stop":
            break
    ended = is_text(message.get("stop_reason"))
    return {**message, "content": [block.whole(ended=ended) for block in blocks.all]}
