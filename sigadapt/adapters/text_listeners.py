"""Send plain text to the listeners on the one text output while an answer streams.

DSPy's listeners wait for the text that marks a field. A model with tools often answers in plain text, which
becomes the one text output (`outputs.py`), and is sent to its listeners here. Rules:

 a. Text that begins like a marker is left to DSPy's listener. Any other text is sent as it comes, also beside
    calls, whose turn has the whole text in `ToolCalls.text`.
 b. If a marker follows all the same, it is not sent, and what it marks is.
 c. Text that could not be told from a marker until the answer ended is sent then.
"""

import copy
from collections.abc import Iterator
from typing import Any

from sigadapt.adapters.output_format import CHAT_MARKER
from sigadapt.dspy_boundary.internals import StreamResponse, all_listeners, listeners_of

_ENDS = {CHAT_MARKER: CHAT_MARKER.format("completed"), "<{}>": "</{}>"}


class TextSubscription:
    """The listeners to the plain text of one model call, for the one text output and its marker."""

    def __init__(self, field: str, marker: str) -> None:
        self._listeners: list[Any] = list(listeners_of(field)) if marker else []
        self._marker = marker.format(field)
        end = _ENDS.get(marker)
        self._start = marker.format(field) if end else "{"
        self._markers = (self._start, end.format(field)) if end else ()
        self._buffer = self._line = ""  # what is held; and the first character of what was sent of this line
        self._is_plain: bool | None = None
        self._are_alone = len(self._listeners) == len(all_listeners())
        self.takes_all = False  # the text is plain and nobody else listens: DSPy's half has nothing to find

    def on_text(self, text: str) -> Iterator[Any]:
        """Yield the `StreamResponse`s to send after a piece of text."""
        if not self._listeners or self._is_plain is False:
            return
        self._buffer += text
        if self._is_plain is None:
            self._decide()
        if self._is_plain:
            yield from self._send(self._ready())

    def on_end(self, *, goes_on: bool = False) -> Iterator[Any]:
        """Yield what is left to send when the answer ends; a paused turn goes on with another answer."""
        is_open = self._is_plain is None and bool(self._buffer.strip()) and self._marker not in self._buffer
        if self._is_plain or is_open:
            yield from self._send(self._buffer + "\n\n" * goes_on, is_last=not goes_on)

    def _decide(self) -> None:
        start = self._buffer.lstrip()
        if not start or self._start.startswith(start) or (not self._markers and start[0] in "{[`"):
            return  # `on_end` knows
        self._is_plain = not start.startswith(self._start)
        self.takes_all = self._is_plain and self._are_alone

    def _ready(self) -> str:
        """Take the text that is no part of a marker off what is held."""
        size = 0
        if self._start[0] in self._buffer:  # so does every marker begin
            for marker in self._markers:
                self._buffer = self._without(marker)
            size = max((overlap(self._buffer, marker) for marker in self._markers), default=0)
        ready = self._buffer[: len(self._buffer) - size]
        self._buffer = self._buffer[len(ready) :]
        line = f"{self._line}{ready}".rpartition("\n")[2]
        self._line = line.strip()[:1]
        return ready

    def _without(self, marker: str) -> str:
        """Return what is held without a marker, which DSPy's chat form has only where a line begins."""
        if not marker.startswith("[["):
            return self._buffer.replace(marker, "")
        lines = f"{self._line}{self._buffer}".split("\n")
        for number, line in enumerate(lines):
            if line.lstrip().startswith(marker):
                lines[number] = line.replace(marker, "", 1)
        return "\n".join(lines)[len(self._line) :]

    def _send(self, text: str, *, is_last: bool = False) -> Iterator[Any]:
        if not text and not is_last:
            return
        for listener in self._listeners:
            yield response_to(listener, text, is_last=is_last)


def response_to(listener: Any, chunk: Any, *, is_last: bool) -> Any:
    """Return what a listener gets, and end DSPy's own part of it: then the prediction may be left out."""
    listener.stream_start = listener.stream_end = True
    return StreamResponse(listener.predict_name, listener.signature_field_name, chunk, is_last_chunk=is_last)


def overlap(text: str, marker: str) -> int:
    """Return how many characters at the end of a text could begin a marker."""
    sizes = range(min(len(text), len(marker) - 1), 0, -1)
    return next((size for size in sizes if marker.startswith(text[-size:])), 0)


def with_text(chunk: Any, text: str) -> Any:
    """Return a chunk of a chat completion with another text, and as it is apart from that."""
    chunk_copy = copy.deepcopy(chunk)
    chunk_copy["choices"][0]["delta"]["content"] = text
    return chunk_copy
