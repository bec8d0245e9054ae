"""Anthropic Messages, on Anthropic's own API and on the clouds and servers that speak it.

Sources: Anthropic's API reference (Message, its content blocks, the streaming events) and recorded answers.

Only `tool_use` blocks are calls; the provider ran `server_tool_use` and `mcp_tool_use` blocks itself.
Reasoning is the text of the `thinking` blocks; redacted ones have no text. A refusal is read as the finish
reason `content_filter`. In a stream, a block ends with its `content_block_stop` or the message's stop reason.
Compatible servers may send the content as a text, and the whole input in a block's start event.

A turn goes back with all of its blocks: those of tools that Anthropic ran, `container_upload`, `compaction`,
and the fields beyond text and call (`citations`, `caller`, `toolset_name`). A result repeats the
`toolset_name` of its call (source: the types of Anthropic's SDK, version 2.11). If code in a container made
calls, the request with their results names that `container` (source: "Programmatic tool calling").
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sigadapt.providers.provider import (
    NO_SUBSET,
    PLAIN,
    SIGNED_ID,
    ChatFields,
    CutOff,
    JsonText,
    OwnResult,
    OwnTurn,
    Provider,
    Reading,
    Route,
)
from sigadapt.providers.reading import (
    an_object,
    called,
    cut_last,
    details_in,
    ends_in,
    in_paragraphs,
    is_text,
    joined,
    json_text,
    kept,
    kind_of,
    member,
    more_than,
    objects,
    other,
    parts_of,
    ran_itself,
    said,
    state,
    word,
)
from sigadapt.providers.result_blocks import IMAGES, PDF, chat_block, decoded_text, text_in
from sigadapt.providers.stream_parts import Blocks
from sigadapt.providers.writing import arguments_of, in_order, name_of, with_turns
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, RepeatedKeys, as_unicode, spelled
from sigadapt.schemas.strict import StrictRules

NAME = "anthropic"

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
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
_UNKNOWN = "unknown"  # the type of a streamed block that has no start event

_THINKING = ("thinking", "redacted_thinking")
_TEXT_FIELDS = frozenset(("type", "text"))
_CALL_FIELDS = frozenset(("type", "id", "name", "input"))


def is_body(body: Json) -> bool:
    """Return whether a body is a Message."""
    return body.get("type") == "message" or ("stop_reason" in body and "content" in body)


def read(body: Json) -> list[Reading]:
    """Return the one Reading of a Message."""
    blocks = parts_of(body.get("content"))
    finish = word(body.get("stop_reason"), _FINISH)
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    calls = [(use.get("id"), use.get("name"), member(use, "input")) for use in uses]
    if ends_in(blocks, _is_call):
        calls = cut_last(calls, finish)
    text = in_paragraphs(block.get("text") if block.get("type") == "text" else None for block in blocks)
    thinking = joined(block.get("thinking") for block in blocks if block.get("type") == "thinking")
    fields = _container(body["container"], uses) if body.get("container") else None
    # {"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "cyber", ...}}
    # https://platform.claude.com/docs/en/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals
    why = details_in(body.get("stop_details"))
    return [Reading(text, thinking, calls, finish, state(NAME, _items(blocks), fields), why)]


def _container(container: Any, uses: list[Json]) -> Json | None:
    """Return the container that a request with results needs, if code in it made any of the calls."""
    made_by_code = any(an_object(use.get("caller")).get("tool_id") for use in uses)
    name = an_object(container).get("id")
    return {"container": name} if made_by_code and is_text(name) else None


def _items(blocks: list[Json]) -> Iterator[Json]:
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            yield said("text", block.get("text")) if block.keys() <= _TEXT_FIELDS else _text(block)
        elif kind == "tool_use":
            yield called() if block.keys() <= _CALL_FIELDS else _call(block)
        elif kind in _THINKING:
            if (thinking := _thinking(block)) is not None:
                yield thinking
        elif kind != _UNKNOWN:
            yield other(str(kind), _with_input(block))


def _text(block: Json) -> Json:
    item, more = said("text", block.get("text")), more_than(block, _TEXT_FIELDS)
    return kept(item, more, block) if more else item


def _call(block: Json) -> Json:
    more = more_than(block, _CALL_FIELDS)
    return kept(called(), more, {key: block[key] for key in block if key != "input"}) if more else called()


def _with_input(block: Json) -> Json:
    """Return a block of a tool that Anthropic ran; its streamed input, which is JSON text, as an object."""
    sent = block.get("input")
    return {**block, "input": parse_arguments(sent)} if type(sent) is JsonText else block


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
            self.start = {"type": _BLOCKS.get(kind, _UNKNOWN)}
        key = _PIECES.get(kind)
        if key is not None and delta.get(key) is not None:
            self.pieces[key].append(delta[key])
        elif kind == "compaction_delta":
            self.start = {**self.start, **delta, "type": self.start["type"]}

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
    """Return a turn's state from a chat message of LiteLLM.

    Example:
        >>> message = {"tool_calls": [{"id": "srvtoolu_1", "function": {"name": "web_search"}}]}
        >>> state_from_chat(message, "Hi.")["items"]
        [{'type': 'other', 'name': 'server_tool_use'}, {'type': 'text', 'text': 'Hi.'}]
    """
    # Signed thinking stands in `thinking_blocks`. Blocks of tools that Claude ran itself have lost their
    # places and parts of their content, so that only their names are kept: the next request records what
    # stays behind.
    blocks = objects(message.get("thinking_blocks"))
    signed = any(is_text(block.get("signature")) or is_text(block.get("data")) for block in blocks)
    names = dict.fromkeys(_names_of_own(message))
    if not signed and not names:
        return None
    thoughts = filter(None, map(_thinking, blocks)) if signed else ()
    calls = (called() for call in objects(message.get("tool_calls")) if not ran_itself(call.get("id")))
    own: list[Json] = [{"type": "other", "name": name} for name in names]
    return state(NAME, [*thoughts, *own, said("text", text), *calls])


def _names_of_own(message: Json) -> Iterator[str]:
    for call in objects(message.get("tool_calls")):
        if ran_itself(call.get("id")):
            yield "mcp_tool_use" if call["id"].startswith("mcp") else "server_tool_use"
    beside = an_object(message.get("provider_specific_fields"))
    for key in ("web_search_results", "tool_results", "compaction_blocks"):
        yield from (block["type"] for block in objects(beside.get(key)) if is_text(block.get("type")))
    if beside.get("citations"):
        yield "citations"


def state_to_chat(state: Json, route: Route) -> ChatFields:  # noqa: ARG001
    """Return a turn's state as `thinking_blocks` of a chat message, which LiteLLM sends to Anthropic.

    Example:
        >>> signed = ["anthropic", "thinking_signature", {"signature": "c2ln"}]
        >>> item = {"type": "thinking", "text": "Hm.", "continuation": signed}
        >>> state_to_chat({"dialect": "anthropic", "items": [item]}, PROVIDER.routes[1]).message
        {'thinking_blocks': [{'type': 'thinking', 'thinking': 'Hm.', 'signature': 'c2ln'}]}
    """
    blocks = [_thought(item) for item in state["items"] if "continuation" in item]
    return ChatFields({"thinking_blocks": blocks} if blocks else {}, {})


def _thought(item: Json) -> Json:
    """Return the thinking block of a state item."""
    _, kind, data = item["continuation"]
    text = {"thinking": item["text"]} if kind == "thinking_signature" else {}
    return {"type": "thinking" if text else kind, **text, **data}


def own_turn(state: Json, calls: Sequence[Json]) -> list[Json]:
    """Return a turn as content blocks, in the order in which Anthropic sent them.

    Example:
        >>> search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}}
        >>> call = {"id": "t1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
        >>> items = [{"type": "other", "wire": search}, {"type": "call", "id": "t1"}]
        >>> [block["type"] for block in own_turn({"dialect": "anthropic", "items": items}, [call])]
        ['server_tool_use', 'tool_use']
    """
    # Empty texts are left out, because Anthropic refuses them.
    blocks = (_own_block(item, call) for item, call in in_order(state["items"], calls))
    return [block for block in blocks if block]


def _own_block(item: Json, call: Json | None) -> Json:
    block = an_object(item.get("wire"))
    if call is not None:
        named = {"id": call["id"], "name": name_of(call), "input": arguments_of(call)}
        return {"type": "tool_use", **block, **named}
    if item["type"] == "text":
        return {"type": "text", **block, "text": as_unicode(item["text"])} if item["text"] else {}
    return _thought(item) if "continuation" in item else block


def put_turns(body: Mapping[str, Any], turns: Sequence[OwnTurn]) -> Json:
    """Return the `messages` of a request with turns of the model in Anthropic's own blocks.

    Example:
        >>> use = {"type": "tool_use", "id": "t1", "name": "now", "input": {}}
        >>> body = {"messages": [{"role": "assistant", "content": [use]}]}
        >>> blocks = [{"type": "container_upload", "file_id": "f"}, use]
        >>> put_turns(body, [OwnTurn(0, 1, blocks)])["messages"][0]["content"] == blocks
        True
    """
    toolsets = {
        block["id"]: block["toolset_name"]
        for turn in turns
        for block in turn.blocks
        if _is_call(block) and is_text(block.get("toolset_name"))
    }
    messages = with_turns(body["messages"], turns, _calls_in, _with_blocks)
    rows = [_of_toolsets(row, toolsets) for row in messages] if toolsets else messages
    return {"messages": rows, **_waiting_container(body, turns[-1])}


def _waiting_container(body: Mapping[str, Any], last: OwnTurn) -> Json:
    """Return the container whose code waits for the results of the conversation's last calls."""
    container = an_object(last.fields).get("container")
    is_last = sum(map(_calls_in, body["messages"])) == last.at + last.calls
    return {"container": container} if is_text(container) and is_last and "container" not in body else {}


def _calls_in(message: Json) -> int:
    return sum(map(_is_call, objects(message["content"]))) if message["role"] == "assistant" else 0


def _with_blocks(message: Json, turn: OwnTurn) -> Json:
    """Return a message with a turn's blocks; a cache mark that lm15 put on the last block stays the last."""
    blocks, mark = turn.blocks, message["content"][-1].get("cache_control")
    if mark and blocks[-1].get("type") not in _THINKING:
        blocks = [*blocks[:-1], {"cache_control": mark, **blocks[-1]}]
    return {**message, "content": blocks}


def _of_toolsets(message: Json, toolsets: Mapping[str, str]) -> Json:
    """Return a message whose results repeat the toolset of their calls."""
    if message["role"] != "user":
        return message
    return {
        **message,
        "content": [
            {**block, "toolset_name": toolsets[block["tool_use_id"]]}
            if block.get("type") == "tool_result" and block["tool_use_id"] in toolsets
            else block
            for block in objects(message["content"])
        ],
    }


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


def block_of(part: Json, model: str) -> Json | None:  # noqa: ARG001
    """Return a part of a result as a content block; None if Claude takes no such part.

    Example:
        >>> block_of({"type": "image", "mime_type": "image/png", "data": "aGk="}, "claude-sonnet-4-6")
        {'type': 'image', 'source': {'type': 'base64', 'media_type': 'image/png', 'data': 'aGk='}}
    """
    # Source: Anthropic's Messages reference (`tool_result.content` of text, image and document; sources
    # base64, url, file, and the text of a plain document), read 2026-11-21. With `is_error`, Anthropic
    # refuses all but text in a result.
    text, mime = text_in(part), part.get("mime_type")
    if text is not None:
        return {"type": "text", "text": text}
    kind = "image" if part["type"] == "image" else "document"
    title = {"title": part["name"]} if kind == "document" and part.get("name") else {}
    if part["type"] == "audio":
        return None
    if "url" in part:
        return {"type": kind, "source": {"type": "url", "url": part["url"]}, **title}
    if "file_id" in part:
        return {"type": kind, "source": {"type": "file", "file_id": part["file_id"]}, **title}
    if mime in IMAGES or mime == PDF:
        return {"type": kind, "source": {"type": "base64", "media_type": mime, "data": part["data"]}, **title}
    text = decoded_text(part) if kind == "document" else None
    plain = {"type": "text", "media_type": "text/plain", "data": text}
    return None if text is None else {"type": "document", "source": plain, **title}


def put_results(body: Mapping[str, Any], results: Sequence[OwnResult | None]) -> Json:
    """Return the `messages` of a request with content in its tool results, and what follows after them.

    Example:
        >>> block = {"type": "tool_result", "tool_use_id": "c", "content": "[image 1]"}
        >>> said = OwnResult([{"type": "text", "text": "A shot."}])
        >>> put_results({"messages": [{"role": "user", "content": [block]}]}, [said])["messages"][0][
        ...     "content"
        ... ]
        [{'type': 'tool_result', 'tool_use_id': 'c', 'content': [{'type': 'text', 'text': 'A shot.'}]}]
    """
    rest = iter(results)
    return {"messages": [_with_results(message, rest) for message in body["messages"]]}


def _with_results(message: Json, results: Iterator[OwnResult | None]) -> Json:
    if message["role"] != "user" or isinstance(message["content"], str):
        return message
    blocks: list[Json] = []
    after: list[Json] = []
    for block in message["content"]:
        result = next(results, None) if block["type"] == "tool_result" else None
        if result is not None:
            after += result.after
            block = block if result.blocks is None else {**block, "content": [*result.blocks]}  # noqa: PLW2901
        blocks.append(block)
    return {**message, "content": [*blocks, *after]}


def _chat_block(part: Json, model: str) -> Json | None:
    """Return a part as LiteLLM takes it in a tool message; None if it does not reach Claude as it is."""
    block = block_of(part, model)
    is_plain = block is not None and block.get("source", {}).get("type") == "text"
    return None if block is None or is_plain else chat_block(part, model)


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
    text_failures=True,
    in_results=block_of,
    in_questions=block_of,
    ids=rf"(?!.*{SIGNED_ID}){PLAIN}",
    longest_id=64,
)

PROVIDER = Provider(
    name=NAME,
    is_body=is_body,
    read=read,
    is_event=is_event,
    assemble=assemble,
    tools=tools,
    own_turn=own_turn,
    put_turns=put_turns,
    put_results=put_results,
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
            text_failures=False,
            in_results=_chat_block,
            in_questions=_chat_block,
            choices=NO_SUBSET,
            strict=False,  # LiteLLM leaves the flag out (measured on litellm 1.106)
        ),
    ),
)
