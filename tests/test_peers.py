"""The checks of whole runs beside other libraries: a class follows from what was seen."""

import importlib
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("benchmarks.peers.cases")

CASES: Any = importlib.import_module("benchmarks.peers.cases")
MEASURE: Any = importlib.import_module("benchmarks.peers.jobs.measure")
ROOT = Path(__file__).resolve().parent.parent


def step(**found: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"answer": None, "error": "", "mark": "", "waiting": [], "ran": []}
    return {**empty, **found}


def test_a_call_that_cannot_be_meant_is_silent_where_it_ran() -> None:
    """documentation: The runs of evidence are judged by code."""
    ran = [{"name": "order", "args": {}}]
    check = CASES.never_runs()
    assert check(CASES.Facts([step(answer=CASES.DONE, ran=ran)], [[]])) == "silent"
    assert check(CASES.Facts([step(error="ValueError: not JSON")], [[]])) == "told"


def test_half_an_answer_without_a_word_is_silent() -> None:
    """documentation: The runs of evidence are judged by code."""
    check = CASES.cut_is_told("length")
    assert check(CASES.Facts([step(answer="Both cop")], [[]])) == "silent"
    assert check(CASES.Facts([step(answer="Both cop", mark="length")], [[]])) == "told"


def test_an_order_that_runs_twice_is_lost() -> None:
    """documentation: The runs of evidence are judged by code."""
    ran = [{"name": "order"}, {"name": "order"}]
    steps = [step(error="ServerError", ran=ran[:1]), step(answer=CASES.DONE, ran=ran)]
    assert CASES.goes_on(CASES.Facts(steps, [[], []])) == "lost"


def test_every_case_has_a_name_of_its_own_and_says_what_is_right() -> None:
    """documentation: The runs of evidence are judged by code."""
    cases = CASES.cases()
    assert len({(case.group, case.name) for case in cases}) == len(cases) >= 60
    assert all(case.right.endswith(".") for case in cases)


def test_the_six_jobs_take_at_most_28_lines() -> None:
    """documentation: The runs of evidence are judged by code."""
    lines = MEASURE.lines_of(ROOT / "benchmarks" / "peers" / "jobs" / "sigadapt.py")
    assert set(lines) == {*MEASURE.JOBS, MEASURE.SHARED}
    assert sum(lines.values()) <= 28
