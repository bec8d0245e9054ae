"""The wire matrix holds: exact wire JSON both ways, through the real dspy.LM, on every column.

request-shaping: Each wire gets its own form.
"""

from typing import Any

import dspy
import pytest
from wire_bodies import Served, part, said_text, serving
from wire_matrix import COLUMNS, ROWS, Cell, Row, declared

import sigadapt
from sigadapt import ToolCalls, ToolDecls, ToolResults

TURNS = [key for key, row in ROWS.items() if row.scope in ("said", "results")]
SETTINGS = [key for key, row in ROWS.items() if row.scope in ("tools", "format")]


class Weather(dspy.Signature):
    """Report the weather."""

    question: str | None = dspy.InputField(default=None)
    tools: ToolDecls = dspy.InputField()
    history: dspy.History | None = dspy.InputField(default=None)
    results: ToolResults | None = dspy.InputField(default=None)
    calls: ToolCalls | None = dspy.OutputField()


class Answered(dspy.Signature):
    """Report the weather."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION_NAME", "us-east-1")


def cells(rows: list[str]) -> list[Any]:
    """Every cell of these rows; those known not to hold are expected to fail, and reported once they do not."""
    return [_cell(name, column) for name in rows for column in COLUMNS]


def _cell(name: str, column: str) -> Any:
    cell = ROWS[name].cells[column]
    marks = [pytest.mark.xfail(strict=True, reason=cell.known)] if cell.known else []
    return pytest.param(ROWS[name], column, cell, id=f"{name}-{column}", marks=marks)


def recorded(lm: Any) -> tuple[tuple[str, str], ...]:
    return tuple((change.where, change.what) for change in lm.history[-1].get("changes") or ())


def adapted(lm: Any) -> tuple[str, ...]:
    """What lm15 lowered by itself; a default token limit that Anthropic requires is no lowering."""
    return tuple(
        entry.field
        for entry in lm.history[-1].get("adaptations") or ()
        if entry.field != "config.max_tokens"
    )


def ask(lm: Any, row: Row, signature: Any = Weather, **inputs: Any) -> Any:
    kind = sigadapt.JSONAdapter if row.scope == "format" else sigadapt.ChatAdapter
    tools = ToolDecls([declared(name) for name in row.tools])
    with dspy.context(lm=lm, adapter=kind(tool_calling="native", **row.options)):
        return dspy.Predict(signature)(tools=tools, **inputs)


def test_every_row_has_every_column():
    """A gap in the matrix would be a wire that nobody looked at."""
    assert all(set(row.cells) == set(COLUMNS) for row in ROWS.values())


@pytest.mark.parametrize(("row", "column", "cell"), cells(SETTINGS))
def test_what_is_set_reaches_the_provider(row: Row, column: str, cell: Cell):
    """request-shaping: A tool choice travels in the provider's form.

    request-shaping: What a wire cannot take is recorded.
    request-shaping: A structured output has a schema name and no strict flag.
    """
    with serving(column, said_text(COLUMNS[column].form)) as served:
        lm = served.lm()
        ask(lm, row, Answered if row.scope == "format" else Weather, question="Weather?")
    assert part(row.scope, served.column.form, served.sent[0]) == cell.sent
    assert recorded(lm) == cell.changes
    assert adapted(lm) == cell.adapted


def two_turns(served: Served, row: Row) -> tuple[Any, ToolResults, Any]:
    lm = served.lm()
    calls = ask(lm, row, question="Weather?").calls
    results = ToolResults.of(calls, row.values, errors=row.errors)
    ask(lm, row, question="Weather?", results=results)
    return calls, results, lm


@pytest.mark.parametrize(("row", "column", "cell"), cells(TURNS))
def test_a_turn_goes_back_whole(row: Row, column: str, cell: Cell):
    """conversations: A turn goes back as it came.

    conversations: Results follow the calls they answer.
    conversations: A failed result is marked in the provider's way.
    """
    with serving(column, cell.heard, said_text(COLUMNS[column].form)) as served:
        calls, _, lm = two_turns(served, row)
    assert [(call.name, call.args) for call in calls] == list(row.calls)
    assert (calls.text, calls.reasoning) == (row.text, row.reasoning)
    assert part(row.scope, served.column.form, served.sent[1]) == cell.sent
    assert recorded(lm) == cell.changes


@pytest.mark.parametrize(("name", "column"), [(name, column) for name in TURNS for column in COLUMNS])
def test_results_and_history_say_the_same(name: str, column: str):
    """conversations: Results as an input and results in a history give the same request."""
    row, heard = ROWS[name], ROWS[name].cells[column].heard
    with serving(column, heard, said_text(COLUMNS[column].form)) as served:
        calls, results, lm = two_turns(served, row)
        event = {"question": "Weather?", "calls": calls, "results": results}
        ask(lm, row, history=dspy.History(messages=[event]))
        kept = dspy.History.model_validate_json(
            dspy.History(
                messages=[
                    {
                        "question": "Weather?",
                        "calls": calls.model_dump(),
                        "results": results.model_dump(),
                    }
                ]
            ).model_dump_json()
        )
        ask(lm, row, history=kept)
    assert served.sent[2] == served.sent[1]
    assert served.sent[3] == served.sent[1]
