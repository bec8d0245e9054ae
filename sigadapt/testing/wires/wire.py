"""What each format of a wire has, and the row that it has in the table of wires."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from sigadapt.json_values import is_array
from sigadapt.providers.wire.values import objects
from sigadapt.testing.answers import Answer, Received, dumps

Event: TypeAlias = Mapping[str, Any]

SSE: str = "text/event-stream"


def sse(events: Iterable[Event]) -> Iterator[bytes]:
    """Write server-sent events that have only data."""
    for event in events:
        yield f"data: {dumps(event)}\n\n".encode()


def named_sse(events: Iterable[Event]) -> Iterator[bytes]:
    """Write server-sent events that are named by the event's `type`."""
    for event in events:
        yield f"event: {event['type']}\ndata: {dumps(event)}\n\n".encode()


def calls_made(request: Received) -> int:
    """Count the calls that the conversation in a request holds, on any wire whose calls have ids."""
    messages = request.body.get("messages") or request.body.get("input")
    count = 0
    for row in objects(messages):
        for block in (row, *objects(row.get("content"))):
            count += block.get("type") in ("function_call", "tool_use")
        calls = row.get("tool_calls")
        if is_array(calls):
            count += len(calls)
    return count


class Format(Protocol):
    """A module of pure functions for one provider's format."""

    PATH: re.Pattern[str]  # of the paths that it serves, query included; may have a group `model`
    STREAM_TYPE: str  # the content type of its streams

    def streams(self, path: str, body: Mapping[str, Any]) -> bool:
        """Say whether the request asks for a stream."""
        ...

    def render(self, answer: Answer, request: Received) -> dict[str, Any]:
        """Render an answer as a whole body."""
        ...

    def stream(self, answer: Answer, request: Received) -> Iterable[Event]:
        """Render an answer as the events of a stream."""
        ...

    def encode(self, events: Iterable[Event]) -> Iterator[bytes]:
        """Write the events as bytes."""
        ...

    def failure(self, status: int, message: str) -> dict[str, Any]:
        """Render an error in the provider's error shape."""
        ...


@dataclass(frozen=True, slots=True)
class Wire:
    """A wire format and the `dspy.LM` settings that reach it (measured on dspy 3.4.1, litellm 1.106).

    Args:
        name: its name, as in `base_url(name)`.
        format: the module that renders it.
        model: a model name for `dspy.LM`.
        suffix: the path after the provider's address in `dspy.LM(api_base=...)`.
        options: the other arguments that `dspy.LM` needs for this wire.
    """

    name: str
    format: Format
    model: str
    suffix: str = ""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
