"""Anthropic Messages, on Anthropic's own API and on the clouds and servers that speak it.

Sources: Anthropic's API reference (Message, its content blocks, the streaming events) and recorded answers.

Only `tool_use` blocks are calls; the provider ran `server_tool_use` and `mcp_tool_use` blocks itself.
Reasoning is the text of the `thinking` blocks; redacted ones have no text. A refusal is read as the finish
reason `content_filter`. In a stream, a block ends with its `content_block_stop` or the message's stop reason.
Compatible servers may send the content as a text, and the whole input in a block's start event.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sigadapt.providers.provider import (
    NO_SUBSET,
    PLAIN,
    ChatFields,
    CutOff,
    JsonText,
    Provider,
    Reading,
    Route,
)
from sigadapt.providers.reading import (
    an_object,
    called,
    cut_last,
    ends_in,
    is_text,
    joined,
    json_text,
    kind_of,
    member,
    objects,
    parts_of,
    said,
    state,
    word,
)
from sigadapt.providers.stream_parts import Blocks
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, RepeatedKeys, spelled
from sigadapt.schemas.strict import StrictRules

NAME = "anthropic"

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


def is_body(body: Json) -> bool:
    """Return whether a body is a Message."""
    return body.get("type") == "message" or ("stop_reason" in body and "content" in body)


def read(body: Json) -> list[Reading]:
    """Return the one Reading of a Message."""
    blocks = parts_of(body.get("content"))
    finish = word(body.get("stop_reason"), _FINISH)
    uses = filter(_is_call, blocks)
    calls = [(use.get("id"), use.get("name"), member(use, "input")) for use in uses]
    if ends_in(blocks, _is_call):
        calls = cut_last(calls, finish)
    text = joined(block.get("text") for block in blocks if block.get("type") == "text")
    thinking = joined(block.get("thinking") for block in blocks if block.get("type") == "thinking")
    return [Reading(text, thinking, calls, finish, state(NAME, _items(blocks)))]


def _items(blocks: list[Json]) -> Iterator[Json]:
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            yield said("text", block.get("text"))
        elif kind == "tool_use":
            yield called()
        elif (thinking := _thinking(block)) is not None:
            yield thinking


def _is_call(block: Json) -> bool:
    return block.get("type") == "tool_use"


def without_calls(body: Json) -> Json:
    """Return a Message without its calls."""
    return {**body, "content": [block for block in parts_of(body.get("content")) if not _is_call(block)]}


def is_event(event: Json) -> bool:
    """Return whether an event belongs to a Messages stream."""
    return kind_of(event) in _EVENTS


class _Block:
    """A streamed content block, as far as it has arrived."""

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
        if "partial_json" in self.pieces or (type(self.start) is RepeatedKeys and "input" in self.start):
            block["input"] = self._input()
        if block.get("type") == "tool_use" and not (ended or self.ended):
            block["input"] = CutOff(block.get("input") or JsonText())
        return block

    def _input(self) -> Any:
        """Return the input in the start event or in the pieces; text of both if they differ."""
        given: Any = member(self.start, "input")
        pieces = JsonText(json_text(self.pieces["partial_json"]))
        if not given or (type(given) is not RepeatedKeys and parse_arguments(pieces) == given):
            return pieces
        return JsonText(spelled(given) + pieces) if pieces.strip() else given


def assemble(events: Iterable[Json]) -> Json:
    """Return the Message that a stream's events make."""
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
    content = [block.whole(ended=ended) for block in blocks.all]
    # Without blocks, the content of the start event: some servers send a whole message there.
    return {**message, "content": content or message.get("content")}


def _thinking(block: Json) -> Json | None:
    """Return the state item of a thinking block; None for a block that is neither signed nor redacted."""
    if is_text(block.get("signature")):
        signature = {"signature": block["signature"]}
        return said("thinking", block.get("thinking"), [NAME, "thinking_signature", signature])
    if is_text(block.get("data")):
        return said("thinking", "", [NAME, "redacted_thinking", {"data": block["data"]}])
    return None


def state_from_chat(message: Json, text: str | None) -> Json | None:
    """Return a turn's state from a chat message, where LiteLLM puts signed thinking in `thinking_blocks`."""
    blocks = objects(message.get("thinking_blocks"))
    if not any(is_text(block.get("signature")) or is_text(block.get("data")) for block in blocks):
        return None
    calls = (called() for _ in objects(message.get("tool_calls")))
    return state(NAME, [*filter(None, map(_thinking, blocks)), said("text", text), *calls])


def state_to_chat(state: Json, route: Route) -> ChatFields:  # noqa: ARG001
    """Return a turn's state as `thinking_blocks` of a chat message, which LiteLLM sends to Anthropic.

    Example:
        >>> signed = ["anthropic", "thinking_signature", {"signature": "c2ln"}]
        >>> item = {"type": "thinking", "text": "Hm.", "continuation": signed}
        >>> state_to_chat({"dialect": "anthropic", "items": [item]}, PROVIDER.routes[1]).message
        {'thinking_blocks': [{'type': 'thinking', 'thinking': 'Hm.', 'signature': 'c2ln'}]}
    """
    blocks: list[Json] = []
    for item in state["items"]:
        if "continuation" in item:
            _, kind, data = item["continuation"]
            text = {"thinking": item["text"]} if kind == "thinking_signature" else {}
            blocks.append({"type": "thinking" if text else kind, **text, **data})
    return ChatFields({"thinking_blocks": blocks} if blocks else {}, {})


def tools(given: list[Json]) -> list[Json]:
    """Return canonical tools in the form of the Messages API; Anthropic's own tools stay unchanged.

    Example:
        >>> function = {"name": "now", "description": "The time.", "parameters": {"type": "object"}}
        >>> tools([{"type": "function", "function": function}])
        [{'name': 'now', 'description': 'The time.', 'input_schema': {'type': 'object'}}]
    """
    return [_tool(**tool) if "function" in tool else tool for tool in given]


def _tool(function: Json, type: str, **fields: Any) -> Json:  # noqa: A002, ARG001
    tool = {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }
    if "strict" in function:
        tool["strict"] = function["strict"]
    return {**tool, **fields}


def choice(chosen: Json, parallel: bool | None = None) -> Json | None:  # noqa: FBT001
    """Return the choice of a tool that Anthropic runs, as fields of the body.

    Example:
        >>> choice({"type": "web_search_20250305", "name": "web_search"})
        {'tool_choice': {'type': 'tool', 'name': 'web_search'}}
    """
    if not is_text(chosen.get("name")):
        return None
    beside = {} if parallel is None else {"disable_parallel_tool_use": not parallel}
    return {"tool_choice": {"type": "tool", "name": chosen["name"], **beside}}


# Sources: the tool reference, "Strict tool use" and "Tool search" on platform.claude.com, and `ToolParam` of
# Anthropic's SDK 2.11; read on 2026-11-21.
_FIELDS = frozenset(
    {"cache_control", "defer_loading", "allowed_callers", "input_examples", "eager_input_streaming"}
)

# Source: "JSON Schema limitations" of "Structured outputs" on platform.claude.com; read on 2026-11-21.
_STRICT = StrictRules(
    requires_all=False,
    refused=frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
    | {"minLength", "maxLength", "maxItems", "uniqueItems"},
    most=(("minItems", 1),),
    recursion=False,
)

_ROUTE = Route(
    NAME,
    "lm15",
    adapter="AnthropicLM",
    strict=True,
    strict_rules=_STRICT,
    fields=_FIELDS,
    search="tool_search_tool_.*",
    search_tool=(("type", "tool_search_tool_bm25_20251119"), ("name", "tool_search_tool_bm25")),
    takes=frozenset({NAME}),
    choices=NO_SUBSET | {"own"},
    forces_with_thinking=False,
    marks_failed_results=True,
    ids=PLAIN,
    longest_id=64,
)

PROVIDER = Provider(
    name=NAME,
    is_body=is_body,
    read=read,
    is_event=is_event,
    assemble=assemble,
    tools=tools,
    choice=choice,
    state_from_chat=state_from_chat,
    state_to_chat=state_to_chat,
    without_calls=without_calls,
    arguments_as_objects=True,
    routes=(
        _ROUTE,
        replace(
            _ROUTE,
            door="litellm",
            prefixes=frozenset({NAME}),
            as_chat=True,
            marks_failed_results=False,
            choices=NO_SUBSET,
            strict=False,  # LiteLLM leaves the flag out (measured on litellm 1.106)
        ),
    ),
)
