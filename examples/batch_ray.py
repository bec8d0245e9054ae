"""A signature over a dataset on a cluster, with Ray Data; the output is a folder of Parquet files.

    pip install '.[ray]'
    python examples/batch_ray.py answers --rows 1000 [--model openai/gpt-4o-mini] [--retry-failed]

Ray starts on this machine; RAY_ADDRESS names a cluster, whose machines must share the folder. Without
--model, a provider on this machine answers: no key, no network. A second run asks only what is missing, and
with --retry-failed what failed. `batch_rows.py` is the program; `batch_parallel.py` runs it on one machine.
"""

import logging
import os
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports its use to its makers otherwise
os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")

import dspy
import pyarrow as pa
import ray
from batch_command import main
from batch_rows import Row, missing, questions, write
from ray.data import ActorPoolStrategy, DataContext
from tqdm import tqdm

WORKERS = 2  # processes
IN_FLIGHT = 16  # requests at a time in each of them
SIZE = 256  # rows of a file: what a crash costs each worker at most


class Ask:
    """A worker, made once in its process: connections and what depends on the signature are kept."""

    def __init__(self, lm: dict[str, Any], folder: Path) -> None:
        self.ask, self.folder = Row(dspy.LM(**lm)), folder
        self.each = dspy.Parallel(num_threads=IN_FLIGHT, disable_progress_bar=True, timeout=0)

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Ask about a batch, write it, and return how many rows it had: no row goes through the driver."""
        rows = batch.to_pylist()
        if rows:
            write(self.each([(self.ask, row) for row in rows]), self.folder)
        return pa.table({"rows": [len(rows)]})


def dataset(rows: int) -> ray.data.Dataset:
    """The dataset: `ray.data.read_parquet(...)` reads your own."""
    made = ray.data.range(rows).repartition(target_num_rows_per_block=SIZE)
    return made.map_batches(lambda batch: questions(batch["id"].to_pylist()), batch_format="pyarrow")


def run(folder: Path, rows: int, lm: dict[str, Any], ids: pa.ChunkedArray, *, workers: int = WORKERS) -> None:
    """Ask about the rows that are missing. A worker that dies is started again, and asks its batch again."""
    here = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers + 1, "include_dashboard": False}
    ray.init(**here, log_to_driver=False, logging_level=logging.ERROR)
    DataContext.get_current().enable_progress_bars = False  # the one below counts rows
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    todo = dataset(rows).map_batches(partial(missing, ids=ids), batch_format="pyarrow")
    asked = todo.map_batches(
        Ask,
        fn_constructor_args=(lm, folder.resolve()),
        batch_format="pyarrow",
        batch_size=SIZE,
        compute=ActorPoolStrategy(size=workers),
    )
    with tqdm(total=rows, initial=len(ids), unit="row") as bar:
        for counts in asked.iter_batches(batch_format="pyarrow", batch_size=None):
            bar.update(sum(counts["rows"].to_pylist()))
    ray.shutdown()


if __name__ == "__main__":
    main(run)
