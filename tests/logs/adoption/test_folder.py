"""The files of an adopted log are replaced only by whole new ones."""

from pathlib import Path
from typing import Any

import pytest
from logs.made_logs import CLOCK, asks, log, weather_log

from sigadapt.errors import InvalidOption
from sigadapt.logs import adopt, load
from sigadapt.logs.adoption.folder import write_files


def test_all_files_or_none(tmp_path: Path) -> None:
    """logs: A bad line costs itself, and no earlier file"""
    write_files(tmp_path / "out", {"a.jsonl": "1\n", "b.jsonl": "2\n"})
    with pytest.raises(UnicodeEncodeError):
        write_files(tmp_path / "out", {"a.jsonl": "3\n", "b.jsonl": "\ud800"})
    files = {path.name: path.read_text("utf-8") for path in (tmp_path / "out").iterdir()}
    assert files == {"a.jsonl": "1\n", "b.jsonl": "2\n"}


def test_a_program_whose_line_ends_changed_is_written_anew(tmp_path: Path) -> None:
    """logs: A program that its user changed stays"""
    adopted = adopt(weather_log())
    program = adopted.save(tmp_path)[0]
    program.write_bytes(program.read_bytes().replace(b"\n", b"\r\n"))
    assert adopted.save(tmp_path)[0] == program
    assert b"\r\n" not in program.read_bytes()


def test_rows_of_a_tool_that_a_kept_program_lacks_say_where_it_is(tmp_path: Path) -> None:
    """logs: A program that its user changed stays"""
    program = adopt(weather_log()[:2]).save(tmp_path)[0]
    program.write_text(f"{program.read_text()}# Mine.\n")
    news = log(asks("Time in Oslo?", "tell_date", {"city": "Oslo"}, "noon"), [DATE])
    assert adopt([*weather_log()[:2], *news]).save(tmp_path)[0].name == "program_new.py"
    loaded = load(tmp_path)
    [row] = [row for row in loaded.rows if row.question == "Time in Oslo?"]
    inputs: Any = row.inputs()
    with pytest.raises(InvalidOption, match=r"program_new\.py") as caught:
        loaded.program(**inputs)
    assert caught.value.field == "tools"


def test_what_was_loaded_is_saved_as_it_was(tmp_path: Path) -> None:
    """logs: A log is adopted in Python as in the shell"""
    lines = [*weather_log("Be brief."), *log(asks("Weather?", "get_weather", {"city": 1}))]
    for is_changed in (False, True):
        first = tmp_path / f"first{is_changed}"
        program = adopt(lines).save(first)[0]
        if is_changed:
            program.write_text(f"{program.read_text()}# Mine.\n")
        loaded = load(first)
        assert [each["code"] for each in loaded.failures] == ["schema_mismatch"]
        second = tmp_path / f"second{is_changed}"
        loaded.save(second)
        loaded.save(first)
        names = sorted(path.name for path in first.iterdir())
        assert names == sorted(path.name for path in second.iterdir())
        assert "program_new.py" not in names
        for name in {*names} - {"report.html"}:
            assert (first / name).read_bytes() == (second / name).read_bytes()
        assert "Be brief." in (second / "program.py").read_text()


DATE = {"type": "function", "function": {**CLOCK["function"], "name": "tell_date"}}
