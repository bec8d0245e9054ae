"""Calls and errors as columns: nothing is lost through Arrow and Parquet, and types do not depend on rows."""

import importlib
import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import json_values

from sigadapt import ToolCall, ToolCallParseError, ToolCalls, choice_from_response
from sigadapt.columns import call_rows, call_type, calls_from_rows, error_row, error_type
from sigadapt.errors import InvalidOption

try:
    pa: Any = importlib.import_module("pyarrow")
    pq: Any = importlib.import_module("pyarrow.parquet")
except ModuleNotFoundError:
    pa = pq = None
needs_arrow = pytest.mark.skipif(pa is None, reason="pyarrow is not installed: pip install '.[ray]'")

texts = st.text(st.characters(categories=["L", "N", "P", "Zs", "Cs", "Cc"]))  # Cs: halves of pairs


def body(*sent: tuple[str, str]) -> Any:
    made = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(sent)
    ]
    return {"choices": [{"message": {"content": "Hm.", "tool_calls": made}}]}


def calls_of(*sent: tuple[str, str]) -> ToolCalls:
    calls = choice_from_response(body(*sent)).tool_calls
    assert calls is not None
    return calls


MIXED = calls_of(("a", '{"x": 1.0}'), ("b", '{"x": '), ("", "{}"), ("a", '{"x":1,"x":2}'))


def fields_of(calls: ToolCalls) -> list[Any]:
    names = ("id", "name", "args", "arguments", "index", "altered", "code", "message", "path")
    return [[type(call), *(getattr(call, name, None) for name in names)] for call in calls.in_order()]


def test_every_call_is_a_row_in_order() -> None:
    """batches: Every call is a row, with what was sent."""
    rows = call_rows(MIXED)
    assert [(row["index"], row["code"]) for row in rows] == [
        (0, None),
        (1, "invalid_json"),
        (2, "missing_name"),
        (3, "duplicate_key"),
    ]
    assert [row["arguments"] for row in rows] == ['{"x": 1.0}', '{"x": ', "{}", '{"x":1,"x":2}']
    assert [row["args_json"] for row in rows] == ['{"x":1.0}', None, None, None]
    assert [list(row) for row in rows] == [list(rows[0])] * 4


def test_calls_of_dspy_are_rows_too() -> None:
    """batches: Every call is a row, with what was sent."""
    theirs = dspy.ToolCalls.from_dict_list([{"name": "a", "args": {"x": 1}}])
    assert [(row["name"], row["args_json"]) for row in call_rows(theirs)] == [("a", '{"x":1}')]
    handed = ToolCalls(MIXED).handed_on()
    assert [row["code"] for row in call_rows(handed)] == [row["code"] for row in call_rows(MIXED)]
    assert call_rows(None) == []


@given(
    st.lists(st.tuples(texts, texts | st.dictionaries(st.text(), json_values).map(json.dumps)), max_size=4)
)
def test_rows_come_back_as_the_calls_they_were(sent: list[tuple[str, str]]) -> None:
    """batches: Calls survive a table."""
    calls = choice_from_response(body(*sent)).tool_calls
    rows = call_rows(calls)
    back = calls_from_rows(rows)
    assert call_rows(back) == rows, "what is written is read, halves of pairs as escapes"
    for row in rows:
        json.dumps(row).encode()
        "".join(str(value) for value in row.values()).encode()
    if calls is not None and not any("\ud800" <= each <= "\udfff" for text in sent for each in "".join(text)):
        assert fields_of(back) == fields_of(calls)


@needs_arrow
def test_calls_and_errors_survive_parquet(tmp_path: Path) -> None:
    """batches: Calls survive a table."""
    schema = pa.schema([("calls", call_type()), ("error", error_type())])
    halves = calls_of(("a", '{"x": "\ud83d"}'))
    rows: list[dict[str, Any]] = [
        {"calls": call_rows(MIXED), "error": None},
        {"calls": call_rows(halves), "error": error_row(ValueError("\ud83d"))},
        {"calls": [], "error": error_row(InvalidOption("is negative", field="max_reasks", fix="Give 1."))},
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "part.parquet")
    table = pq.read_table(tmp_path / "part.parquet")
    assert table.schema == schema
    assert table.to_pylist() == rows
    assert fields_of(calls_from_rows(table["calls"][0].as_py())) == fields_of(MIXED)
    frame = table.to_pandas()
    assert fields_of(calls_from_rows(frame["calls"][0])) == fields_of(MIXED), "pandas gives arrays"
    assert calls_from_rows(frame["calls"][2]) == ToolCalls([])


@pytest.mark.parametrize("calls", [MIXED, MIXED.handed_on(), ToolCalls([{"name": "a", "args": {}}])])
def test_calls_survive_a_data_frame(calls: ToolCalls) -> None:
    """batches: Calls survive a table."""
    pd: Any = pytest.importorskip("pandas")
    rows = call_rows(calls)
    frame = pd.DataFrame(rows)
    for each in (frame, frame.astype(object).fillna(pd.NA), frame.convert_dtypes()):
        assert fields_of(calls_from_rows(each.to_dict("records"))) == fields_of(calls_from_rows(rows))


def test_a_null_may_be_written_as_nan() -> None:
    """batches: Calls survive a table."""
    nan = float("nan")
    rows = [{key: nan if value is None else value for key, value in row.items()} for row in call_rows(MIXED)]
    assert fields_of(calls_from_rows(rows)) == fields_of(MIXED)


@needs_arrow
def test_a_batch_without_calls_has_the_same_types(tmp_path: Path) -> None:
    """batches: A column has one type."""
    schema = pa.schema([("calls", call_type()), ("error", error_type())])
    none = pa.Table.from_pylist([{"calls": [], "error": None}], schema=schema)
    some = pa.Table.from_pylist(
        [{"calls": call_rows(MIXED), "error": error_row(ValueError())}], schema=schema
    )
    pq.write_table(none, tmp_path / "1.parquet")
    pq.write_table(some, tmp_path / "2.parquet")
    both = pq.read_table(tmp_path)
    assert [len(calls) for calls in both["calls"].to_pylist()] == [0, 4]
    assert pa.types.is_list(both.schema.field("calls").type)


def test_an_error_is_a_row_of_texts() -> None:
    """batches: An error is a row."""
    choice = choice_from_response(body(("a", "{")))
    error = ToolCallParseError(
        "is bad", choice=choice, code="invalid_json", field="calls", tool="a", path="/x"
    )
    row = error_row(error)
    assert row is not None
    told = (row["type"], row["code"], row["field"], row["tool"], row["path"], row["reason"])
    assert told == ("ToolCallParseError", "invalid_json", "calls", "a", "/x", "is bad")
    theirs = dspy.utils.exceptions.LMRateLimitError("slow down", status=429)
    row = error_row(theirs)
    assert row is not None
    assert (row["type"], row["code"], row["status"]) == ("LMRateLimitError", "rate_limit", 429)
    row = error_row(KeyError("x"))
    assert row is not None
    assert (row["message"], row["code"], row["status"]) == ("'x'", None, None)
    assert error_row(None) is None


def test_types_without_pyarrow_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """batches: A column has one type."""
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    for make in (call_type, error_type):
        with pytest.raises(InvalidOption, match=r"sigadapt\[ray\]") as caught:
            make()
        assert caught.value.code == "missing_extra"


def test_a_repaired_call_keeps_both_texts() -> None:
    """batches: Every call is a row, with what was sent."""
    call = ToolCall(id="c", name="a", args={"x": 1}, arguments="{'x': 1}", altered=("repaired",))
    (row,) = call_rows(ToolCalls(call))
    assert (row["arguments"], row["args_json"], row["altered"]) == ("{'x': 1}", '{"x":1}', ["repaired"])
