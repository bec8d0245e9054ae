"""Images, files and audio of DSPy, and what a tool of MCP or LangChain hands back, as parts of content.

DSPy writes one of its types as blocks of a chat message, in JSON between two marks, in a text. A tool may
have got such a text from anywhere, so it is never read as an image at a URL, which some routes would
download, or as a file of the account. Neither MCP's SDK nor LangChain is imported here: one of their objects
exists only if the SDK is imported already.
"""

import base64
import mimetypes
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes

import dspy
import jiter
from dspy.adapters.types.base_type import CUSTOM_TYPE_END_IDENTIFIER as _END
from dspy.adapters.types.base_type import CUSTOM_TYPE_START_IDENTIFIER as START

from sigadapt.dspy_boundary.contract import chat_block
from sigadapt.json_values import Json, compact, is_array, is_object, without_halves

Part: TypeAlias = Json
"""A part of content, as `content.py` lists them."""

MEDIA = frozenset({"image", "audio", "file"})


# Version 2 of MCP's SDK has its types in `mcp_types`, version 1 in `mcp.types`.
MCP_TYPES = ("mcp_types", "mcp.types")
_LANGCHAIN = ("langchain_core.messages.tool",)
_BLOCKS = frozenset({"TextContent", "ImageContent", "AudioContent", "EmbeddedResource", "ResourceLink"})


def saved_parts(text: str) -> list[Part] | None:
    """Return what a text is that DSPy saved of one of its types, with its data; None for any other text."""
    content = parts_in_mark(text)
    if content is None or any("data" not in part for part in content):
        return None
    return content


def parts_in_mark(text: str) -> list[Part] | None:
    """Return the content of a text that is wholly one of DSPy's types as DSPy writes it; else None."""
    if not text.startswith(START) or not text.endswith(_END) or text.count(START) != 1:
        return None
    try:
        blocks: Any = jiter.from_json(text[len(START) : -len(_END)].encode("utf-8", "replace"))
    except ValueError:
        return None
    if not is_array(blocks):
        return None
    return [part_of_chat(chat_block(block)) or {"type": "json", "value": block} for block in blocks]


def part_of_chat(block: Any) -> Part | None:
    """Return a content block of a chat message as a part; None if it is of no known kind."""
    # Source: OpenAI's chat completions reference (text, image_url, input_audio, file).
    kind = block.get("type") if is_object(block) else None
    content = block.get(kind) if isinstance(kind, str) else None
    fields: Json = content if is_object(content) else {}
    url = fields.get("url", content)
    if kind == "text" and isinstance(content, str):
        return {"type": "text", "text": content}
    if kind == "image_url" and isinstance(url, str):
        return part_at("image", url)
    if kind == "input_audio" and isinstance(fields.get("data"), str):
        mime = f"audio/{fields.get('format') or 'wav'}"
        return {"type": "audio", "mime_type": mime, "data": fields["data"]}
    return _chat_file(fields) if kind == "file" else None


def _chat_file(fields: Json) -> Part | None:
    name = {"name": fields["filename"]} if isinstance(fields.get("filename"), str) else {}
    if isinstance(fields.get("file_data"), str):
        return {**part_at("file", fields["file_data"], name.get("name")), **name}
    if isinstance(fields.get("file_id"), str):
        return {"type": "file", "file_id": fields["file_id"], **name}
    return None


def part_at(kind: str, url: str, name: str | None = None) -> Part:
    """Return the part at an address: a URL, a data URI, or base64 alone."""
    if not url.startswith("data:"):
        return {"type": kind, "url": url} if "://" in url[:12] else part_of_bytes(None, url, name)
    head, _, data = url[len("data:") :].partition(",")
    if not head.endswith(";base64"):
        data = base64.b64encode(unquote_to_bytes(data)).decode()
    return part_of_bytes(head.partition(";")[0] or "text/plain", data, name)


def part_of_bytes(mime: str | None, data: str, name: str | None) -> Part:
    """Return the part of base64 data."""
    mime = mime or mimetypes.guess_type(name or "")[0] or "application/octet-stream"
    family = mime.partition("/")[0]
    return {"type": family if family in MEDIA else "file", "mime_type": mime, "data": data}


class Output(NamedTuple):
    """What a tool handed back."""

    parts: list[Part]
    failed: bool  # whether the tool says so
    is_mcp: bool  # whether it came from an MCP server
    had_halves: bool = False  # whether a half of a surrogate pair in it was read as U+FFFD


class NotedValue(NamedTuple):
    """What a tool returned, and what the model reads after it."""

    value: Any
    note: str


_EDITED = "A person edited this call before it ran. It ran with "


def edit_note(args: Json) -> str:
    """Return what the model reads after the result of a call that a person edited."""
    return f"{_EDITED}{compact(args)}."


def loaded_mcp_types() -> Any:
    """Return the MCP SDK's module of types; whoever has a session has loaded it."""
    return next(module for name in MCP_TYPES if (module := sys.modules.get(name)) is not None)


def output_of(value: object) -> Output | None:
    """Return an MCP `CallToolResult` or a LangChain `ToolMessage` as an Output; None for any other value."""
    output = _output_of(value)
    if output is None:
        return None
    parts: list[Part] = without_halves(output.parts)
    return output if parts is output.parts else output._replace(parts=parts, had_halves=True)


def _output_of(value: object) -> Output | None:
    result: Any = value
    if is_a("CallToolResult", value):
        failed = bool(first_of(result, "is_error", "isError"))
        return Output(_mcp_content(result), failed, is_mcp=True)
    for kind, reason in _UNFINISHED.items():
        if is_a(kind, value):
            return Output([{"type": "text", "text": reason}], failed=True, is_mcp=True)
    if is_a("ToolMessage", value, _LANGCHAIN):
        return Output(list(_langchain_content(result.content)), result.status == "error", is_mcp=False)
    return None


# {"resultType": "input_required", "inputRequests": {"sure": {"method": "elicitation/create", ...}},
#  "requestState": "..."}; {"task": {"taskId": "t1", "status": "working", ...}}
# https://modelcontextprotocol.io/specification/draft/basic/utilities/mrtr
_UNFINISHED = {
    "InputRequiredResult": (
        "The server asked for more input, which this program cannot give. The call did not end."
    ),
    "CreateTaskResult": "The server runs this call as a task, whose result this program does not wait for.",
}
"""What the model reads of an MCP result that is none yet, by its type."""


def program_outputs(value: object) -> Any:
    """Return the outputs of a DSPy program's Prediction, without the run that led to them; else the value."""
    if isinstance(value, NotedValue):
        value = value.value
    if not isinstance(value, dspy.Prediction):
        return value
    prediction: Any = value
    outputs: dict[str, Any] = dict(prediction.items())
    if isinstance(outputs.get("history"), dspy.History):  # ReActV2's
        del outputs["history"]
        outputs.pop("termination_reason", None)
    if isinstance(outputs.get("trajectory"), dict):  # ReAct's
        del outputs["trajectory"]
    return outputs


def parts_of_block(value: Any) -> list[Part] | None:
    """Return the parts that a content block of MCP's SDK is; None for any other value."""
    kind = type(value).__name__
    if kind not in _BLOCKS or not is_a(kind, value):
        return None
    return list(_of_mcp(value.model_dump(mode="json", by_alias=True, exclude_none=True)))


def for_agent(content: list[Part]) -> Any:
    """Return content that holds media as what a tool of DSPy returns: texts, JSON and DSPy's own types."""
    values = [*map(_agent_value, content)]
    return values[0] if len(values) == 1 else values


def _agent_value(part: Part) -> Any:
    if part["type"] == "text":
        return part["text"]
    if part["type"] not in MEDIA:
        return part["value"]
    address = f"data:{part['mime_type']};base64,{part['data']}"
    if part["type"] == "image":
        return dspy.Image(address)
    if part["type"] == "audio":
        return dspy.Audio(data=part["data"], audio_format=part["mime_type"].partition("/")[2])
    return dspy.File(file_data=address, filename=part.get("name"))


def first_of(value: object, *names: str) -> Any:
    """Return the first attribute that a value has, of several names; None without one."""
    return next((getattr(value, name) for name in names if hasattr(value, name)), None)


def is_a(kind: str, value: object, modules: tuple[str, ...] = MCP_TYPES) -> bool:
    """Return whether a value is of a class of an SDK that is imported already."""
    sdks = (sys.modules.get(name) for name in modules)
    return any(isinstance(value, getattr(module, kind, ())) for module in sdks)


# {"content": [{"type": "text", "text": "18 C"}, {"type": "image", "data": "iV...", "mimeType": "image/png"}],
#  "structuredContent": {"result": "18 C"}, "isError": false}
# https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result
def _mcp_content(result: Any) -> list[Part]:
    """Return an MCP result's blocks, and its structured content unless that only wraps or repeats a text."""
    blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
    content: list[Part] = []
    for block in blocks:
        content += _of_mcp(block)
    structured = structured_content(result)
    if structured is None:
        return content
    texts = [part["text"] for part in content if part["type"] == "text"]
    text = "\n".join(texts)
    # The SDK wraps a value that is no object; the server's own text, or its own blocks, stand for it.
    value = structured
    if is_object(structured) and len(structured) == 1:
        value = next(iter(structured.values()))
    originals = ([*blocks], *blocks) if isinstance(value, (dict, list)) else (text, _parse(text))
    if blocks and value in originals:
        return content
    repeats = (text, _parse(text), texts, [_parse(text) for text in texts])
    if not texts or structured in repeats or value in repeats:  # the texts only repeat it
        content = [part for part in content if part["type"] != "text"]
    return [{"type": "json", "value": structured}, *content]


def structured_content(value: object) -> Json | None:
    """Return the structured content of an MCP result, which the tool's `outputSchema` describes."""
    return (
        first_of(value, "structured_content", "structuredContent") if is_a("CallToolResult", value) else None
    )


def _of_mcp(block: Json) -> Iterator[Part]:
    kind = block.get("type")
    mime = block.get("mimeType")
    if kind == "text":
        yield {"type": "text", "text": block["text"]}
    elif kind in ("image", "audio"):
        yield part_of_bytes(mime, block["data"], None)
    elif kind == "resource" and "blob" in (resource := block["resource"]):
        name = str(resource["uri"])
        yield {**part_of_bytes(resource.get("mimeType"), resource["blob"], name), "name": name}
    elif kind == "resource" and "text" in (resource := block["resource"]):
        yield {"type": "text", "text": f"{resource['uri']}:\n{resource['text']}"}
    else:  # a link to a resource, and what comes
        yield {"type": "json", "value": block}


# ["Here:", {"type": "image", "base64": "iVBO...", "mime_type": "image/png", "id": "lc_1"}], before version 1
# {"type": "image", "source_type": "base64", "data": "iVBO...", "mime_type": "image/png"}, or as OpenAI has it
# {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO..."}}.
# https://docs.langchain.com/oss/python/langchain/messages#standard-content-blocks
def _langchain_content(content: Any) -> Iterator[Part]:
    for block in [content] if isinstance(content, str) else content:
        if isinstance(block, str):
            yield {"type": "text", "text": block}
            continue
        kind = block.get("type")
        data = block.get("base64", block.get("data"))
        mime = block.get("mime_type")
        image = block.get("image_url")
        address = image.get("url") if is_object(image) else image
        if kind == "text" and isinstance(block.get("text"), str):
            yield {"type": "text", "text": block["text"]}
        elif isinstance(data, str) and (mime is None or isinstance(mime, str)):
            yield part_of_bytes(mime, data, block.get("filename"))
        elif isinstance(address, str) and address.startswith("data:"):
            yield part_at("image", address)
        else:  # what is elsewhere is named, and not fetched
            yield {"type": "json", "value": {key: block[key] for key in block if key not in ("id", "index")}}


def _parse(text: str) -> Any:
    try:
        return jiter.from_json(text.encode("utf-8", "replace"))
    except ValueError:
        return text
