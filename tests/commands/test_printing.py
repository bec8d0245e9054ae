"""What others wrote is printed without what would drive a terminal."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import layout, main

ASSIST, HOSTILE = "commands.programs:Assist", "commands.programs:HOSTILE"
OSC = '{"error": {"message": "slow \\u001b]0;title\\u0007 down \\u202e"}}'


def is_plain(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize(
    "words",
    [
        ["show", "--tools", HOSTILE],
        ["show", ASSIST, "-t", HOSTILE, "-m", "openai/gpt-4o-mini"],
        ["show", ASSIST, "-t", HOSTILE, "-m", "gemini/gemini-2.5-flash"],
        ["show", ASSIST, "-t", HOSTILE, "-m", "openai/gpt-4o-mini", "--tool-calling", "prompted"],
        ["show", ASSIST, "-t", HOSTILE, "-m", "openai/gpt-4o-mini", "-i", "question=\x1b[2J\x85"],
    ],
)
def test_escapes_of_a_tool_do_not_reach_the_terminal(words: list[str], capsys: Any) -> None:
    main(words)
    printed = capsys.readouterr().out
    assert is_plain(printed)
    assert "\\x1b[31mb" in printed
    assert "\\u202e" in printed


def test_escapes_of_an_error_do_not_reach_the_terminal(tmp_path: Path, capsys: Any) -> None:
    exchange = {"wire": "openai", "path": "/v1/chat/completions\x1b", "request": {"model": "m\x9b\u202e"}}
    exchange |= {"status": 429, "content_type": "application/json", "response": OSC}
    (tmp_path / "recording").write_text(json.dumps(exchange), "utf-8")
    assert main(["replay", str(tmp_path / "recording"), "-s", ASSIST, "-t", HOSTILE]) == 1
    printed = capsys.readouterr().out
    assert is_plain(printed)
    assert "slow \\x1b]0;title" in printed


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_the_layout_prints_and_is_the_same_json(value: Any) -> None:
    written = layout(value, 20)
    assert is_plain(written)
    assert json.loads(written) == value
