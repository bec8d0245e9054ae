"""What others wrote is printed without what would drive a terminal."""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigadapt.commands import main

ASSIST, HOSTILE = "commands.programs:Assist", "commands.programs:HOSTILE"


def is_plain(text: str) -> bool:
    """Whether a text holds nothing but what is seen, spaces of any width and the ends of lines."""
    return all(sign == "\n" or sign.isprintable() or category(sign) == "Zs" for sign in text)


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


@given(st.text())
def test_what_a_model_wrote_does_not_reach_the_terminal(text: str) -> None:
    code, printed = read(json.dumps({"choices": [{"message": {"content": text}}]}).encode())
    assert (code, is_plain(printed)) == (0, True)


def read(content: bytes) -> tuple[int, str]:
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()) as printed:
        file = Path(folder, "answer")
        file.write_bytes(content)
        return main(["read", str(file)]), printed.getvalue()
