"""The parts of a result as content blocks of a chat message, and what the providers' blocks have in common.

A part has the form that `signatures/tool_results/content.py` describes. Source: OpenAI's chat completions
reference (content parts `text`, `image_url`, `input_audio` and `file` of a user message), read
2026-11-21. A tool message takes text alone there, so what is not text follows the results of the turn in
a user message.
"""

import base64
import mimetypes
import re

from sigadapt.schemas.json_values import Json, compact

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
