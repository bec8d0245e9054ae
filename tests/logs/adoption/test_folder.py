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


DATE = {"type": "function", "function": {**CLOCK["function"], "name": "tell_date"}}
