"""The section on faulty answers: its grid is what sigadapt does today, and its sums are right."""

import importlib
import re
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("benchmarks.grid")

PAGE: str = importlib.import_module("benchmarks.measured").section("faults")
GRID: Any = importlib.import_module("benchmarks.grid")
CELLS: list[Any] = list(importlib.import_module("benchmarks.faulty").cells())


def totals(who: str) -> list[int]:
    (row,) = re.findall(rf"^\| {who} \| ([\d |]+) \|$", PAGE, re.MULTILINE)
    return [int(number) for number in row.split(" | ")]


@pytest.mark.slow
def test_the_grid_is_what_sigadapt_does() -> None:
    """The grid of evidence is what sigadapt does."""
    found: Counter[str] = Counter()
    for sent in CELLS:
        what = GRID.verdict(sent, GRID.outcome(sent, "sigadapt"))
        found[what] += 1
        known = sent.row.name == "a key twice" and (sent.wire, sent.streamed) != ("anthropic", True)
        assert what in ({"right"} if sent.row.sound else {"told", "silent"} if known else {"told"}), sent
    assert totals("sigadapt") == [len(CELLS), *(found[name] for name in GRID.CLASSES)]


@pytest.mark.parametrize("who", ["sigadapt", "DSPy's adapter", "pydantic-ai", "LangChain"])
def test_every_cell_is_counted(who: str) -> None:
    """The grid of evidence is what sigadapt does."""
    count, *classes = totals(who)
    assert count == sum(classes) <= len(CELLS)


def test_a_verdict_looks_at_what_reached_the_functions() -> None:
    """The grid of evidence is what sigadapt does."""
    cut = next(sent for sent in CELLS if sent.row.name.startswith("cut off inside"))
    paris, par = ("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Par"})
    assert GRID.verdict(cut, GRID.Outcome([par], "finish_reason='length'", None)) == "silent"
    assert GRID.verdict(cut, GRID.Outcome([], "finish_reason='length'", None)) == "in a field"
    assert GRID.verdict(cut, GRID.Outcome([], "", "Error: cut off by its limit")) == "told"
    assert GRID.verdict(cut, GRID.Outcome([], "", "TypeError: executing")) == "reason lost"
    pair = next(sent for sent in CELLS if sent.row.name == "good, bad, good")
    assert GRID.verdict(pair, GRID.Outcome([paris], "", "invalid JSON")) == "good call lost"
    opened = next(sent for sent in CELLS if sent.row.name == "an object left open")
    assert GRID.verdict(opened, GRID.Outcome([paris], "", None)) == "lenient"
