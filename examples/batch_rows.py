"""The program that `batch_parallel.py` and `batch_ray.py` run: a signature, asked about each row.

A row goes in, and comes out with its answer, its calls and its error as Arrow columns. Each part of the
output is a Parquet file that is whole or not there, so that a later run does what is missing.
"""

import json
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import dspy
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import sigadapt

CALL = ("id", "name", "arguments", "code", "message", "path")
ERROR = ("code", "tool", "path", "status")
CALLS = pa.struct(
    [("index", pa.int64()), ("altered", pa.list_(pa.string()))]
    + [(key, pa.string()) for key in ("args_json", *CALL)]
)
FAILED = pa.struct([(key, pa.string()) for key in ("type", "message", *ERROR)])
ASKED = pa.schema([("id", pa.int64()), ("question", pa.string())])
FOUND = [("answer", pa.string()), ("calls", pa.list_(CALLS)), ("error", FAILED), ("asked_at", pa.float64())]
SCHEMA = pa.schema([*ASKED, *FOUND])


def text_of(value: object) -> str | None:
    """A value as a string that every file can hold."""
    return None if value is None else str(value).encode(errors="replace").decode()


def call_row(call: sigadapt.ToolCall | sigadapt.InvalidToolCall) -> dict[str, Any]:
    """A call, good or bad, as strings and a number."""
    args = json.dumps(call.args) if isinstance(call, sigadapt.ToolCall) else None
    row = {key: text_of(getattr(call, key, None)) for key in CALL}
    return {"index": call.index, "altered": list(call.altered), "args_json": args, **row}


def error_row(error: Exception) -> dict[str, Any]:
    """An error as strings."""
    row = {key: text_of(getattr(error, key, None)) for key in ERROR}
    return {"type": type(error).__name__, "message": text_of(error), **row}


def get_weather(city: str, days: int = 1) -> str:
    """Weather forecast for a city."""


class Pick(dspy.Signature):
    """Answer, or pick the tools that answer."""

    question: str = dspy.InputField()
    tools: sigadapt.ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: sigadapt.ToolCalls | None = dspy.OutputField()


class Row(dspy.Module):
    """Ask about one row, and raise nothing. A bad call is in the row with its code."""

    def __init__(self, lm: dspy.LM) -> None:
        super().__init__()
        self.pick, self.tools = dspy.Predict(Pick), sigadapt.ToolDecls([get_weather])
        self.settings = {
            "lm": lm,
            "adapter": sigadapt.ChatAdapter(on_invalid="keep"),
            "disable_history": True,
        }

    def forward(self, id: int, question: str) -> dict[str, Any]:
        """Return the row with what came of it."""
        row: dict[str, Any] = {"id": id, "question": question}
        try:
            with dspy.context(**self.settings):
                out = self.pick(question=question, tools=self.tools)
            calls = out.calls.in_order() if out.calls is not None else ()
            row |= {"answer": out.answer, "calls": [call_row(call) for call in calls]}
        except Exception as error:
            row |= {"calls": [], "error": error_row(error)}
        return row | {"asked_at": time.time()}


def questions(ids: Iterable[int]) -> pa.Table:
    """The dataset: read your own here."""
    asked = [{"id": number, "question": f"What will the weather be in city {number}?"} for number in ids]
    return pa.Table.from_pylist(asked, schema=ASKED)


def write(rows: list[dict[str, Any]], folder: Path) -> None:
    """Write rows to their own file. The schema is given: a batch without calls has the same types."""
    part = folder / f"{uuid.uuid4().hex}.part"
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), part)
    part.rename(part.with_suffix(".parquet"))


def done(folder: Path, *, retry_failed: bool) -> pa.ChunkedArray:
    """The ids of the rows that are there; with `retry_failed`, of those that did not fail."""
    kept = ds.field("error").is_null() if retry_failed else None
    files = [str(path) for path in folder.glob("*.parquet")]
    return ds.dataset(files, schema=SCHEMA, format="parquet").to_table(columns=["id"], filter=kept)["id"]


def missing(table: pa.Table, ids: pa.ChunkedArray) -> pa.Table:
    """The rows of a table that are not among the ids."""
    return table.filter(pc.invert(pc.is_in(table["id"], value_set=ids)))
