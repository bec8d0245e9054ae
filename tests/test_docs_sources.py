"""Every program of the sources of tools, in docs/guides/tools.md, runs as it stands, by itself."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "tools.md"
SOURCES = PAGE.read_text(encoding="utf-8").partition("## Every source of tools")[2]
PROGRAMS = re.findall(r"```python\n(.*?)```", SOURCES, re.DOTALL)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_the_page_runs(program: str) -> None:
    for library in ("langchain_core", "mcp"):
        if f"from {library}" in program:
            pytest.importorskip(library)
    namespace: dict[str, Any] = {"__name__": "sources"}
    exec(compile(program, str(PAGE), "exec"), namespace)  # noqa: S102  (our own page)


def test_every_program_of_the_page_shows_a_result() -> None:
    assert len(PROGRAMS) == 8
    assert all("assert " in program for program in PROGRAMS)
