"""Files that a user sends with a message: in the parts of both protocols, and as a page shows them again.

Only a file that is in the body itself is read: its bytes as base64, of a type that no browser runs.

    AI SDK:  {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBO...", ...}
    AG-UI:   {"type": "image", "source": {"type": "data", "value": "iVBO...", "mimeType": "image/png"}}
             {"type": "binary", "mimeType": "image/png", "data": "iVBO...", "filename": "a.png"}
"""

import re
from dataclasses import dataclass
from typing import Any

from sigadapt.schemas.json_values import Json, cut, is_object
from sigadapt.ui.page.page_values import UNKNOWN_TYPE, safe_media_type

MOST_BYTES = 10_000_000
"""Of the files of one message, as base64."""
_ADDRESS = re.compile(r"data:([\w.+/-]+);base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True)
class PageFile:
    """A file of a message: its type, its bytes as base64, and its name if the page gave one."""

    media_type: str
    data: str
    name: str | None = None

    @property
    def address(self) -> str:
        """The file as a `data:` address."""
        return f"data:{self.media_type};base64,{self.data}"


def is_file_part(part: Json) -> bool:
    """Return whether a part of a user's message is a file."""
    return part.get("type") != "text" and any(name in part for name in ("url", "source", "data", "mediaType"))


def file_of(part: Json) -> PageFile | str:
    """Return the file in a part; a text says why it is not taken."""
    name = part.get("filename")
    source = part.get("source")
    members = source if is_object(source) else part
    kind: object = members.get("mediaType") or members.get("mimeType")
    data: object = members.get("value") or members.get("data")
    address = part.get("url") or members.get("url")
    if isinstance(address, str):
        match = _ADDRESS.match(address)
        if match is None:
            return "a file is sent as a data: address in base64, never as a link"
        kind, data = match[1], address[match.end() :]
    if not isinstance(kind, str) or safe_media_type(kind) == UNKNOWN_TYPE:
        return f"files of the type {cut(repr(kind))} are not taken"
    if not isinstance(data, str) or len(data) > MOST_BYTES:
        return f"a file is longer than {MOST_BYTES:,} bytes of base64, or none"
    if not _BASE64.fullmatch(data):
        return "the bytes of a file are no base64"
    return PageFile(kind, data, name if isinstance(name, str) else None)


def ai_sdk_part(file: PageFile) -> Json:
    """Return a file as a part of a message of `useChat`."""
    named = {} if file.name is None else {"filename": file.name}
    return {"type": "file", "mediaType": file.media_type, "url": file.address, **named}


def ag_ui_part(file: PageFile) -> Json:
    """Return a file as a part of a message of AG-UI."""
    kind = file.media_type.partition("/")[0]
    source = {"type": "data", "value": file.data, "mimeType": file.media_type}
    return {"type": kind if kind in {"image", "audio", "video"} else "document", "source": source}


def saved_file(file: PageFile) -> Json:
    """Return a file as an event keeps it."""
    return {"media_type": file.media_type, "data": file.data, "name": file.name}


def kept_file(saved: Any) -> PageFile:
    """Return a file that an event keeps."""
    return PageFile(saved["media_type"], saved["data"], saved.get("name"))
