"""Blocks that providers send beside text and calls, one table for each wire form, and turns made of them."""

import json
from collections.abc import Callable, Iterable
from typing import Any

Json = dict[str, Any]

_CITATION: Json = {
    "type": "web_search_result_location", "url": "https://e.org", "title": "t", "encrypted_index": "E",
    "cited_text": "c",
}  # fmt: skip

_NOTHING: list[Json] = []

ANTHROPIC: dict[str, Json] = {
    "thinking": {"type": "thinking", "thinking": "Hm.", "signature": "S1"},
    "redacted_thinking": {"type": "redacted_thinking", "data": "R"},
    "text": {"type": "text", "text": "Let me look."},
    "cited text": {"type": "text", "text": "Cited.", "citations": [_CITATION]},
    "server_tool_use": {
        "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"},
    },
    "web_search_tool_result": {
        "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "E"}],
    },
    "code execution": {
        "type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {"code": "1"},
        "caller": {"type": "direct"},
    },
    "code_execution_tool_result": {
        "type": "code_execution_tool_result", "tool_use_id": "srvtoolu_2",
        "content": {
            "type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0,
            "content": _NOTHING,
        },
    },
    "mcp_tool_use": {
        "type": "mcp_tool_use", "id": "mcptoolu_1", "name": "look", "server_name": "s", "input": {"a": 1},
    },
    "mcp_tool_result": {
        "type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False,
        "content": [{"type": "text", "text": "found"}],
    },
    "tool_search_tool_result": {
        "type": "tool_search_tool_result", "tool_use_id": "srvtoolu_3",
        "content": {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "get_weather"}],
        },
    },
    "container_upload": {"type": "container_upload", "file_id": "file_1"},
    "compaction": {"type": "compaction", "content": "So far.", "encrypted_content": "C"},
    "call": {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}},
    "call with a caller": {
        "type": "tool_use", "id": "t2", "name": "get_weather", "input": {"city": "Rome"},
        "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_2"},
    },
}  # fmt: skip


def _message(text: str, **fields: Any) -> Json:
    content: list[Json] = [{"type": "output_text", "text": text, "annotations": _NOTHING}]
    head = {"type": "message", "id": f"msg_{text[:1]}", "role": "assistant", "status": "completed"}
    return {**head, "content": content, **fields}


_URL: Json = {"type": "url_citation", "url": "https://e.org", "title": "t", "start_index": 0, "end_index": 1}

RESPONSES: dict[str, Json] = {
    "reasoning": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E1"},
    "reasoning in parts": {
        "type": "reasoning", "id": "rs_2", "encrypted_content": "E2",
        "summary": [{"type": "summary_text", "text": "A."}, {"type": "summary_text", "text": "B."}],
    },
    "message": _message("Let me look."),
    "commentary": _message("Now.", phase="commentary"),
    "cited message": _message(
        "", content=[{"type": "output_text", "text": "Cited.", "annotations": [_URL], "logprobs": []}]
    ),
    "refusal": _message("", content=[{"type": "refusal", "refusal": "I cannot."}]),
    "web_search_call": {
        "type": "web_search_call", "id": "ws_1", "status": "completed",
        "action": {"type": "search", "query": "q"},
    },
    "file_search_call": {
        "type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": None,
    },
    "code_interpreter_call": {
        "type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1",
        "container_id": "cntr_1", "outputs": None,
    },
    "mcp_list_tools": {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
    "mcp_call": {
        "type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "look", "arguments": "{}",
        "output": "found", "error": None,
    },
    "mcp_approval_request": {
        "type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "pay", "arguments": "{}",
    },
    "tool_search_call": {
        "type": "tool_search_call", "id": "ts_1", "call_id": None, "execution": "server",
        "status": "completed", "arguments": {"paths": ["a"]},
    },
    "tool_search_output": {
        "type": "tool_search_output", "id": "tso_1", "call_id": None, "execution": "server",
        "status": "completed", "tools": [],
    },
    "image_generation_call": {
        "type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "QUJD",
    },
    "compaction": {"type": "compaction", "id": "cmp_1", "encrypted_content": "C"},
    "call": {
        "type": "function_call", "id": "fc_1", "call_id": "t1", "name": "get_weather",
        "arguments": '{"city": "Paris"}', "status": "completed",
    },
    "call of a namespace": {
        "type": "function_call", "id": "fc_2", "call_id": "t2", "name": "get_weather",
        "arguments": '{"city":"Rome"}', "status": "completed", "namespace": "weather",
    },
    "custom call": {
        "type": "custom_tool_call", "id": "ctc_1", "call_id": "t3", "name": "code", "input": '{"a": 1}',
    },
}  # fmt: skip

GEMINI: dict[str, Json] = {
    "thought": {"text": "Hm.", "thought": True},
    "text": {"text": "Let me look."},
    "signed text": {"text": "Signed.", "thoughtSignature": "c2ln"},
    "executableCode": {
        "executableCode": {"language": "PYTHON", "code": "print(1)", "id": "e1"}, "thoughtSignature": "ZXhl",
    },
    "codeExecutionResult": {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1", "id": "e1"}},
    "toolCall": {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"q": "x"}, "id": "s1"}},
    "toolResponse": {
        "toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {"a": 1}, "id": "s1"},
        "thoughtSignature": "cmVz",
    },
    "inlineData": {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
    "fileData": {"fileData": {"mimeType": "image/png", "fileUri": "https://e.org/f"}},
    "call": {
        "functionCall": {"id": "t1", "name": "get_weather", "args": {"city": "Paris"}},
        "thoughtSignature": "U0lH",
    },
    "unsigned call": {"functionCall": {"id": "t2", "name": "get_weather", "args": {"city": "Rome"}}},
}  # fmt: skip

_CHAT_CALL: Json = {
    "id": "t1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
}  # fmt: skip
_DETAILS: list[Json] = [
    {"type": "reasoning.text", "text": "Hm.", "signature": "S", "format": "f", "index": 0},
    {"type": "reasoning.encrypted", "data": "E", "id": "r1", "format": "f", "index": 1},
]

CHAT: dict[str, Json] = {
    "reasoning_details": {"content": "Hi.", "reasoning_details": _DETAILS, "tool_calls": [_CHAT_CALL]},
    "audio": {"content": None, "audio": {"id": "audio_1"}, "tool_calls": [_CHAT_CALL]},
    "file annotations": {
        "content": "Read.",
        "annotations": [{"type": "file", "file": {"hash": "h", "name": "n", "content": []}}],
        "tool_calls": [_CHAT_CALL],
    },
    "thinking parts": {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "closed": True},
            {"type": "text", "text": "Hi."},
        ],
        "tool_calls": [_CHAT_CALL],
    },
    "signed call": {
        "content": None,
        "tool_calls": [{**_CHAT_CALL, "extra_content": {"google": {"thought_signature": "S"}}}],
    },
    "custom call": {
        "content": None,
        "tool_calls": [
            _CHAT_CALL,
            {"id": "t2", "type": "custom", "custom": {"name": "code", "input": '{"a": 1}'}},
        ],
    },
}  # fmt: skip
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
    "anthropic": [
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ],
    "responses": [
        {
            "type": "response.completed",
            "response": {"object": "response", "status": "completed", "output": []},
        }
    ],
    "gemini": [
        {"candidates": [{"index": 0, "content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}]},
    ],
}
