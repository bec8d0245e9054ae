"""The program that `batch_parallel.py` and `batch_ray.py` run: a signature, asked about each row.

A row goes in, and comes out with its answer, its calls and its error as Arrow columns. Each part of the
output is a Parquet file that is whole or not there, so that a later run does what is missing.
"""

import argparse
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dspy
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from batch_provider import answer

import sigadapt
from sigadapt.columns import call_rows, call_type, error_row, error_type
from sigadapt.testing import LoopbackProvider

ASKED = [("id", pa.int64()), ("question", pa.string())]
FOUND = [("answer", pa.string()), ("calls", call_type()), ("error", error_type()), ("asked_at", pa.float64())]
SCHEMA = pa.schema([*ASKED, *FOUND])


def get_weather(city: str, days: int = 1) -> str:
    """Weather forecast for a city."""


class Pick(dspy.Signature):
    """Answer, or pick the tools that answer."""

    question: str = dspy.InputField()
    tools: sigadapt.ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: sigadapt.ToolCalls | None = dspy.OutputField()


class Row(dspy.Module):
    """Ask about one row. It raises nothing, and a bad call is in the row with its code."""

    def __init__(self, lm: dspy.LM) -> None:
        super().__init__()
        self.pick, self.tools = dspy.Predict(Pick), sigadapt.ToolDecls([get_weather])
        adapter = sigadapt.ChatAdapter(on_invalid="keep")
        self.settings = {"lm": lm, "adapter": adapter, "disable_history": True, "trace": None}

    def forward(self, id: int, question: str) -> dict[str, Any]:
        """Return the row with what came of it."""
        row: dict[str, Any] = {"id": id, "question": question}
        try:
            with dspy.context(**self.settings):
                out = self.pick(question=question, tools=self.tools)
            row |= {"answer": out.answer, "calls": call_rows(out.calls)}
        except Exception as error:
            row |= {"calls": [], "error": error_row(error)}
        return row | {"asked_at": time.time()}


def questions(ids: Iterable[int]) -> pa.Table:
    """The dataset: read your own here."""
    asked = [(number, f"What will the weather be in city {number}?") for number in ids]
    return pa.table([[row[0] for row in asked], [row[1] for row in asked]], schema=pa.schema(ASKED))


def write(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write rows to a file of their own. The schema is given: a batch without calls has the same types."""
    part = folder / f"{uuid.uuid4().hex}.part"
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), part)
    part.rename(part.with_suffix(".parquet"))


def done(folder: Path, *, retry_failed: bool) -> pa.ChunkedArray:
    """The ids of the rows that are there; with `retry_failed`, of those that did not fail."""
    kept = ds.field("error").is_null() if retry_failed else None
    files = list(map(str, folder.glob("*.parquet")))
    return ds.dataset(files, schema=SCHEMA, format="parquet").to_table(columns=["id"], filter=kept)["id"]


def missing(table: pa.Table, ids: pa.ChunkedArray) -> pa.Table:
    """The rows of a table that are not among the ids."""
    return table.filter(pc.invert(pc.is_in(table["id"], value_set=ids)))


def main(run: Callable[..., None]) -> None:
    """The command of both examples."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="where the Parquet files are written")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--model", help="ask this model, with your key; else a provider on this machine")
    parser.add_argument("--retry-failed", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with nullcontext() if given.model else LoopbackProvider(answer, keep=0) as provider:
        lm = {"model": given.model} if provider is None else provider.lm_options("openai")
        run(
            given.folder,
            given.rows,
            lm | {"num_retries": 3},
            done(given.folder, retry_failed=given.retry_failed),
        )
