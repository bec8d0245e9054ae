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


@pytest.mark.parametrize("name", ["wholecall", "streamed", "adapters", "agents"])
def test_a_part_of_the_benchmarks_runs(name: str) -> None:
    """What a call costs is measured."""
    for table in part(name).tables(0.0):
        assert table.rows
        assert all(len(row) == len(table.head) for row in table.rows), table.title
