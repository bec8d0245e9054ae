"""The examples of batches, run as a user runs them: offline, on a provider of this machine."""

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from processes import run_python

pytestmark = pytest.mark.slow

pq: Any = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install '.[ray]'")

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
PARALLEL = "batch_parallel.py"
RAY = pytest.param(
    "batch_ray.py",
    marks=pytest.mark.skipif(
        importlib.util.find_spec("ray") is None, reason="ray is not installed: pip install '.[ray]'"
    ),
)


def command(example: str, folder: Path, rows: int, *options: str) -> list[str]:
    return [sys.executable, str(EXAMPLES / example), str(folder), "--rows", str(rows), *options]


def run(example: str, folder: Path, rows: int, *options: str) -> str:
    """Run an example, and return what it prints of its progress."""
    env = {**os.environ, "RAY_ADDRESS": ""}
    done = run_python(*command(example, folder, rows, *options)[1:], env=env)
    assert done.returncode == 0, done.stderr
    return done.stderr


def rows_in(folder: Path) -> list[dict[str, Any]]:
    return pq.read_table(folder).to_pylist()


def is_failed(number: int) -> bool:
    return number % 50 == 8


@pytest.mark.parametrize("example", [PARALLEL, RAY])
def test_a_second_run_does_what_is_missing(example: str, tmp_path: Path) -> None:
    """batches: A second run asks only what is missing.

    batches: A failure stays in its row.
    """
    folder = tmp_path / "answers"
    progress = run(example, folder, 60)
    assert "60/60" in progress
    run(example, folder, 110)
    rows = rows_in(folder)
    assert sorted(row["id"] for row in rows) == list(range(110)), (
        "no row is missing, and none was asked again"
    )
    assert {row["id"] for row in rows if row["error"]} == set(filter(is_failed, range(110)))
    failed = next(row for row in rows if row["id"] == 8)
    assert (failed["error"]["type"], failed["error"]["status"], failed["calls"]) == (
        "LMInvalidRequestError",
        "400",
        [],
    )
    for row in rows:
        calls = [(call["code"], call["arguments"], call["args_json"]) for call in row["calls"]]
        if row["id"] % 10 == 3:
            assert calls == [("invalid_json", '{"city": "', None)]
        elif not row["error"]:  # also the rows whose first request was refused with 503
            [(code, _, args)] = calls
            assert (code, json.loads(args)) == (None, {"city": f"city {row['id']}"})


def test_failed_rows_are_asked_again_when_asked_for(tmp_path: Path) -> None:
    """batches: A failure stays in its row."""
    run(PARALLEL, tmp_path, 60)
    before = rows_in(tmp_path)
    run(PARALLEL, tmp_path, 60, "--retry-failed")
    counted = Counter(row["id"] for row in rows_in(tmp_path))
    assert {number for number, count in counted.items() if count == 2} == {8, 58}
    assert len(before) == 60
    newest = max((row for row in rows_in(tmp_path) if row["id"] == 8), key=lambda row: row["asked_at"])
    assert newest["asked_at"] > max(row["asked_at"] for row in before)


def test_a_run_that_was_killed_goes_on(tmp_path: Path) -> None:
    """batches: A second run asks only what is missing."""
    killed = subprocess.Popen(command(PARALLEL, tmp_path, 3000), stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        while not list(tmp_path.glob("*.parquet")):
            assert killed.poll() is None
            time.sleep(0.01)
    finally:
        killed.kill()
        killed.wait()
    there = {row["id"] for row in rows_in(tmp_path)}
    assert 256 <= len(there) < 3000
    left = 600
    run(PARALLEL, tmp_path, left)
    counted = Counter(row["id"] for row in rows_in(tmp_path))
    assert set(counted) == there | set(range(left))
    assert set(counted.values()) == {1}
