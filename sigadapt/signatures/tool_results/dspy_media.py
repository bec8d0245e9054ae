"""DSPy's images, files and audio as parts of content: the one place that knows how DSPy writes them.

DSPy writes one of its types as blocks of a chat message, in JSON between two marks, in a text. A tool may
have got such a text from anywhere, so it is never read as an image at a URL, which some routes would
download, or as a file of the account.
"""

import base64
import mimetypes
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes

import jiter
from dspy.adapters.types.base_type import CUSTOM_TYPE_END_IDENTIFIER as _END
from dspy.adapters.types.base_type import CUSTOM_TYPE_START_IDENTIFIER as START

from sigadapt.dspy_boundary.contract import chat_block
from sigadapt.schemas.json_values import Json, is_array, is_object

Part: TypeAlias = Json
"""A part of content, as `content.py` lists them."""

MEDIA = frozenset({"image", "audio", "file"})


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
