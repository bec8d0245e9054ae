"""Anthropic Messages, on Anthropic's own API and on the clouds and servers that speak it.

Sources: Anthropic's API reference (Message, its content blocks, the streaming events) and recorded answers.

Only `tool_use` blocks are calls; the provider ran `server_tool_use` and `mcp_tool_use` blocks itself.
Reasoning is the text of the `thinking` blocks; redacted ones have no text. A refusal ends with
the finish reason `refusal`, and `stop_details` says why. In a stream, a block ends with its
`content_block_stop` or the message's stop reason. Compatible servers may send the content as a text, and the
whole input in a block's start event.

A turn goes back with all of its blocks: those of tools that Anthropic ran, `container_upload`, `compaction`,
and the fields beyond text and call (`citations`, `caller`, `toolset_name`). A result repeats the
`toolset_name` of its call (source: the types of Anthropic's SDK, version 2.11). If code in a container made
calls, the request with their results names that `container` (source: "Programmatic tool calling").
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sigadapt.json_values import Json, is_array, json_like
from sigadapt.providers.provider import Provider, Result, Role
from sigadapt.providers.route import (
    NO_SUBSET,
    PLAIN,
    SIGNED_ID,
    ChoiceRules,
    DocumentedMembers,
    IdentifierRules,
    ResultRules,
    Route,
    RouteModels,
    SearchRules,
    ToolRules,
    TurnRules,
)
from sigadapt.providers.wire.content_blocks import (
    IMAGES,
    PDF,
    PICTURES,
    TEXTS,
    as_written,
    chat_block,
    decoded_text,
    text_in,
)
from sigadapt.providers.wire.reading import Part, Reading, details_in, finish_word, text_part
from sigadapt.providers.wire.recorded import PLAIN_MESSAGE, Recording
from sigadapt.providers.wire.stream_parts import Block, Blocks
from sigadapt.providers.wire.values import (
    ARGUMENT_NAMES,
    JsonText,
    an_object,
    content_parts,
    decoded,
    is_text,
    join_texts,
    json_text,
    kind_of,
    member_names,
    more_than,
    named_part,
    objects,
    usual_arguments,
)
from sigadapt.providers.wire.writing import arguments_of, blocks_with_calls, functions_chosen, plain_text
from sigadapt.schemas.arguments import CutOff, parse_arguments
from sigadapt.schemas.strict import StrictRules
from sigadapt.signatures.server_tools import Findings, ServerWork
from sigadapt.signatures.tool_results.tool_output import part_of_chat

NAME = "anthropic"

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
}
_EVENTS = {
    "message_start", "message_delta", "message_stop",
    "content_block_start", "content_block_delta", "content_block_stop",
}  # fmt: skip
_UNKNOWN = "unknown"  # the type of a streamed block that has no start event
_TYPES = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}  # or by a delta

_WITHOUT_SEARCH = re.compile(r"claude-(2|3|instant)")

# Sources: the page of each tool on platform.claude.com, and `ToolUnionParam` of Anthropic's SDK 2.11; read on
# 2026-11-23. These versions need no beta header, but MCP servers do. `tools` writes the fields of `_MCP`.
_LIMITS = {name: f"${name}" for name in ("allowed_domains", "blocked_domains", "max_uses")}
_MCP = {name: f"${name}" for name in ("server_url", "allowed_tools")}
_SERVER_TOOLS: Mapping[str, Mapping[str, Json]] = {
    "": {
        "WebSearch": {"type": "web_search_20250305", "name": "web_search", **_LIMITS},
        "WebFetch": {"type": "web_fetch_20250910", "name": "web_fetch", **_LIMITS},
        "CodeExecution": {"type": "code_execution_20250825", "name": "code_execution"},
        "McpServer": {"type": "mcp_toolset", "mcp_server_name": "$server_label", **_MCP},
    }
}
_MODES = {"auto": "auto", "required": "any", "none": "none"}
_OF_FUNCTION = ("name", "description", "input_schema", "strict")
_OF_SERVER = {"mcp_server_name", "server_url"}
_HEADERS = {"mcp_servers": {"anthropic-beta": "mcp-client-2025-11-20"}}
# https://platform.claude.com/docs/en/agents-and-tools/tool-use/computer-use-tool, and the advisor tool's page
_TOOL_HEADERS = {
    "advisor_20260301": {"anthropic-beta": "advisor-tool-2026-03-01"},
    "computer_20251124": {"anthropic-beta": "computer-use-2025-11-24"},
    "computer_20250124": {"anthropic-beta": "computer-use-2025-01-24"},
}

_THINKING = ("thinking", "redacted_thinking")
_OWN = frozenset(("system", "anthropic_version", "mcp_servers", "stop_sequences"))
_OWN_BLOCKS = frozenset(("tool_use", "tool_result", "document", "server_tool_use", *_THINKING)) | {"image"}
_TEXT_FIELDS = frozenset(("type", "text"))
_CALL_FIELDS = frozenset(("type", "id", "name"))


_RESULT_FIELDS = frozenset(("type", "tool_use_id", "content", "is_error", "toolset_name"))
_FILE_FIELDS = frozenset(("type", "source", "title"))


def ran_itself(call_id: Any) -> bool:
    """Return whether a call with this id is one that Claude made of its own tools, and LiteLLM hands out."""
    # Anthropic's ids of server tools begin with `srvtoolu_`, those of MCP tools with `mcptoolu_`.
    return isinstance(call_id, str) and call_id.startswith(("srvtoolu_", "mcptoolu_"))


# LiteLLM 1.106: {"tool_calls": [{"id": "srvtoolu_1", "function": {"name": "web_search", ...}}]}
# LiteLLM 1.110: {"provider_specific_fields": {"server_tool_calls": [{"id": "srvtoolu_1", ...}]}}
def ran_in_chat(message: Json) -> list[Json]:
    """Return the calls in a chat message of LiteLLM's that Claude made of its own tools."""
    beside = an_object(message.get("provider_specific_fields"))
    calls = *objects(message.get("tool_calls")), *objects(beside.get("server_tool_calls"))
    return [call for call in calls if ran_itself(call.get("id"))]


def _is_signed(block: Json) -> bool:
    """Return whether Anthropic takes a thinking block back: it refuses thinking without its signature."""
    return is_text(block.get("signature")) or is_text(block.get("data"))


def _joined_input(start: Any, text: JsonText) -> Any:
    """Return the input of a call whose start event holds one, too, as some servers send it."""
    if parse_arguments(text) == start:
        return text
    if not text.strip():
        return start
    return JsonText(json_like(start) + text)  # both, which is no JSON


def _whole_block(block: Block, *, ended: bool) -> Json:
    """Return the content block that a streamed block makes."""
    whole = dict(block.start)
    if not whole and block.deltas:
        whole["type"] = _TYPES.get(kind_of(block.deltas[0]), _UNKNOWN)
    for delta in block.deltas:
        if delta.get("type") == "compaction_delta":
            whole = {**whole, **delta, "type": whole["type"]}
    for key in ("text", "thinking", "signature"):
        if pieces := block.pieces(key):
            whole[key] = join_texts([whole.get(key), *pieces]) or ""
    if citations := block.pieces("citation"):
        whole["citations"] = citations
    if pieces := block.pieces("partial_json"):
        start = decoded(whole.get("input") or None)  # some servers send an empty text for no object
        text = JsonText(json_text(pieces))
        whole["input"] = _joined_input(start, text) if start else text
    if whole.get("type") == "tool_use" and not (ended or block.ended):
        whole["input"] = CutOff(whole.get("input") or JsonText())
    return whole


def _count(message: Json, counts: Json) -> None:
    """Put the counts of a `message_delta` over those of the start: they count from the beginning."""
    if counts:
        news = {name: count for name, count in counts.items() if count is not None}
        message["usage"] = {**an_object(message.get("usage")), **news}


# {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}}
# {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
#   {"type": "web_search_result", "url": "https://a.test/", "title": "Weather"}]}
# {"type": "text", "text": "18 C", "citations": [{"type": "web_search_result_location", "url": ...}]}
# https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools
def find(findings: Findings, blocks: Sequence[Json]) -> None:
    """Find what the tools that Anthropic ran left in the blocks of a turn."""
    results = {str(block.get("tool_use_id")): block for block in blocks if "tool_use_id" in block}
    for block in blocks:
        if kind_of(block) in ("server_tool_use", "mcp_tool_use"):
            _find_call(findings, block, results.get(str(block.get("id")), {}))
        for part in objects(block.get("content")):
            if kind_of(part) in ("web_search_result", "web_fetch_result"):
                title = part.get("title") or an_object(part.get("content")).get("title")
                findings.source(part.get("url"), title)
            for output in objects(part.get("content")):
                if is_text(output.get("file_id")):
                    findings.file(None, None, output["file_id"])
        for note in objects(block.get("citations")):
            _find_citation(findings, note)


def _find_call(findings: Findings, call: Json, result: Json) -> None:
    if result.get("is_error") or "error_code" in an_object(result.get("content")):
        status = "failed"
    else:
        status = "done" if result else "pending"
    kind = "mcp" if kind_of(call) == "mcp_tool_use" else None
    findings.call(call.get("name"), call.get("id"), status, call.get("input"), kind)


# {"type": "web_search_result_location", "url": ..., "title": ..., "cited_text": "BREAKING NEWS: ...",
#   "encrypted_index": "Eo8B..."}
def _find_citation(findings: Findings, note: Json) -> None:
    # Of a page that it fetched, Claude cites the title alone.
    title = note.get("title") or note.get("document_title")
    pages = [page.url for page in findings.sources.values() if title and page.title == title]
    url = note.get("url") or next(iter(pages), None)
    document = note.get("file_id") or note.get("source")
    findings.source(url, title, note.get("cited_text"), document, cited=True)


def _waiting_container(body: Json, calls: Sequence[Json]) -> Json | None:
    """Return the container whose code made calls and waits there for their results; None if there is none."""
    is_waiting = any(an_object(call.get("caller")).get("tool_id") for call in calls if "caller" in call)
    if not is_waiting:
        return None
    container = an_object(body.get("container")).get("id")
    return {"container": container} if is_text(container) else None


_MEMBERS = DocumentedMembers(
    body=member_names("""
        model messages system max_tokens stop_sequences stream temperature top_k top_p thinking
        tool_choice service_tier output_config output_format context_management betas speed
        cache_control
    """),
    tool_lists=member_names("tools mcp_servers"),
    tool=member_names("""
        type name description input_schema strict cache_control defer_loading eager_input_streaming
        allowed_callers input_examples max_uses max_results max_content_tokens allowed_domains
        blocked_domains user_location citations display_width_px display_height_px display_number
        default_config configs mcp_server_name tool_configuration
    """),
)
"""What its references document of a request and of tools."""


class Anthropic(Provider):
    """Anthropic Messages."""

    name = NAME
    telemetry = "anthropic"
    members = _MEMBERS
    server_policy = "AnthropicCompat"
    blocks_key = "content"
    arguments_as_objects = True

    def is_body(self, body: Json) -> bool:
        return body.get("type") == "message" or ("stop_reason" in body and "content" in body)

    # {"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
    #   {"type": "thinking", "thinking": "They want Paris.", "signature": "EqQB..."},
    #   {"type": "text", "text": "Let me look."},
    #   {"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": {"city": "Paris"}}]}
    # https://platform.claude.com/docs/en/api/messages#response-content
    def read(self, body: Json) -> list[Reading]:
        parts = [self.part_of(block) for block in content_parts(body.get("content"))]
        finish = finish_word(body.get("stop_reason"), _FINISH)
        calls = [part.block for part in parts if part.kind == "call"]
        if finish == "pause" and calls:  # Claude goes on with its own tools when the calls have their results
            finish = "tool_calls"
        # {"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "cyber", ...}}
        # https://platform.claude.com/docs/en/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals
        why = details_in(body.get("stop_details"))
        return [self.candidate(parts, finish, why, _waiting_container(body, calls))]

    def work(self, blocks: Sequence[Json]) -> ServerWork:
        findings = Findings()
        find(findings, blocks)
        return findings.work()

    # {"usage": {"input_tokens": 6, "cache_creation_input_tokens": 574, "cache_read_input_tokens": 20443,
    #   "output_tokens": 489, "output_tokens_details": {"thinking_tokens": 77}}}
    # https://platform.claude.com/docs/en/build-with-claude/prompt-caching#tracking-cache-performance
    read_counts = "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
    written_counts = ("output_tokens",)
    cached_count = "cache_read_input_tokens"

    def ran_itself(self, call_id: Any) -> bool:
        return ran_itself(call_id)

    def is_event(self, event: Json) -> bool:
        return kind_of(event) in _EVENTS

    # {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "toolu_01",
    #   "name": "get_weather", "input": {}}}
    # {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta",
    #   "partial_json": "{\"city\":"}}
    # {"type": "content_block_stop", "index": 1}
    # {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    # https://platform.claude.com/docs/en/build-with-claude/streaming
    def assemble(self, events: Iterable[Json]) -> Json:
        start: Json = {"type": "message", "stop_reason": None}
        message = {**start}
        blocks = Blocks()
        for event in events:
            kind = event.get("type")
            index = event.get("index")
            if kind == "message_start":  # the second one if a gateway tried again
                message = {**start, **an_object(event.get("message"))}
                blocks = Blocks()
            elif kind == "content_block_start":
                blocks.open(index, event.get("content_block"))
            elif kind == "content_block_delta":
                blocks.add(index, event.get("delta"))
            elif kind == "content_block_stop":
                blocks.at(index).ended = True
            elif kind == "message_delta":
                message.update(an_object(event.get("delta")))
                _count(message, an_object(event.get("usage")))
            elif kind == "message_stop":
                break
        ended = is_text(message.get("stop_reason"))
        content = [_whole_block(block, ended=ended) for block in blocks.all]
        # Without blocks, the content of the start event: some servers send a whole message there.
        return {**message, "content": content or message.get("content")}

    def is_request(self, body: Json) -> bool:
        messages = objects(body.get("messages"))
        roles = {str(message.get("role")) for message in messages}
        kinds = {kind_of(block) for message in messages for block in content_parts(message.get("content"))}
        is_plain = roles <= {"user", "assistant"} and not any("tool_calls" in each for each in messages)
        has_own = any("input_schema" in tool for tool in objects(body.get("tools")))
        is_claude = is_plain and "max_tokens" in body and "claude" in str(body.get("model"))
        return is_array(body.get("messages")) and (
            has_own or is_claude or not kinds.isdisjoint(_OWN_BLOCKS) or not _OWN.isdisjoint(body)
        )

    # {"model": "claude-opus-5", "max_tokens": 1024, "system": "Be brief.", "messages": [
    #   {"role": "user", "content": "Weather?"}], "tools": [{"name": "f", "input_schema": {...}}]}
    # https://platform.claude.com/docs/en/api/messages
    def request(self, body: Json) -> Recording:
        record = Recording(NAME, _part, _more_in)
        record.tools = [*objects(body.get("tools"))]
        record.set(body, {"stop_sequences": "stop"}, ("messages", "system", "tools"))
        record.instruct(body.get("system"), ("system",))
        for place, message in enumerate(objects(body["messages"])):
            where = ("messages", place, "content")
            content = message.get("content")
            record.lose_members(message, PLAIN_MESSAGE, ("messages", place))
            if message.get("role") == "assistant":
                record.turns += self.read({"type": "message", "content": content})
                continue
            if message.get("role") != "user":
                record.instruct(content or "", where)
                continue
            for at, block in enumerate(content_parts(content)):
                if kind_of(block) == "tool_result":
                    record.lose_members(block, _RESULT_FIELDS, (*where, at))
                    call = block.get("tool_use_id"), None
                    failed = block.get("is_error") is True
                    record.tell(call, block.get("content") or "", (*where, at), failed=failed)
                else:
                    record.ask(block, (*where, at))
        return record

    # {"role": "assistant", "content": "Let me look.", "tool_calls": [...], "thinking_blocks": [
    #   {"type": "thinking", "thinking": "They want Paris.", "signature": "EqQB..."}]}
    # https://docs.litellm.ai/docs/reasoning_content
    def state_from_chat(self, message: Json, text: str | None) -> Json | None:
        """Return a turn's state from a chat message in which LiteLLM put it, and the message's text."""
        # Blocks of tools that Claude ran itself have lost their places there and parts of their content, so
        # that only their names are kept: the next request records what stays behind.
        thinking = [block for block in objects(message.get("thinking_blocks")) if _is_signed(block)]
        calls = objects(message.get("tool_calls"))
        beside = an_object(message.get("provider_specific_fields"))
        losses = [
            "mcp_tool_use" if call["id"].startswith("mcp") else "server_tool_use"
            for call in ran_in_chat(message)
        ]
        for key in ("web_search_results", "tool_results", "compaction_blocks"):
            losses += (block["type"] for block in objects(beside.get(key)) if is_text(block.get("type")))
        if beside.get("citations"):
            losses.append("citations")
        if not thinking and not losses:
            return None
        own = [call for call in calls if not ran_itself(call.get("id"))]
        blocks = [*thinking, *self.plain_blocks(text, len(own))]
        chat_state: Json = {"dialect": NAME, "blocks": blocks}
        if losses:
            chat_state["lost"] = list(dict.fromkeys(losses))
        return chat_state

    # {"role": "assistant", "content": [{"type": "thinking", "thinking": "They want Paris.", "signature":
    #   "EqQB..."}, {"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": {...}}]}
    # Thinking must precede the call that it led to, unchanged:
    # https://platform.claude.com/docs/en/build-with-claude/extended-thinking#preserving-thinking-blocks
    def turn(self, message: Json, state: Json | None, route: Route) -> list[Json]:
        blocks: list[Json] = []
        for block, _, call in blocks_with_calls(self, message, state):
            if call is not None:
                fields = {"id": call["id"], "name": named_part(call)["name"], "input": arguments_of(call)}
                blocks.append({"type": "tool_use", **block, **fields})
            elif block["type"] in _THINKING:
                blocks += [block] if _is_signed(block) else []
            elif block["type"] != "text" or block.get("text"):  # Anthropic refuses empty texts
                blocks.append(block)
        return [{"role": "assistant", "content": blocks}]

    # {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "18 C"}]}
    # https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls
    def results(self, results: Sequence[Result], turn: Sequence[Json], route: Route) -> list[Json]:
        """Return the results of a turn as one row; a result repeats the `toolset_name` of its call."""
        calls = {block["id"]: block for row in turn for block in row["content"] if self.is_call(block)}
        content: list[Json] = []
        for result in results:
            content_of = result.text if result.blocks is None else [*result.blocks]
            # Tools whose loading was deferred, found by a search of the program's own:
            # https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
            # Any tool could write such a list, but it reveals nothing that this request does not declare.
            references = [{"type": "tool_reference", "tool_name": name} for name in result.deferred]
            parts = result.given if is_array(result.given) else ()
            if parts and all(part in references for part in parts):
                content_of = [*parts]
            failed = {"is_error": True} if result.is_error else {}
            toolset = calls.get(result.id, {}).get("toolset_name")
            toolset_field = {"toolset_name": toolset} if is_text(toolset) else {}
            block = {"type": "tool_result", "tool_use_id": result.id, "content": content_of}
            content.append({**block, **failed, **toolset_field})
        after = [block for result in results for block in result.after]
        return [{"role": "user", "content": [*content, *after]}]

    # {"role": "user", "content": [{"type": "text", "text": "Weather?"}]}
    def message(self, role: Role, content: str | Sequence[Json], route: Route) -> Json:
        if role == "developer":  # instructions inside of a conversation have no role of their own
            return self.message("user", f"[developer]\n{plain_text(content)}", route)
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
        return {"role": role, "content": blocks}

    def fields(self, request: Mapping[str, Any], route: Route) -> Json:
        """Return the tools, the choice, and the container whose code waits for the results of its calls."""
        # https://platform.claude.com/docs/en/agents-and-tools/tool-use/programmatic-tool-calling
        fields = super().fields(request, route)
        turns = [message for message in request["messages"] if message.get("turn") is not None]
        states = [each["turn"].state for each in turns if each.get("tool_calls") or each["turn"].state]
        if states and states[-1] is not None and route.replays(states[-1]):
            container = an_object(states[-1].get("fields")).get("container")
            fields |= {"container": container} if is_text(container) else {}
        return fields

    def chat_message(self, message: Json, state: Json) -> Json:
        """Return a chat message with the signed thinking as `thinking_blocks`, which LiteLLM sends on."""
        blocks = [block for block in state["blocks"] if _is_signed(block) and self.is_thinking(block)]
        return {**message, "thinking_blocks": blocks} if blocks else message

    def plain_blocks(self, text: str | None, calls: int) -> list[Json]:
        texts = [{"type": "text", "text": text}] if text else []
        return [*texts, *({"type": "tool_use"} for _ in range(calls))]

    def part_of(self, block: Json) -> Part:
        kind = block.get("type")
        if kind == "text":
            text = block.get("text")
            plain = {"type": kind, "text": text}
            return text_part(block, text, more_than(block, _TEXT_FIELDS), plain)
        if kind == "tool_use":
            arguments = usual_arguments(decoded(block.get("input")), block)
            fields = {key: block[key] for key in block if key not in ARGUMENT_NAMES}
            call = block.get("id"), block.get("name"), arguments
            return Part("call", more_than(fields, _CALL_FIELDS), fields, {"type": kind}, call=call)
        if kind in _THINKING:
            thinking = block.get("thinking") if kind == "thinking" else None
            if not _is_signed(block):
                return Part("thinking", "", block, thinking=thinking)
            more = "reasoning" if block.get("thinking") else kind
            return Part("thinking", more, block, thinking=thinking)
        if kind == _UNKNOWN:
            return Part("", "", {})
        if type(block.get("input")) is JsonText:  # of a tool that Anthropic ran: streamed as JSON text
            block = {**block, "input": parse_arguments(block["input"])}
        return Part(kind_of(block), kind_of(block) or "a block without a type", block)

    # {"name": "get_weather", "description": "...", "input_schema": {"type": "object", ...}}
    # https://platform.claude.com/docs/en/api/messages#body-tools
    # {"type": "mcp_toolset", "mcp_server_name": "docs", "default_config": {"enabled": false},
    #   "configs": {"read": {"enabled": true}}}
    # {"mcp_servers": [{"type": "url", "name": "docs", "url": "https://...", "authorization_token": ...}]}
    # https://platform.claude.com/docs/en/agents-and-tools/mcp-connector
    headers_of_fields = _HEADERS
    headers_of_tools = _TOOL_HEADERS
    token = "mcp_servers", "name", "authorization_token"
    server_tools = _SERVER_TOOLS

    def settings_for(self, request: Mapping[str, Any]) -> Json:
        """Return the MCP servers that the tools name."""
        servers = [
            {"type": "url", "name": tool["mcp_server_name"], "url": tool["server_url"]}
            for tool in request.get("tools", ())
            if tool.keys() >= _OF_SERVER
        ]
        return {"mcp_servers": servers} if servers else {}

    def tools(self, tools: list[Json]) -> list[Json]:
        entries: list[Json] = []
        for tool in tools:
            entry = tool
            if "function" in tool:
                function: Json = {"input_schema": tool["function"]["parameters"], **tool["function"]}
                entry = {key: function[key] for key in _OF_FUNCTION if key in function}
                entry |= {key: tool[key] for key in tool if key not in ("type", "function")}
            elif tool.keys() >= _OF_SERVER:
                configs = {name: {"enabled": True} for name in tool.get("allowed_tools", ())}
                subset = {"default_config": {"enabled": False}, "configs": configs}
                entry = {key: tool[key] for key in tool if key not in _MCP}
                entry |= subset if "allowed_tools" in tool else {}
            entries.append(entry)
        return entries

    # {"tool_choice": {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": true}}
    # https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools#forcing-tool-use
    def tool_choice(self, choice: str | Json | None, *, parallel: bool | None = None) -> Json:
        if choice is None and parallel is None:
            return {}
        functions = functions_chosen(choice)
        if functions is None:
            return self._choice_of_own_tool(an_object(choice), parallel=parallel)
        mode, names = functions
        written: Json = {"type": _MODES[mode]}
        if names and mode == "required":
            written = {"type": "tool", "name": names[0]}
        if parallel is False and mode != "none":
            written["disable_parallel_tool_use"] = True
        return {"tool_choice": written}

    # {"tool_choice": {"type": "tool", "name": "web_search"}}
    def _choice_of_own_tool(self, choice: Json, *, parallel: bool | None) -> Json:
        if not is_text(choice.get("name")):
            return self.tool_choice(None, parallel=parallel)
        written: Json = {"type": "tool", "name": choice["name"]}
        if parallel is not None:
            written["disable_parallel_tool_use"] = not parallel
        return {"tool_choice": written}


_SPELLED = {"image/jpg": "image/jpeg"}


def block_of(part: Json, model: str) -> Json | None:
    """Return a part of a result as a content block; None if Claude takes no such part."""
    # Source: Anthropic's Messages reference (`tool_result.content` of text, image and document; sources
    # base64, url, file, and the text of a plain document), read 2026-11-21. With `is_error`, Anthropic
    # refuses all but text in a result.
    text = text_in(part)
    mime = _SPELLED.get(part.get("mime_type", ""), part.get("mime_type"))
    if text is not None:
        return {"type": "text", "text": text}
    kind = "image" if part["type"] == "image" else "document"
    title = {"title": part["name"]} if kind == "document" and part.get("name") else {}
    if part["type"] == "audio":
        return None
    if "url" in part or "file_id" in part:
        place = "url" if "url" in part else "file_id"
        source = {"type": place.removesuffix("_id"), place: part[place]}
    elif mime in IMAGES or mime == PDF:
        source = {"type": "base64", "media_type": mime, "data": part["data"]}
    elif kind == "image" or (plain := decoded_text(part)) is None:
        return None
    else:
        source = {"type": "text", "media_type": "text/plain", "data": plain}
    return {"type": kind, "source": source, **title}


def question_block(block: Json, model: str) -> Json | None:
    """Return a block of a question, which DSPy writes as chat messages have it; None if Claude takes none."""
    if kind_of(block) in _AS_CLAUDE_HAS_THEM:
        return block
    part = part_of_chat(block)
    if part is None or part["type"] == "audio":
        return None
    written = block_of(part, model)
    if written is None:  # of a type that Anthropic may come to take; until then, it says that it does not
        kind = "image" if part["type"] == "image" else "document"
        source = {"type": "base64", "media_type": part["mime_type"], "data": part["data"]}
        written = {"type": kind, "source": source}
    mark = block.get("cache_control")
    return written if mark is None else {**written, "cache_control": mark}


def _chat_question_block(block: Json, model: str) -> Json | None:
    """Return a block of a question as LiteLLM takes it; None if that does not reach Claude."""
    part = part_of_chat(block) if kind_of(block) == "file" else None
    if part is not None and "file_id" not in part:  # LiteLLM drops a file's name, but passes a document on
        return chat_block(part, model) if part["type"] == "image" else question_block(block, model)
    return as_written(block, model) if kind_of(block) in _OVER_LITELLM else None


_AS_CLAUDE_HAS_THEM = frozenset({"document", "image"})
_OVER_LITELLM = frozenset({"text", "image_url", "document", "file"})
"""What `anthropic_messages_pt` of litellm 1.106 writes of a question. It leaves out all else in silence."""


def _more_in(block: Json) -> str:
    """Return the names of what a content block holds beside its text or its file."""
    return more_than(block, _TEXT_FIELDS if "text" in block else _FILE_FIELDS)


# {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/4AAQ..."}}
# {"type": "image", "source": {"type": "url", "url": "https://t3.ftcdn.net/jpg/00/85/79/92/360_F_8579.jpg"}}
# {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "TXT test file ..."}}
def _part(block: Json) -> Json | None:
    """Return a content block as a part; None if it is no image, and no document with a source."""
    source = an_object(block.get("source"))
    kind = "image" if kind_of(block) == "image" else "file"
    if kind_of(block) not in ("image", "document"):
        return None
    name = {"name": block["title"]} if is_text(block.get("title")) else {}
    if is_text(source.get("data")):
        data: str = source["data"]
        data = b64encode(data.encode()).decode() if source.get("type") == "text" else data
        return {"type": kind, "mime_type": source.get("media_type") or PDF, "data": data, **name}
    place = next((key for key in ("url", "file_id") if is_text(source.get(key))), None)
    return None if place is None else {"type": kind, place: source[place], **name}


def _chat_block(part: Json, model: str) -> Json | None:
    """Return a part as LiteLLM takes it in a tool message; None if it does not reach Claude as it is."""
    block = block_of(part, model)
    is_plain = block is not None and block.get("source", {}).get("type") == "text"
    return None if block is None or is_plain else chat_block(part, model)


# Sources: the guides "Vision", "PDF support" and "Files API" on platform.claude.com; read on 2026-11-21.
_DOCUMENTS = rf"{PDF}|{TEXTS}"

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


def _searches(model: str) -> bool:
    """Return that Claude 4 and later search tools: "Tool search tool" on platform.claude.com, 2026-11-23."""
    return "claude" in model and not _WITHOUT_SEARCH.search(model)


_ROUTE = Route(
    NAME,
    "lm15",
    models=RouteModels(adapter="AnthropicLM"),
    turns=TurnRules(takes=frozenset({NAME}), takes_instructions=False),
    results=ResultRules(
        marks_failed=True,
        text_failures=True,
        inside=block_of,
        behind=block_of,
        images=PICTURES,
        files=_DOCUMENTS,
    ),
    choices=ChoiceRules(forms=NO_SUBSET | {"own"}, forces_with_thinking=False),
    tools=ToolRules(fields=_FIELDS, strict=True, strict_rules=_STRICT),
    search=SearchRules(
        types="tool_search_tool_.*",
        tool=(("type", "tool_search_tool_bm25_20251119"), ("name", "tool_search_tool_bm25")),
        supports=_searches,
    ),
    ids=IdentifierRules(rf"(?!.*{SIGNED_ID}){PLAIN}", 64),
    question_block=question_block,
)

PROVIDER = Anthropic(
    _ROUTE,
    _ROUTE._replace(
        client="litellm",
        as_chat=True,
        models=RouteModels(prefixes=frozenset({NAME})),
        turns=_ROUTE.turns._replace(writes_arguments=True),
        results=ResultRules(inside=_chat_block, behind=_chat_block, images=PICTURES, files=_DOCUMENTS),
        choices=_ROUTE.choices._replace(forms=NO_SUBSET),
        tools=ToolRules(  # not `strict`: LiteLLM leaves the flag out (measured on litellm 1.106)
            fields=_FIELDS,
            lost_server_tools=frozenset({"McpServer"}),  # "Unsupported tool type" (measured on litellm 1.106)
            # `AnthropicInputSchema` of litellm 1.106, to which it reduces a schema's root.
            root_pattern=r"type|properties|required|additionalProperties|\$defs",
        ),
        question_block=_chat_question_block,
    ),
)
