"""Real conversations: gold beside the benchmark's own verdicts, and two models in known places."""

import os
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.logs import KINDS, talks, two_models, verdicts

FOLDER = Path(os.environ.get("SIGADAPT_CORPUS", ""), "talks")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="SIGADAPT_CORPUS names no folder with conversations"),
]


def test_gold_beside_the_verdicts() -> None:
    """logs: The gold of a row is the call that was right"""
    by_verdict = verdicts(talks())  # each conversation is one, and no line is unread
    for each in by_verdict.values():
        assert each.confirmed > 0.8 * each.answers
    passed, failed = by_verdict[True], by_verdict[False]
    assert failed.failed / failed.answers > 2 * passed.failed / passed.answers


def test_two_models_in_known_places() -> None:
    """logs: Where a model leaves the record is said by code"""
    two = two_models(talks())
    assert two.adopted.conversations == 40
    follows, errs = two.runs
    assert follows.left == []
    planted = Counter(KINDS[kind] for _, kind in two.planted.values())
    assert Counter(departure.code for departure in errs.left) == planted
    assert len(errs.left) == len(two.planted) >= 18
    first_model, second_model = two.comparison.models
    assert 0 < first_model.same_call - second_model.same_call <= len(two.planted)
