"""Every program of docs/symptoms.md runs after the page's own beginning."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "symptoms.md"
TEXT = PAGE.read_text(encoding="utf-8")
BEGINNING, *PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
SYMPTOMS = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)


@pytest.mark.parametrize(("program"), PROGRAMS)
def test_a_program_of_the_page_runs(program: str) -> None:
    if "import mcp" in program:
        pytest.importorskip("mcp")
    namespace: dict[str, Any] = {"__name__": "symptoms"}
    exec(compile(BEGINNING + program, str(PAGE), "exec"), namespace)  # noqa: S102  (our own page)


def test_every_symptom_has_a_program_that_shows_it() -> None:
    assert len(PROGRAMS) == len(SYMPTOMS) == 25
    assert all("assert " in program for program in PROGRAMS)
