"""ReactV2's outcomes under sigadapt's adapter beside those under DSPy's, on the same scripted model.

The conversations are those of benchmarks/outcomes.py, which writes the sums into docs/measured.md.
"""

import logging
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from sigadapt.errors import CallCode

pytestmark = pytest.mark.slow

REACT: Any = pytest.importorskip("benchmarks.outcomes")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """DSPy logs a traceback for each run that it gives up."""
    logger = logging.getLogger("dspy")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


COLUMNS = [
    pytest.param(
        column, id="-".join(column), marks=() if column == ("openai", "auto") else pytest.mark.nightly
    )
    for column in REACT.COLUMNS
]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("way", REACT.WAYS)
def test_no_run_ends_worse_than_under_dspys_adapter(column: tuple[str, str], way: str):
    """conversations: ReActV2 ends no worse than under DSPy's adapter."""
    pairs: dict[str, Any] = REACT.outcomes(column, way)
    worse = {name: pair for name, pair in pairs.items() if pair.is_worse}
    assert worse.keys() <= {REACT.THINKING}
    assert pairs[REACT.THINKING].ours.cell() == "error 2"
    assert "cut off" in pairs[REACT.THINKING].ours.said


def test_the_conversations_have_every_fault():
    """conversations: ReActV2 ends no worse than under DSPy's adapter."""
    assert len(REACT.CONVERSATIONS) >= 30
    codes = {code for _, code in REACT.CONVERSATIONS.values() if code}
    # Two providers report malformed calls, in forms of their own: test_turns_without_an_answer.py. Text that
    # cannot be read is a bad call only where calls are read from text: tests/text/.
    assert codes == set(get_args(CallCode)) - {"malformed_call", "unread_call"}
