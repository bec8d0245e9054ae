"""ReactV2's outcomes under sigadapt's adapter beside those under DSPy's, on the same scripted model.

The conversations and the page are those of docs/make_react.py.
"""

import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from sigadapt.errors import CallCode

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "make_react.py"


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("make_react", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


REACT = loaded()
PAGE: str = REACT.PAGE.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """DSPy logs a traceback for each run that it gives up."""
    logger = logging.getLogger("dspy")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


def rows(way: str) -> dict[str, list[str]]:
    """The cells of one way's table on the page, by conversation."""
    section = PAGE.split(f"## {way.capitalize()}\n")[1].split("\n## ", maxsplit=1)[0]
    lines = [line.strip("| ").split(" |") for line in section.splitlines() if line.startswith("| ")]
    lines = [cells for cells in lines if cells[0] not in ("---", "conversation")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}


@pytest.mark.parametrize("column", REACT.COLUMNS, ids="-".join)
@pytest.mark.parametrize("way", REACT.WAYS)
def test_no_run_ends_worse_than_under_dspys_adapter(column: tuple[str, str], way: str):
    """conversations: ReActV2 ends no worse than under DSPy's adapter."""
    pairs: dict[str, Any] = REACT.measured(column, way)
    worse = {name: pair for name, pair in pairs.items() if pair.is_worse}
    assert worse.keys() <= {REACT.THINKING}
    assert pairs[REACT.THINKING].ours.cell() == "error 2"
    assert "cut off" in pairs[REACT.THINKING].ours.said
    if f"Measured with {REACT.versions()}." in PAGE:  # another DSPy or LiteLLM may do otherwise
        at = 1 + REACT.COLUMNS.index(column)
        page = rows(way)
        assert {name: page[name][at] for name in pairs} == {name: pair.cell() for name, pair in pairs.items()}


def test_the_conversations_have_every_fault():
    """conversations: ReActV2 ends no worse than under DSPy's adapter."""
    assert len(REACT.CONVERSATIONS) >= 30
    codes = {code for _, code in REACT.CONVERSATIONS.values() if code}
    # Two providers report malformed calls, in forms of their own: test_turns_without_an_answer.py. Text that
    # cannot be read is a bad call only where calls are read from text: tests/text/.
    assert codes == set(get_args(CallCode)) - {"malformed_call", "unread_call"}
    assert list(rows("called")) == list(REACT.CONVERSATIONS)


def test_the_page_counts_what_its_tables_hold():
    """conversations: ReActV2 ends no worse than under DSPy's adapter."""
    cells = [cell for way in REACT.WAYS for row in rows(way).values() for cell in row[1:] if cell]
    assert f"Of {len(cells):,} runs" in PAGE
    thinking = [cell for way in REACT.WAYS for cell in rows(way)[REACT.THINKING][1:]]
    worse = [cell for cell in thinking if not cell.startswith("error")]  # both are shown where they differ
    assert f"**{len(worse)}** ended worse" in PAGE
    sums = [
        line.strip("| ").split(" | ")
        for line in PAGE.splitlines()
        if line.startswith(("| sigadapt", "| DSPy's"))
    ]
    for at, row in ((0, sums[0]), (-1, sums[1])):
        ends = [cell.replace("*", "").split(", ")[at].split()[0] for cell in cells]
        assert [f"{ends.count(end):,}" for end in ("answer", "guess", "error")] == row[1:4]
