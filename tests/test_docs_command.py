"""The pages of the command and of notebooks show what the command and the library print today."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import dspy
import pytest
from processes import run_python
from test_docs import DOCS

from sigadapt.commands import main

GUIDES = DOCS / "guides"
COMMAND = (GUIDES / "command.md").read_text("utf-8")
SHOWN = re.findall(r"```console\n\$ (sigadapt .*?)\n(.*?)```", COMMAND, re.DOTALL)


def block(pattern: str, page: str) -> str:
    found = re.search(pattern, page, re.DOTALL)
    assert found
    return found[1]


def plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the page names, in a folder that is the working directory."""
    (tmp_path / "weather.py").write_text(block(r"```python\n# weather\.py\n(.*?)```", COMMAND), "utf-8")
    (tmp_path / "answer.json").write_text(block(r"\$ cat answer\.json\n(.*?)```", COMMAND), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delitem(sys.modules, "weather", raising=False)
    return tmp_path


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("words", "printed"), SHOWN)
@pytest.mark.litellm
def test_the_page_shows_what_the_command_prints(
    words: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """command-line: Every verb says what it does."""
    main(shlex.split(words)[1:])
    assert plain(capsys.readouterr().out) == plain(printed)


def test_the_page_has_every_verb() -> None:
    """command-line: Every verb says what it does."""
    assert len(SHOWN) >= 3
    for verb in ("demo", "show", "read"):
        assert f"`sigadapt {verb}`" in COMMAND


def run_page(page: str) -> dict[str, Any]:
    """Run the Python blocks of a page from top to bottom, in one namespace."""
    namespace: dict[str, Any] = {"__name__": "page"}
    before = {name: getattr(dspy.settings, name) for name in ("lm", "adapter")}
    try:
        for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            exec(code, namespace)  # noqa: S102  (our own page)
    finally:
        dspy.configure(**before)
    return namespace


def test_the_page_of_notebooks_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """rendering: Calls, declarations, choices and errors render."""
    page = (DOCS.parent / "tests" / "pages" / "notebooks.md").read_text("utf-8")
    namespace = run_page(page)
    assert plain(capsys.readouterr().out) == plain(block(r"```text\n(.*?)```", page))
    for name in ("decls", "calls", "caught"):
        assert namespace[name]._repr_html_().startswith("<div")
    assert namespace["calls"].invalid[0].arguments == '{"city":42}'


def test_the_demo_of_an_installed_wheel_must_print_what_the_demo_prints(tmp_path: Path) -> None:
    """loopback-provider: The demo runs on every wire."""
    root = DOCS.parent
    shows = block(r"DEMO_SHOWS = \((.*?)\n\)", (root / ".ci" / "try_wheel.py").read_text("utf-8"))
    wanted: tuple[str, ...] = eval(f"({shows})")  # noqa: S307  (our own script)
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = run_python("-m", "sigadapt", "demo", cwd=tmp_path, env=env, check=True)
    assert [line for line in wanted if line not in done.stdout] == []
    assert done.stderr == ""
