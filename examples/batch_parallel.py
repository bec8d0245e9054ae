"""A signature over a dataset on one machine, with `dspy.Parallel`; the output is a folder of Parquet files.

    python examples/batch_parallel.py answers --rows 1000 [--model openai/gpt-4o-mini] [--retry-failed]

Without --model, a provider on this machine answers: no key, no network. A second run asks only what is
missing, and with --retry-failed what failed. `batch_rows.py` is the program; `batch_ray.py` runs it on a
cluster.
"""

from pathlib import Path
from typing import Any

import dspy
import pyarrow as pa
from batch_command import main
from batch_rows import Row, missing, questions, write
from tqdm import tqdm

IN_FLIGHT = 16  # requests at a time
SIZE = 256  # rows of a file: what a crash costs at most


def run(folder: Path, rows: int, lm: dict[str, Any], ids: pa.ChunkedArray) -> None:
    """Ask about the rows that are missing, and write a file for every `SIZE` of them."""
    todo, ask = missing(questions(range(rows)), ids), Row(dspy.LM(**lm))
    each = dspy.Parallel(num_threads=IN_FLIGHT, disable_progress_bar=True, timeout=0)
    with tqdm(total=rows, initial=rows - len(todo), unit="row") as bar:
        for start in range(0, len(todo), SIZE):
            batch = todo.slice(start, SIZE).to_pylist()
            write(each([(ask, row) for row in batch]), folder)
            bar.update(len(batch))


if __name__ == "__main__":
    main(run)
