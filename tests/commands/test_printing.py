"""What others wrote is printed without what would drive a terminal."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import layout

from sigadapt.commands import main

ASSIST, HOSTILE = "commands.programs:Assist", "commands.programs:HOSTILE"


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


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_the_layout_prints_and_is_the_same_json(value: Any) -> None:
    written = layout(value, 20)
    assert is_plain(written)
    assert json.loads(written) == value
