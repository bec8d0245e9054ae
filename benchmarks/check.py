"""The benchmarks run, and what they count is right; no time is looked at.

    python -m pytest benchmarks/check.py

It lies beside the tests because it takes half a minute.
"""

import importlib
import os
import tempfile
from typing import Any

import pytest

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # as for the tests: nothing leaves this machine
os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
os.environ["DSPY_CACHEDIR"] = tempfile.mkdtemp(prefix="sigadapt-dspy-cache-")


def part(name: str) -> Any:
    """A part of the benchmarks, imported after what is set above."""
    return importlib.import_module(f"benchmarks.{name}")


@pytest.mark.parametrize(
    "name", ["wholecall", "streamed", "adapters", "agents", "decoding", "starting", "concurrency", "memory"]
)
def test_a_part_of_the_benchmarks_runs(name: str) -> None:
    """call-cost: What a call costs is measured."""
    for table in part(name).tables(0.0):
        assert table.rows
        assert all(len(row) == len(table.head) for row in table.rows), table.title
        if name == "concurrency":
            assert {row[-1] for row in table.rows} == {"300 of 300"}


def test_the_guide_of_large_tool_sets_has_what_is_sent() -> None:
    """call-cost: What a call costs is measured."""
    large = part("large_tool_sets")
    page = large.PAGE.read_text(encoding="utf-8")
    for way, (size, tokens) in large.weights().items():
        assert f"| {way} | {size:,} | {tokens:,} |" in page


@pytest.mark.parametrize("who", ["parallel", "ray"])
def test_a_batch_is_measured(who: str) -> None:
    """call-cost: What a call costs is measured."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'sigadapt[ray]'")
    found = part("batch").apart(who, 1, 300)
    assert found.rows == 300
    assert 0 < found.before <= found.peak


def test_a_small_soak_accounts_for_every_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """call-cost: Every answer of a soak is accounted for."""
    assert part("soak").run(1_000, minutes=5) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Accounted for: 1,000; mismatches: 0." in printed
