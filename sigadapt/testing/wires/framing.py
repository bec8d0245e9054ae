"""Write the events of a stream as bytes: server-sent events or JSON lines.

Sources: the HTML standard, "Server-sent events"; Ollama's API documentation, "Streaming".
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from sigadapt.testing.answers import dumps

Event: TypeAlias = Mapping[str, Any]

SSE: str = "text/event-stream"
JSON_LINES: str = "application/x-ndjson"


def sse(events: Iterable[Event]) -> Iterator[bytes]:
    """Write server-sent events that have only data."""
    for event in events:
        yield f"data: {dumps(event)}\n\n".encode()


def named_sse(events: Iterable[Event]) -> Iterator[bytes]:
    """Write server-sent events that are named by the event's `type`."""
    for event in events:
        yield f"event: {event['type']}\ndata: {dumps(event)}\n\n".encode()


def json_lines(events: Iterable[Event]) -> Iterator[bytes]:
    """Write one JSON object on each line."""
    for event in events:
        yield f"{dumps(event)}\n".encode()
