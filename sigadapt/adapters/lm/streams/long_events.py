"""Events of a stream that are longer than lm15 reads.

lm15 refuses a line of more than 64 KiB and an event of more than 1 MiB. The last event of a Responses stream
holds the whole answer, and an event of Gemini may hold a picture, so both are often longer. `LongEvents`
stands before lm15's transport for one request. In the place of a long event, lm15's parser of lines gets a
short one with a name. The parser of events then asks for the text by that name (`text_of`).

An event of more than 32 MiB is refused (bounded). DSPy does not ask again after this error, as the answer
would be the same.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from dspy import lm15

_LM15_READS = 48 * 1024
"""Bytes of an event that lm15 is sure to read: below the limit for one line."""

LONGEST = 32 * 1024 * 1024
"""The most bytes that an event may have."""


class LongEvents:
    """A transport of lm15, whose responses hide long events behind short ones.

    Args:
        transport: lm15's transport, sync or async.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._texts: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def stream(self, request: Any) -> "_Opening":
        """Return the context of a response, as lm15's transport does."""
        return _Opening(self._transport.stream(request), self)

    def text_of(self, data: str) -> str:
        """Return the text of a long event by its name; any other text unchanged."""
        return self._texts.pop(data, data) if self._texts else data

    def short(self, event: list[bytes]) -> list[bytes]:
        """Return the lines of an event, or of the short one that stands for it."""
        size = sum(map(len, event))
        if size <= _LM15_READS:
            return event
        refuse_over(size)
        lines = [line.decode("utf-8", "replace").rstrip("\r\n") for line in event]
        data = [line.removeprefix("data:").removeprefix(" ") for line in lines if line.startswith("data:")]
        if not data:
            return [b"\n"]  # a comment, or an event without data
        name = f"sigadapt long event {len(self._texts)}"
        self._texts[name] = "\n".join(data)
        others = [line for line in event if line.startswith(b"event:") and len(line) < _LM15_READS]
        return [*others, f"data: {name}\n".encode(), b"\n"]


def refuse_over(size: int) -> None:
    """Refuse an event of more bytes than may be kept.

    Raises:
        lm15.ProviderError: which DSPy does not ask again after.
    """
    if size > LONGEST:
        raise lm15.ProviderError(f"an event of the stream is longer than {LONGEST >> 20} MiB")


class _Opening:
    """The context in which a response is open."""

    def __init__(self, context: Any, events: LongEvents) -> None:
        self._context = context
        self._events = events

    def __enter__(self) -> "_Response":
        return _Response(self._context.__enter__(), self._events)

    def __exit__(self, *error: object) -> Any:
        return self._context.__exit__(*error)

    async def __aenter__(self) -> "_Response":
        return _Response(await self._context.__aenter__(), self._events)

    async def __aexit__(self, *error: object) -> Any:
        return await self._context.__aexit__(*error)


class _Response:
    """A response of lm15's transport. Its lines are passed on event by event."""

    def __init__(self, response: Any, events: LongEvents) -> None:
        self._response = response
        self._events = events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    def iter_lines(self) -> Iterator[bytes]:
        """Yield the lines of the body."""
        event = _Event()
        for line in self._response.iter_lines():
            if event.add(line):
                yield from self._events.short(event.taken())
        yield from self._events.short(event.taken())

    async def aiter_lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of the body."""
        event = _Event()
        async for line in self._response.aiter_lines():
            if event.add(line):
                for each in self._events.short(event.taken()):
                    yield each
        for each in self._events.short(event.taken()):
            yield each


class _Event:
    """The lines of one event, as far as they have arrived."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> bool:
        """Add a line, and return whether it ends the event."""
        self._lines.append(line)
        self._size += len(line)
        refuse_over(self._size)
        return not line.strip(b"\r\n")

    def taken(self) -> list[bytes]:
        lines, self._lines, self._size = self._lines, [], 0
        return lines
