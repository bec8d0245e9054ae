"""A blank line between two texts of a streamed answer that something else separates, as in the whole answer.

lm15 numbers the blocks of an answer, and DSPy's chunks have no such numbers: the texts of two blocks would
run into one line, where no listener finds a mark that begins the second.
"""

from collections.abc import Callable, Iterator
from typing import Any

from dspy import lm15

from sigadapt.providers.wire.reading import Reading


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
