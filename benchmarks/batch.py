"""Batches: rows per second of their examples, and what the driver holds. Writes docs/scale_measured.md.

    python -m benchmarks.batch            # everything, in about ten minutes
    python -m benchmarks.batch ray 2 1000 # one measurement, as JSON: who, workers, rows

Each measurement is a process of its own, which is the driver, and asks a provider in another process.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from benchmarks.measure import Table, resident
from benchmarks.provider import provider
from benchmarks.tree import stamp
from sigadapt.testing import Answer, Call, Received

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = str(ROOT / "examples")
PAGE = ROOT / "docs" / "scale_measured.md"
FAST = 4_000
HELD = (10_000, 100_000)
MEGABYTE = 2**20

INTRODUCTION = """\
# Batches, measured

{stamp}

`python3 tasks.py scale` writes this page in about ten minutes. It runs `examples/batch_ray.py` and
`examples/batch_parallel.py`, explained in [guides/scale.md](guides/scale.md), with 16 requests at a time per
process. The provider has its own process and answers each request at once, with one call. Workers, driver
and provider share 2 cores.
"""


class Found(NamedTuple):
    """One measurement: seconds from the first row to the last, rows, and bytes that the driver held."""

    seconds: float
    rows: int
    before: int
    peak: int

    @property
    def rate(self) -> str:
        """Rows per second."""
        return f"{self.rows / self.seconds:,.0f}"


def answer(_: Received) -> Answer:
    """What the provider says, at once."""
    return Answer(calls=[Call("get_weather", {"city": "Paris"})])


def one(who: str, workers: int, rows: int) -> Found:
    """Run an example in this process, which is the driver."""
    sys.path.insert(0, EXAMPLES)
    rows_of, pc, pq, example = map(
        importlib.import_module, ("batch_rows", "pyarrow.compute", "pyarrow.parquet", f"batch_{who}")
    )
    options = {"workers": workers} if who == "ray" else {}
    with tempfile.TemporaryDirectory() as name, provider(answer) as lms:
        folder, before = Path(name), resident()
        nothing = rows_of.done(folder, retry_failed=False)
        peak = watched(lambda: example.run(folder, rows, lms["openai"], nothing, **options))
        table = pq.read_table(folder, columns=["id", "asked_at", "error"])
    if len(pc.unique(table["id"])) != rows or table["error"].null_count != rows:
        sys.exit(f"{who}: {len(table)} rows, {len(table) - table['error'].null_count} of them failed")
    times = pc.min_max(table["asked_at"]).as_py()
    return Found(times["max"] - times["min"], len(table), before, peak)


def watched(work: Callable[[], None]) -> int:
    """Do some work, and return the most bytes that this process held meanwhile."""
    peak, over = [resident()], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            peak[0] = max(peak[0], resident())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        work()
    finally:
        over.set()
        thread.join()
    return peak[0]


def apart(who: str, workers: int, rows: int) -> Found:
    """A measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.batch", who, str(workers), str(rows)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), EXAMPLES))}  # Ray's workers inherit it
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return Found(*json.loads(done.stdout.splitlines()[-1]))


def tables() -> Iterator[Table]:
    """The measurements."""
    rates = [("dspy.Parallel, one process", apart("parallel", 1, FAST))]
    rates += [(f"Ray Data, {n} worker{'s' * (n > 1)}", apart("ray", n, FAST)) for n in (1, 2)]
    told = f"{FAST:,} rows, timed from the first row to the last. Starting Ray isn't counted."
    rows = [[name, found.rate] for name, found in rates]
    yield Table("Rows per second", told, ("program", "rows per second"), rows)
    held = [(name, who, rows, apart(who, 2, rows)) for name, who in PROGRAMS for rows in HELD]
    told = "The driver process at its peak, and how much of that it took after its imports."
    head = ("program", "rows", "most, MB", "after imports, MB", "rows per second")
    yield Table(
        "Memory of the driver",
        told,
        head,
        [
            [name, f"{rows:,}", *(f"{b / MEGABYTE:,.0f}" for b in (f.peak, f.peak - f.before)), f.rate]
            for name, _, rows, f in held
        ],
    )


PROGRAMS = (("Ray Data, 2 workers", "ray"), ("dspy.Parallel, one process", "parallel"))


def main(arguments: list[str]) -> None:
    """Measure once and print, or measure everything and write the page."""
    if arguments:
        who, workers, rows = arguments
        print("\n" + json.dumps(one(who, int(workers), int(rows))))
        return
    head = INTRODUCTION.format(stamp=stamp("ray", "dspy"))
    PAGE.write_text("\n".join([head, *(table.markdown() for table in tables())]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
