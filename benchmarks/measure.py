"""Taking times side by side, and putting them into tables.

A machine's speed drifts by half within minutes, so a ratio of two times is worth something only if they were
taken in turn. That is why no runner of separate benchmarks (pytest-benchmark, pyperf) is used here: every
function of a comparison is called once a round, and its processor time is the median of its rounds.
"""

import gc
import random
import statistics
import textwrap
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

_FEWEST = 7  # rounds


class Table(NamedTuple):
    """One comparison: a title, a sentence or two about it, the columns and the rows."""

    title: str
    told: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table as a part of a section."""
        ruled = ["---", *["---:"] * (len(self.head) - 1)]
        lines = "\n".join(f"| {' | '.join(row)} |" for row in (self.head, ruled, *self.rows))
        told = textwrap.fill(self.told, 116, break_long_words=False, break_on_hyphens=False)
        return f"### {self.title}\n\n{told}\n\n{lines}\n"


def medians(functions: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """The median processor seconds that each function takes, called in turn for about so many seconds in all.

    With no seconds each is called once, to see that it works.
    """
    taken: list[list[float]] = [[] for _ in functions]
    order, drawn = [*zip(functions, taken, strict=True)], random.Random(0)  # noqa: S311  (no secret)
    end, fewest = time.perf_counter() + seconds, _FEWEST if seconds else 1
    while time.perf_counter() < end or len(taken[0]) < fewest:
        gc.collect()
        gc.disable()
        for _ in range(25 if len(taken[0]) >= fewest else 1):
            take_turns(order, drawn)
        gc.enable()
    return [statistics.median(times) for times in taken]


def take_turns(
    order: list[tuple[Callable[[], object], list[float]]], drawn: random.Random, in_a_row: int = 1
) -> None:
    """Call each function once, or so many times in a row, and add the processor seconds of one call.

    The order is drawn anew, so that nobody always pays for the garbage of the same one.
    """
    drawn.shuffle(order)
    for function, seconds in order:
        start = time.process_time()
        for _ in range(in_a_row):
            function()
        seconds.append((time.process_time() - start) / in_a_row)


def micro(seconds: float) -> str:
    """A time in microseconds."""
    return f"{seconds * 1e6:,.1f} µs" if seconds < 10e-6 else f"{seconds * 1e6:,.0f} µs"


def times(ratio: float) -> str:
    """A ratio."""
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"


def resident() -> int:
    """The bytes of memory that this process holds; 0 on a system that does not say as Linux does."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * 4096 if status.exists() else 0
