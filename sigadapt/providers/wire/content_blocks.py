"""Parts of a result and of a question as content blocks, and what the providers' blocks have in common.

A part has the form that `signatures/tool_results/content.py` describes. Source: OpenAI's chat completions
reference (content parts `text`, `image_url`, `input_audio` and `file` of a user message), read
2026-11-21. A tool message takes text alone there, so what is not text follows the results of the turn in
a user message.

DSPy writes an input of its types as the same blocks, and `dspy.Document` as Anthropic's `document`. A route
says with one of the functions here, or one of its own, what of them arrives. Read in dspy 3.4.1 and litellm
1.106.
"""

import base64
import mimetypes
import re
from collections.abc import Callable

from sigadapt.json_values import Json, compact, is_object
from sigadapt.signatures.tool_results.tool_output import Part, part_of_chat

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
PDF = "application/pdf"
PICTURES = r"image/(png|jpe?g|gif|webp)"
"""The pattern for the types of images that OpenAI, Anthropic, Bedrock and Ollama take."""
OFFICE = (
    r"application/(msword|rtf|vnd\.ms-(excel|powerpoint|word).*"
    r"|vnd\.(openxmlformats-officedocument|oasis\.opendocument)\..+)"
)
"""The pattern for the types of office documents."""

_AUDIO = {"wav": "wav", "x-wav": "wav", "wave": "wav", "mp3": "mp3", "mpeg": "mp3"}
_KINDS = "json", "xml", "yaml", "x-yaml", "toml", "javascript", "csv", "x-ndjson", "sql"
TEXTS = rf"text/.+|[^/]+/({'|'.join(_KINDS)})|[^/]+/.+\+(json|xml)"
"""The pattern for the types of files that are texts."""


def text_in(part: Json) -> str | None:
    """Return the text of a part that is text or JSON; None for an image, a file or audio."""
    if part["type"] == "json":
        return compact(part["value"])
    return part["text"] if part["type"] == "text" else None


def decoded_text(part: Json) -> str | None:
    """Return the text of a file that is a text by its MIME type; None for any other part."""
    if not re.fullmatch(TEXTS, part.get("mime_type", "").partition(";")[0].strip()):
        return None
    try:
        return base64.b64decode(part.get("data", ""), validate=True).decode() or None
    except ValueError:  # no base64, or no UTF-8
        return None


def data_uri(part: Json) -> str:
    """Return a part with data as a data URI."""
    return f"data:{part['mime_type']};base64,{part['data']}"


def file_name(part: Json) -> str:
    """Return the name of a file; one by its MIME type if it has none."""
    name = part.get("name", "").rpartition("/")[2]
    return name or f"file{mimetypes.guess_extension(part['mime_type']) or '.bin'}"


def chat_block(part: Json, model: str) -> Json | None:
    """Return a part as a content block of a user message; None if no such block can hold it."""
    text = text_in(part)
    has_data = "data" in part
    if text is not None:
        return {"type": "text", "text": text}
    if part["type"] == "image" and "file_id" not in part:
        return {"type": "image_url", "image_url": {"url": data_uri(part) if has_data else part["url"]}}
    if part["type"] == "audio" and has_data:
        form = _AUDIO.get(part["mime_type"].partition("/")[2].partition(";")[0])
        if form is None:
            return None
        return {"type": "input_audio", "input_audio": {"data": part["data"], "format": form}}
    if part["type"] == "file" and "url" not in part:
        file = (
            {"filename": file_name(part), "file_data": data_uri(part)}
            if has_data
            else {"file_id": part["file_id"]}
        )
        return {"type": "file", "file": file}
    return None


def chat_image(part: Json, model: str) -> Json | None:
    """Return an image with data as a content block of a user message; None for any other part but text."""
    has_place = part["type"] in ("text", "json") or (part["type"] == "image" and "data" in part)
    return chat_block(part, model) if has_place else None


def chat_text(part: Json, model: str) -> Json | None:
    """Return text or JSON as a content block; None for any other part."""
    return None if text_in(part) is None else chat_block(part, model)


def part_of_question(block: Json) -> Part | None:
    """Return a content block of a question as a part; None if it is of no known kind or has no content."""
    return _document(block) if block.get("type") == "document" else part_of_chat(block)


def _document(block: Json) -> Part | None:
    # {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "The Earth ..."},
    #  "citations": {"enabled": true}, "title": "Astronomy", "context": "For children"}
    source = block.get("source")
    if not is_object(source):
        return None
    data = source.get("data")
    mime = source.get("media_type")
    if not isinstance(data, str) or not isinstance(mime, str):
        return None
    if source.get("type") == "text":
        head = block.get("context")
        text = f"{head}\n{data}" if isinstance(head, str) and head else data
        data = base64.b64encode(text.encode("utf-8", "replace")).decode()
    name = {"name": block["title"]} if isinstance(block.get("title"), str) else {}
    return {"type": "file", "mime_type": mime, "data": data, **name}


def as_written(block: Json, model: str) -> Json | None:
    """Return any block as DSPy writes it, for clients and servers that take chat messages."""
    return None if block.get("type") == "file" and part_of_chat(block) is None else block


def as_part(block: Json, model: str) -> Json | None:
    """Return a block as a part without a name, as an engine of the user's takes it: in lm15's types."""
    part = part_of_question(block)
    return None if part is None else {key: value for key, value in part.items() if key != "name"}


def named_chat_block(block: Json, model: str) -> Json | None:
    """Return a block as DSPy writes it; a file with a name and as a data URI, which OpenAI asks for."""
    part = part_of_chat(block) if block.get("type") == "file" else None
    if part is None or "data" not in part:
        return as_written(block, model)
    return chat_block({**part, "type": "file"}, model)


def only(*kinds: str) -> Callable[[Json, str], Json | None]:
    """Return what lets blocks of these kinds through, and of other files the text."""

    def block_or_text(block: Json, model: str) -> Json | None:
        if block.get("type") in kinds:
            return as_written(block, model)
        text = text_of_file(block)
        return None if text is None else {"type": "text", "text": text}

    return block_or_text


def text_of_file(block: Json) -> str | None:
    """Return a file of text, a document too, as text with its name; None for any other block."""
    part = part_of_question(block)
    text = None if part is None else decoded_text(part)
    if part is None or text is None:
        return None
    return f"{part['name']}\n{text}" if part.get("name") else text
