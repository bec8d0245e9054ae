"""A small reader of recorded answers: the calls, the text, and the tools of the request.

It shares no code with sigadapt, because sigadapt is judged by what it finds.
"""

import json
from collections.abc import Generator
from typing import Any

Call = dict[str, Any]
GEMINI_SCHEMAS = ("parametersJsonSchema", "parameters_json_schema", "parameters")


class UnreadableError(Exception):
    """An answer that this reader does not understand."""


def expected(wire: str, request: dict[str, Any], response: Any) -> dict[str, Any]:
    """Return what a good reader finds in a recorded exchange."""
    try:
        calls, texts = READERS[wire](response)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UnreadableError(repr(error)) from error
    return {"calls": calls, "text": "".join(texts) or None, "tools": _tools(wire, request)}


def _events(response: str) -> Generator[dict[str, Any]]:
    """Yield the JSON objects of a stream of server-sent events, or of one JSON object a line."""
    for line in response.splitlines():
        data = line.removeprefix("data:").strip()
        if data.startswith("{"):
            yield json.loads(data)


def _arguments(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    return json.loads(text) if text.strip() else {}


def _chat(response: Any) -> tuple[list[Call], list[str]]:
    if isinstance(response, dict):
        message = response["choices"][0]["message"]
        calls = [
            {
                "id": call.get("id"),
                "name": call["function"]["name"],
                "args": _arguments(call["function"]["arguments"]),
            }
            for call in message.get("tool_calls") or ()
        ]
        return calls, _content(message.get("content"))
    pieces: dict[int, dict[str, Any]] = {}
    texts: list[str] = []
    for event in _events(response):
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            texts += _content(delta.get("content"))
            for number, call in enumerate(delta.get("tool_calls") or ()):
                index = call.get("index", number)
                piece = pieces.setdefault(index, {"id": None, "name": "", "args": ""})
                function = call.get("function") or {}
                piece["id"] = call.get("id") or piece["id"]
                piece["name"] = function.get("name") or piece["name"]
                piece["args"] += function.get("arguments") or ""
    return [{**piece, "args": _arguments(piece["args"])} for piece in pieces.values()], texts


def _content(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content or () if part.get("type") == "text"]


def _responses(response: Any) -> tuple[list[Call], list[str]]:
    if not isinstance(response, dict):
        items: dict[int, Any] = {}
        for event in _events(response):
            if event.get("type") == "response.output_item.done":
                items[event["output_index"]] = event["item"]
        response = {"output": [items[index] for index in sorted(items)]}
    calls: list[Call] = []
    texts: list[str] = []
    for item in response["output"]:
        if item["type"] == "function_call":
            arguments = _arguments(item["arguments"])
            calls.append({"id": item["call_id"], "name": item["name"], "args": arguments})
        elif item["type"] == "message":
            texts += [part["text"] for part in item["content"] if part["type"] == "output_text"]
    return calls, texts


def _anthropic(response: Any) -> tuple[list[Call], list[str]]:
    if not isinstance(response, dict):
        blocks: dict[int, Any] = {}
        for event in _events(response):
            if event["type"] == "content_block_start":
                blocks[event["index"]] = {**event["content_block"], "written": ""}
            elif event["type"] == "content_block_delta":
                delta = event["delta"]
                if delta["type"] == "text_delta":
                    blocks[event["index"]]["text"] += delta["text"]
                elif delta["type"] == "input_json_delta":
                    blocks[event["index"]]["written"] += delta["partial_json"]
        response = {"content": [*blocks.values()]}
    calls: list[Call] = []
    texts: list[str] = []
    for block in response["content"]:
        if block["type"] == "tool_use":
            arguments = _arguments(block["written"]) if block.get("written") else block["input"]
            calls.append({"id": block["id"], "name": block["name"], "args": arguments})
        elif block["type"] == "text":
            texts.append(block["text"])
    return calls, texts


def _gemini(response: Any) -> tuple[list[Call], list[str]]:
    chunks = [response] if isinstance(response, dict) else [*_events(response)]
    calls: list[Call] = []
    texts: list[str] = []
    for chunk in chunks:
        candidate = (chunk.get("candidates") or [{}])[0]
        for part in (candidate.get("content") or {}).get("parts") or ():
            if "functionCall" in part:
                call = part["functionCall"]
                arguments = call.get("args") or {}
                calls.append({"id": call.get("id"), "name": call["name"], "args": arguments})
            elif "text" in part and not part.get("thought"):
                texts.append(part["text"])
    return calls, texts


def _bedrock(response: Any) -> tuple[list[Call], list[str]]:
    calls: list[Call] = []
    texts: list[str] = []
    for block in response["output"]["message"]["content"]:
        if "toolUse" in block:
            call = block["toolUse"]
            calls.append({"id": call["toolUseId"], "name": call["name"], "args": call["input"]})
        elif "text" in block:
            texts.append(block["text"])
    return calls, texts


def _ollama(response: Any) -> tuple[list[Call], list[str]]:
    chunks = [response] if isinstance(response, dict) else [*_events(response)]
    calls: list[Call] = []
    texts: list[str] = []
    for chunk in chunks:
        message = chunk["message"]
        texts.append(message.get("content") or "")
        for call in message.get("tool_calls") or ():
            function = call["function"]
            calls.append({"id": call.get("id"), "name": function["name"], "args": function["arguments"]})
    return calls, texts


def _cohere(response: Any) -> tuple[list[Call], list[str]]:
    message = response["message"]
    calls = [
        {
            "id": call.get("id"),
            "name": call["function"]["name"],
            "args": _arguments(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls") or ()
    ]
    return calls, _content(message.get("content"))


READERS = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock-converse": _bedrock,
    "ollama": _ollama,
    "cohere": _cohere,
}


def _tools(wire: str, request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the functions of a request, each with name, description and parameters."""
    if wire == "bedrock-converse":
        declared = [tool.get("toolSpec") for tool in (request.get("toolConfig") or {}).get("tools") or ()]
        return [_tool(spec, spec["inputSchema"]["json"]) for spec in declared if spec]
    found: list[dict[str, Any]] = []
    tools = request.get("tools") or ()
    for tool in [tools] if isinstance(tools, dict) else tools:
        if wire == "gemini":
            for spec in tool.get("functionDeclarations") or tool.get("function_declarations") or ():
                schemas = [spec.get(key) for key in GEMINI_SCHEMAS]
                found.append(_tool(spec, next(filter(None, schemas), None)))
        elif wire == "anthropic":
            if "input_schema" in tool:
                found.append(_tool(tool, tool["input_schema"]))
        elif tool.get("type") == "function":
            spec = tool if wire == "openai-responses" else tool["function"]
            found.append(_tool(spec, spec.get("parameters")))
    return found


def _tool(spec: dict[str, Any], parameters: Any) -> dict[str, Any]:
    return {"name": spec["name"], "description": spec.get("description"), "parameters": parameters}
