"""A forked program sees what a program in a fresh process sees."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import FORKS, run_fresh_python, run_python

pytestmark = pytest.mark.skipif(not FORKS, reason="programs are not forked here")

LOOK = """
import json, os, random, signal, sys, tempfile, threading, warnings
print(json.dumps({
    "argv": sys.argv,
    "path": sys.path,
    "folder": os.getcwd(),
    "variables": {name: value for name, value in os.environ.items() if name != "LC_CTYPE"},
    "main": [__name__, sys.modules["__main__"].__dict__ is globals()],
    "streams": [[s.encoding, s.errors, s.isatty()] for s in (sys.stdin, sys.stdout, sys.stderr)],
    "input": sys.stdin.read(),
    "sigadapt": sorted(name for name in sys.modules if name.startswith("sigadapt")),
    "threads": threading.active_count(),
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "temporary": tempfile.gettempdir(),
}))
print("an error", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""
VARIABLES = {**os.environ, "PYTHONIOENCODING": "utf-8", "SIGADAPT_NEW": "é", "PYTHONPATH": os.getcwd()}  # noqa: PTH109
del VARIABLES["PATH"]


@pytest.mark.parametrize("kind", ["code", "module", "script"])
def test_a_forked_program_sees_what_a_fresh_one_sees(kind: str, tmp_path: Path) -> None:
    (tmp_path / "look.py").write_text(LOOK, encoding="utf-8")
    words = {"code": ["-c", LOOK], "module": ["-m", "look"], "script": [str(tmp_path / "look.py")]}[kind]
    seen: list[dict[str, Any]] = []
    for run in (run_fresh_python, run_python):
        done = run(*words, "3", env=VARIABLES, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (3, "an error\n")
        seen.append(json.loads(done.stdout))
    fresh, forked = seen
    assert forked == fresh
    assert forked["variables"]["SIGADAPT_NEW"] == "é"
    assert forked["sigadapt"] == []


def test_a_forked_program_ends_as_a_fresh_one() -> None:
    leaves = "import atexit; atexit.register(print, 'left'); "
    for code, status in (("1 / 0", 1), ("import os; os.kill(os.getpid(), 9)", -9), ("", 0)):
        done = run_python("-c", leaves + code)
        assert done.returncode == status
        assert done.stdout == ("" if status == -9 else "left\n")
        assert ("ZeroDivisionError" in done.stderr) == (status == 1)


def test_another_hash_seed_is_a_fresh_process() -> None:
    code = "import sys; print('dspy' in sys.modules)"
    assert run_python("-c", code).stdout == "True\n"
    assert run_python("-c", code, env={**os.environ, "PYTHONHASHSEED": "5"}).stdout == "False\n"


def test_a_forked_program_reads_its_input() -> None:
    done = run_python("-c", "import sys; print(sys.stdin.read().upper(), sys.argv)", "a", stdin="größe\n" * 3)
    assert done.stdout == "GRÖSSE\n" * 3 + " ['-c', 'a']\n"
    assert done.args[0] == sys.executable
