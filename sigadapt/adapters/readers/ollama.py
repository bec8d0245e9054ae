"""Ollama's native chat (`/api/chat`).

Sources: Ollama's API documentation and the types of its Python SDK.

Reasoning is `message.thinking`. Arguments are objects; a call has no id on older servers. Streamed, each
event holds whole calls, and the one with `done` is the last.
"""

from collections.abc import Iterable
from typing import Any

from sigadapt.adapters.readers.reading import (
    Json,
    RawCall,
    Reading,
    an_object,
    cut_last,
    decoded,
    is_text,
    joined,
    objects,
    word,
)

DIALECT = "ollama"


def reads(body: Json) -> bool:
    """Whether a body is a chat response."""
    return "done" in body and "message" in body


def read(body: Json) -> list[Reading]:
    """The one reading of a chat response."""
    message = an_object(body.get("message"))
    finish = word(body.get("done_reason"), {})
    calls = [_call(call) for call in objects(message.get("tool_calls"))]
    text, thinking = message.get("content"), message.get("thinking")
    return [
        Reading(
            text if is_text(text) else None,
            thinking if is_text(thinking) else None,
            cut_last(calls, finish),
            finish,
        )
    ]


def _call(call: Json) -> RawCall:
    function = an_object(call.get("function"))
    return (call.get("id"), function.get("name"), decoded(function.get("arguments")))


def opens(event: Json) -> bool:
    """Whether an event is one of a streamed chat response."""
    return reads(event)


def join(events: Iterable[Json]) -> Json:
    """The chat response that the stream's events amount to."""
    body: Json = {"done": False}
    messages: list[Json] = []
    for event in events:
        body.update(event)
        messages.append(an_object(event.get("message")))
    whole: Json = {}
    for message in messages:
        whole.update(message)
    calls: list[Any] = [call for message in messages for call in objects(message.get("tool_calls"))]
    for key in ("content", "thinking"):
        whole[key] = joined(message.get(key) for message in messages)
    return {**body, "message": {**whole, "tool_calls": calls}}
