"""The deltas of a stream, as far as lm15 can put them together, and with its paragraphs.

It refuses a whole answer because of one call without a name, or with a number that JSON has not (`1e999`).
The calls themselves are read elsewhere. Two texts of an answer that something else separates get a blank line
between them, as in the whole answer: lm15 numbers the blocks, DSPy's chunks have no such numbers, and a
listener would find no mark that begins the second.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from dspy import lm15

from sigadapt.providers.wire.reading import Reading
from sigadapt.schemas.arguments import parse_arguments

NOT_JSON = "\0 no JSON"
"""A last fragment that makes lm15 keep the arguments as text. `CallTap` passes it over."""


def with_own_id(event: Any, sent: Any, key: str) -> Any:
    """Return an event of lm15 without the id of a call, unless what was sent has it under a key."""
    # lm15 takes the id of OpenAI's item for that of its call if there is none, and makes a text of any value.
    # The prediction's call has an id that is made, and each piece of it has to have the same.
    if event.type != "delta" or event.delta.type != "tool_call" or not event.delta.id:
        return event
    if _holds(sent, key, event.delta.id):
        return event
    return replace(event, delta=replace(event.delta, id=None))


def _holds(sent: Any, key: str, call_id: str) -> bool:
    """Return whether JSON has a member of this key and value."""
    pending: list[Any] = [sent]
    while pending:
        value = pending.pop()
        if value.__class__ is list:
            pending += value
        elif value.__class__ is dict:
            if value.get(key) == call_id:
                return True
            pending += value.values()
    return False


class CallDeltas:
    """The deltas of one stream's calls."""

    def __init__(self) -> None:
        self._unnamed: dict[int, list[Any]] = {}
        self._pieces: dict[int, list[str]] = {}

    def events_of(self, event: Any) -> list[Any]:
        """Return an event of lm15; the arguments of a call only when it has got its name."""
        if event.type == "end":
            return [*self.last(), event]
        delta: Any = event.delta if event.type == "delta" else None
        if delta is None or delta.type != "tool_call":
            return [event]
        if not delta.name and delta.part_index not in self._pieces:
            self._unnamed.setdefault(delta.part_index, []).append(event)
            return []
        events = [*self._unnamed.pop(delta.part_index, ()), event]
        self._pieces.setdefault(delta.part_index, []).extend(each.delta.input for each in events)
        return events

    def last(self) -> Iterator[Any]:
        """Yield what has to come before the end event, once."""
        pieces = self._pieces
        self._pieces = {}
        for index, texts in pieces.items():
            if any(texts) and not isinstance(parse_arguments("".join(texts)), dict):
                yield lm15.StreamDeltaEvent(delta=lm15.ToolCallDelta(input=NOT_JSON, part_index=index))


class Paragraphs:
    """The texts of one stream.

    Args:
        said_so_far: returns what has been read of the answer, for a provider that marks commentary, which is
            another text than the answer; None for any other.
    """

    def __init__(self, said_so_far: Callable[[], list[Reading]] | None) -> None:
        self._said_so_far = said_so_far
        self._block: int | None = None  # of the latest text

    def breaks_before(self, delta: Any) -> Iterator[Any]:
        """Yield the blank line before a delta of lm15, if its text begins a paragraph."""
        if delta.type != "text" or not delta.text:
            return
        block = self._block
        self._block = delta.part_index
        if block is None or delta.part_index <= block:
            return
        if delta.part_index > block + 1 or self._is_beside_commentary():
            yield lm15.StreamDeltaEvent(delta=lm15.TextDelta("\n\n", part_index=delta.part_index))

    def _is_beside_commentary(self) -> bool:
        if self._said_so_far is None:
            return False
        return any(reading.commentary and reading.text for reading in self._said_so_far())
