"""Rows of a history: what an event calls, and which results it brings, in whatever field and form."""

from typing import Any

import pytest

from sigadapt import ToolCalls, ToolResults
from sigadapt.signatures.transcript import later_round, rows_of

CALLS = ToolCalls([{"id": "c1", "name": "find", "args": {"city": "Rome"}}])
RESULTS = ToolResults.of(CALLS, ["sunny"])


@pytest.mark.parametrize("saved", [False, True])
def test_an_event_is_one_row(saved: bool) -> None:
    """conversations: Results as an input and results in a history give the same request."""
    event: dict[str, Any] = {"question": "?", "made": CALLS, "got": RESULTS, "answer": None}
    if saved:
        event |= {"made": CALLS.model_dump(), "got": RESULTS.model_dump()}
    [row] = rows_of([event])
    assert (row.event, row.calls, row.plain) == (event, CALLS, {"question"})
    assert [result.value for one in row.rounds for result in one.results] == ["sunny"]


def test_calls_of_an_example_may_be_plain_dicts() -> None:
    """conversations: Results as an input and results in a history give the same request."""
    [row] = rows_of([{"calls": [{"name": "find", "args": {"city": "Rome"}}]}], calls_field="calls")
    assert row.calls is not None
    assert [call.name for call in row.calls] == ["find"]
    [row] = rows_of([{"calls": [{"name": "find"}]}])
    assert row.calls is None


def test_results_come_with_the_next_event_that_brings_any() -> None:
    """conversations: Results as an input and results in a history give the same request."""
    first, _, last = rows_of([{"calls": CALLS}, {"question": "?"}, {"results": RESULTS}])
    assert first.calls is not None
    found = later_round(first.calls, first.rounds, [[], last.rounds])
    assert [result.value for result in found.results] == ["sunny"]
    assert last.rounds == []
