"""Turn the text of a stream into its events: server-sent events, NDJSON or a JSON array.

Rules:

 a. Server-sent events are read as in the WHATWG standard: lines end in CRLF, LF or CR, and a blank line ends
    an event. Comments and fields other than `data` are ignored. `[DONE]` ends the stream; the rest is not
    read.
 b. Text that begins with `{` or `[` is a sequence of JSON values, with or without an array around it
    (Ollama, Gemini).
 c. If the text ends inside an event, that event is left out: the stream ended early. Any other invalid JSON
    is an error.
 d. Bytes that are not UTF-8 become surrogate escapes, so that arguments with such bytes are refused instead
    of changed.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import jiter

from sigadapt.errors import UnreadableResponse
from sigadapt.schemas.json_values import Json, as_unicode, cut, is_object

EVENTS = "sigadapt_events"
"""The key of `provider_data` under which a stream's events are kept as text."""

BODY = "sigadapt_body"
"""The key of `provider_data` under which a body is kept as text that lm15 or LiteLLM cannot read."""

_DECODER = json.JSONDecoder()
_LINE_END = re.compile(r"\r\n|\n|\r")
_BETWEEN = re.compile(r"[\s,\[\]]*")


def events_of(stream: Any) -> list[Any]:
    """Return the events of a stream, in order."""
    if isinstance(stream, (str, bytes, bytearray)):
        return list(_decode(_text([stream])))
    if is_object(stream) or not hasattr(stream, "__iter__"):
        raise UnreadableResponse(
            f"expected a stream, got a {type(stream).__name__}",
            fix="Pass the events or the text; read an async stream into a list first.",
        )
    items: list[Any] = list(stream)
    if any(isinstance(item, (str, bytes, bytearray)) for item in items):
        return list(_decode(_text(items)))
    return items


def data_of(text: str) -> list[Json]:
    """Return the objects in the data of one server-sent event."""
    return list(_values(text, may_break_off=False))


def _text(pieces: list[Any]) -> str:
    if all(isinstance(piece, str) for piece in pieces):
        text = "".join(pieces)
    elif all(isinstance(piece, (bytes, bytearray)) for piece in pieces):
        # Bytes are joined first, because a character may be cut between two pieces.
        text = b"".join(pieces).decode("utf-8", "surrogateescape")
    else:
        raise UnreadableResponse("the stream mixes text or bytes with other pieces")
    return text.removeprefix("\ufeff")


def _decode(text: str) -> Iterator[Any]:
    # NDJSON (Ollama) and the JSON array of Gemini without `alt=sse` have no fields.
    if text.lstrip()[:1] in {"{", "["}:
        yield from _values(text, may_break_off=True)
        return
    for data, is_whole in _server_sent(text):
        # An event that a blank line ended is whole: what cannot be read there is broken, not cut.
        yield from _values(data, may_break_off=not is_whole)


def _server_sent(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the data of each server-sent event, and whether the event is complete."""
    data: list[str] = []
    for line in _LINE_END.split(text):
        field, _, value = line.partition(":")
        if field == "data":
            value = value.removeprefix(" ")
            if value.strip() == "[DONE]":
                break
            data.append(value)
        elif not line and data:
            yield "\n".join(data), True
            data = []
    if data:
        yield "\n".join(data), False


def _values(text: str, *, may_break_off: bool) -> Iterator[Any]:
    at = _after(_BETWEEN.match(text))
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            rest = text[at:]
            if may_break_off and _is_prefix(rest):
                return
            raise UnreadableResponse(
                f"the stream has invalid JSON ({error}): {cut(rest)}",
                fix="Pass the body unchanged; with an HTTP client, pass its bytes, not its lines.",
            ) from None
        if is_object(value):  # other values are heartbeats, not events
            yield value
        at = _after(_BETWEEN.match(text, end))


def _after(match: "re.Match[str] | None") -> int:
    return match.end() if match else 0


def _is_prefix(text: str) -> bool:
    """Return whether text is the beginning of a JSON value."""
    try:
        jiter.from_json(as_unicode(text).encode(), partial_mode=True)
    except ValueError:
        return False
    return True
