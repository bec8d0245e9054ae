"""The checks of whole runs beside other libraries: a class follows from what was seen."""

import importlib
import re
import sys
from typing import Any

import pytest

pytest.importorskip("benchmarks.peers.cases")

CASES: Any = importlib.import_module("benchmarks.peers.cases")
CHECKS: Any = importlib.import_module("benchmarks.peers.checks")
RUNNER: Any = importlib.import_module("benchmarks.peers.__main__")
MEASURED: Any = importlib.import_module("benchmarks.measured")


def step(**found: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"answer": None, "error": "", "mark": "", "waiting": [], "ran": []}
    return {**empty, **found}


def test_a_call_that_cannot_be_meant_is_silent_where_it_ran() -> None:
    """The runs of evidence are judged by code."""
    ran: list[dict[str, Any]] = [{"name": "order", "args": {}}]
    check = CHECKS.never_runs()
    assert check(CHECKS.Facts([step(answer=CHECKS.DONE, ran=ran)], [[]])) == "silent"
    assert check(CHECKS.Facts([step(error="ValueError: not JSON")], [[]])) == "told"


def test_half_an_answer_without_a_word_is_silent() -> None:
    """The runs of evidence are judged by code."""
    check = CHECKS.cut_is_told("length")
    assert check(CHECKS.Facts([step(answer="Both cop")], [[]])) == "silent"
    assert check(CHECKS.Facts([step(answer="Both cop", mark="length")], [[]])) == "told"


def test_an_order_that_runs_twice_is_lost() -> None:
    """The runs of evidence are judged by code."""
    ran = [{"name": "order"}, {"name": "order"}]
    steps = [step(error="ServerError", ran=ran[:1]), step(answer=CHECKS.DONE, ran=ran)]
    assert CHECKS.goes_on(CHECKS.Facts(steps, [[], []])) == "lost"


def test_every_case_has_a_name_of_its_own_and_says_what_is_right() -> None:
    """The runs of evidence are judged by code."""
    cases = CASES.cases()
    assert len({(case.group, case.name) for case in cases}) == len(cases) >= 60
    assert all(case.right.endswith(".") for case in cases)


@pytest.mark.slow
def test_only_the_runs_of_the_page_are_lost_or_silent() -> None:
    """The runs of evidence are what sigadapt does."""
    page = MEASURED.section("peers")
    chosen = CASES.cases()
    found = RUNNER.measure("sigadapt", sys.executable, chosen)
    classes = {f"{case.group}: {case.name}": found[place][0] for place, case in enumerate(chosen)}
    rows = re.findall(r"^\| ([^|]+) \| (lost|silent) \| [^|]+ \|$", page, re.MULTILINE)
    assert {name: verdict for name, verdict in classes.items() if verdict in {"lost", "silent"}} == dict(rows)
