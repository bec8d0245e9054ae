"""Events of a stream that are longer than lm15 reads: a line of 64 KiB, and an event of 1 MiB.

The last event of a Responses stream holds the whole answer, and an event of Gemini may hold a picture, so
both are often longer. In their place, lm15's parser of lines gets a short event with a name, and the parser
of events asks for the text by that name (`text_of`). An event of more than 32 MiB is refused (bounded), and
DSPy does not ask again after this error, as the answer would be the same.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from dspy import lm15

_LM15_READS = 48 * 1024  # bytes of an event that lm15 is sure to read: below the limit for one line

LONGEST = 32 * 1024 * 1024
"""The most bytes that an event may have."""


class LongEvents:
    """A transport of lm15, sync or async, whose one response hides long events behind short ones."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._texts: dict[str, str] = {}
        self._event: list[bytes] = []  # the lines of one event, as far as they have arrived
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def stream(self, request: Any) -> Any:
        """Return the context of a response, as lm15's transport does."""
        opening = self._transport.stream(request)
        return self._aopened(opening) if hasattr(opening, "__aenter__") else self._opened(opening)

    def text_of(self, data: str) -> str:
        """Return the text of a long event by its name; any other text unchanged."""
        return self._texts.pop(data, data) if self._texts else data

    @contextmanager
    def _opened(self, opening: Any) -> Generator[Any]:
        with opening as response:
            lines = response.iter_lines()
            response.iter_lines = lambda: self._shortened(lines)
            yield response

    @asynccontextmanager
    async def _aopened(self, opening: Any) -> AsyncGenerator[Any]:
        async with opening as response:
            lines = response.aiter_lines()
            response.aiter_lines = lambda: self._ashortened(lines)
            yield response

    def _shortened(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            yield from self.take(line)
        yield from self._ended()

    async def _ashortened(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            for each in self.take(line):
                yield each
        for each in self._ended():
            yield each

    def take(self, line: bytes) -> list[bytes]:
        """Return the lines to pass on after this one: those of the event that it ends."""
        self._event.append(line)
        self._size += len(line)
        if self._size > LONGEST:
            raise lm15.ProviderError(f"an event of the stream is longer than {LONGEST >> 20} MiB")
        return [] if line.strip(b"\r\n") else self._ended()

    def _ended(self) -> list[bytes]:
        """Return the lines of the event that has ended, or of the short one that stands for it."""
        event, size = self._event, self._size
        self._event, self._size = [], 0
        if size <= _LM15_READS:
            return event
        lines = [line.decode("utf-8", "replace").rstrip("\r\n") for line in event]
        data = [line.removeprefix("data:").removeprefix(" ") for line in lines if line.startswith("data:")]
        if not data:
            return [b"\n"]  # a comment, or an event without data
        name = f"sigadapt long event {len(self._texts)}"
        self._texts[name] = "\n".join(data)
        others = [line for line in event if line.startswith(b"event:") and len(line) < _LM15_READS]
        return [*others, f"data: {name}\n".encode(), b"\n"]
