"""What a page may show: links that a browser can only open, files it can only display, errors by their type.

Models, tools and servers write all of these, so each is allowed by a list and never refused by one.
"""

import json
import re
from collections.abc import Callable
from inspect import iscoroutine
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from sigadapt.json_values import Json, is_array, is_object
from sigadapt.runs.watching import jsonable
from sigadapt.signatures.calls import InvalidToolCall
from sigadapt.signatures.tool_results.tool_result import ToolResult

ErrorText = Callable[[BaseException], str]
"""Returns what a page reads of an error."""

UNKNOWN_TYPE = "application/octet-stream"
_MEDIA_TYPES = frozenset(
    {
        *("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"),
        *("audio/mpeg", "audio/wav", "audio/ogg", "video/mp4", "video/webm"),
        *("application/pdf", "text/plain", "text/csv"),
    }
)
"""Types that no browser runs as a program. SVG and HTML are none: they may hold scripts."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_TOOL_ERROR = "ToolError"


def type_of_error(error: BaseException) -> str:
    """Return the name of an error's type, without its message."""
    return type(error).__name__


def words_of_error(error: BaseException, error_text: ErrorText) -> str:
    """Return what `error_text` says of an error; its type, if that fails or says nothing."""
    try:
        text: object = error_text(error)
    except Exception:  # noqa: BLE001  (an error of the text costs no row)
        text = None
    if iscoroutine(text):
        text.close()
    return text if isinstance(text, str) and text else type_of_error(error)


def words_of_failure(result: ToolResult, error_text: ErrorText) -> str:
    """Return what a page reads of a failed result: the type alone, since the message may hold secrets."""
    name = result.error_type or _TOOL_ERROR
    return words_of_error(type(name, (Exception,), {})(), error_text)


def words_of_bad_call(call: InvalidToolCall) -> str:
    """Return what is wrong with a call, in sigadapt's words."""
    return f"{call.code}: {call.message}"


def words_of_value(value: Any) -> str:
    """Return a value as a page shows it: a text as it is, anything else as JSON."""
    plain = jsonable(value)  # of a date, too, the text
    return plain if isinstance(plain, str) else json.dumps(without_nan(plain))


def without_nan(value: Any) -> Any:
    """Return plain data with null for numbers that JSON does not have, as the model and the log have it."""
    if isinstance(value, float) and not isfinite(value):
        return None
    if is_object(value):
        return {key: without_nan(member) for key, member in value.items()}
    return [*map(without_nan, value)] if is_array(value) else value


def safe_link(url: str | None) -> str | None:
    """Return an address that a page may link to: `http` or `https`, with a host; None for any other."""
    if not url or any(character <= " " or character == "\x7f" for character in url):
        return None  # a browser drops tabs and line ends: "java\nscript:" runs
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None


def safe_media_type(media_type: str | None) -> str:
    """Return a media type that no browser runs; bytes for any other."""
    return media_type if media_type in _MEDIA_TYPES else UNKNOWN_TYPE


def address_of_file(file: Any) -> str | None:
    """Return where a page finds a file: a link, or its bytes as a `data:` address; None for neither."""
    if file.url:
        return safe_link(file.url)
    if file.data and _BASE64.fullmatch(file.data):
        return f"data:{safe_media_type(file.media_type)};base64,{file.data}"
    return None


def shown_file(file: Any) -> Json:
    """Return a file as plain data, without an address or a type that a browser would run."""
    shown: Json = file.model_dump(exclude_none=True)
    address = address_of_file(file)
    for member in ("url", "data"):
        if member in shown and address is None:
            del shown[member]
    if file.media_type is not None:
        shown["media_type"] = safe_media_type(file.media_type)
    return shown


def shown_source(source: Any) -> Json:
    """Return a source as plain data, without a link that a page must not follow."""
    shown: Json = jsonable(source)
    if "url" in shown and safe_link(source.url) is None:
        del shown["url"]
    return shown
