"""Run the independent checks, two at a time: `python3 tasks.py conformance` calls this with their folder.

They are kept apart from the project's own tests, and aren't in this repository.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from environments import ROOT, say

# All but `once`: of two submits in one answer, the first has streamed, and a page cannot take it back.
PAGES = "programs,inner,logged,goes,whole,ag-ui,cut,unread,files,deliver,stop,attach,reason,store"
# Each must hold whole.
CONFORMANCE = (
    *("wire.py", "tools.py", "faults.py", "turns.py", "trust.py", "home.py", "safe.py", "text.py"),
    *("answers.py", "ends.py", "talk.py", "users.py", "secure.py", "told.py", "quoted.py", "runs.py"),
    *("large.py", "made.py", "logs.py", "seams.py", "combos.py", "agents.py", "context.py", "chats.py"),
    *("together.py", "attacked.py", "tracing.py", "templates.py", "models.py"),
    f"pages.py --only {PAGES}",
    # Its group `text` compares with a reading that ends an argument at the first `)` inside of a string.
    "talks.py --only answers,streams,read,sent",
    "outsider.py",
)
# It takes times, with bounds far above them: it runs alone, and may try as often as this.
TIMED = {"steps.py": 3}
# It takes times, too, but near its bounds: one tree gets 0.23 and 0.30 within a minute. It is printed and not
# judged. What it measures is judged as counted work, by tests/adapters/test_call_cost.py.
PRINTED = "bench.py"
# It compares 200 calls of 0.4 s with 50, and a full garbage collection of all that DSPy imports takes 0.3 s.
# Whether one falls into either is chance, so none does.
UNCOLLECTED = "attacked.py"
WITHOUT_FULL_COLLECTIONS = """
import gc, os, runpy, sys
gc.set_threshold(700, 10, 10_000)
del sys.argv[0]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""
LONGEST = 900
"""How many seconds a check may take; the longest takes three minutes."""


def main(folder: str) -> None:
    """Run all checks of a folder, and end with the names of those that aren't whole."""
    lacking = [
        script for script in (*TIMED, *CONFORMANCE, PRINTED) if not Path(folder, script.split()[0]).is_file()
    ]
    if lacking:
        sys.exit(f"SIGADAPT_CHECKS ({folder}) is no folder of the independent checks: it lacks {lacking[0]}")
    short = short_of(partial(is_whole, folder))
    is_whole(folder, PRINTED)
    if short:
        sys.exit(f"not whole: {', '.join(short)}")


def short_of(is_whole: Callable[[str], bool]) -> list[str]:
    """Return the checks that don't hold, after another try of each that a check beside it may have slowed."""
    with ThreadPoolExecutor(2) as pool:
        verdicts = [*pool.map(is_whole, CONFORMANCE)]
    again = {script: 1 for script, holds in zip(CONFORMANCE, verdicts, strict=True) if not holds}
    tries = {**TIMED, **again}
    return [script for script, most in tries.items() if not any(is_whole(script) for _ in range(most))]


def is_whole(folder: str, script: str) -> bool:
    """Run one check with its options, print what it prints, and return whether it holds."""
    name, *options = script.split()
    if script in TIMED or script == PRINTED:
        forget_bytecode()
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    preface = ["-c", WITHOUT_FULL_COLLECTIONS] if name == UNCOLLECTED else []
    check = [sys.executable, *preface, str(Path(folder, name)), *options]
    try:
        done = subprocess.run(
            check, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        say(f"$ {script}\nno end after {LONGEST} seconds")
        return False
    say(f"$ {script}\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def forget_bytecode() -> None:
    """Remove the package's bytecode.

    bench.py takes the time of later imports, which should find bytecode as on a user's machine. To start
    without it keeps a full garbage collection of the script's own streams out of its row of 2 ms.
    """
    for cache in list((ROOT / "sigadapt").rglob("__pycache__")):
        shutil.rmtree(cache)


if __name__ == "__main__":
    main(sys.argv[1])
