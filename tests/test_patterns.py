"""No pattern of the package, and no reading of a call, takes more time than its text's length allows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import HANGS

from sigadapt import ChatAdapter

SCRIPT = Path(__file__).with_name("pattern_load.py")
ROOT = SCRIPT.parents[1]


@pytest.mark.slow
@pytest.mark.parametrize("what", [[], ["formats"]], ids=["patterns", "formats"])
def test_time_grows_with_length(what: list[str]) -> None:
    """text-calls: Time grows with length."""
    paths = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(  # noqa: S603
        [sys.executable, SCRIPT, *what],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=HANGS,  # a match of `re` cannot be interrupted
        check=False,
    )
    *faults, count = done.stdout.splitlines() or [done.stderr]
    assert faults == []
    assert count.split()[-2:] == ["0", "faults"]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a \n\n[[ ## completed ## ]]\n ", "a "),
        ("\n [[ ## completed ## ]]", ""),
        ("a [[ ## completed ## ]]", "a [[ ## completed ## ]]"),
        ("a" + "\n" * 100_000 + "b", "a" + "\n" * 100_000 + "b"),
    ],
)
def test_the_marker_of_an_end_is_taken_away(text: str, plain: str) -> None:
    """text-calls: Time grows with length."""
    assert ChatAdapter().plain(text) == plain
