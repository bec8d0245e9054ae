"""What all verbs share: help, completion, JSON, colours, exit codes, and errors of one line."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import run_python
from support import bytes_of
from tables import table

import sigadapt
from sigadapt.commands import main
from sigadapt.testing import Answer, Call

ASSIST, TOOLS = "commands.programs:Assist", "commands.programs:TOOLS"
ROOT = Path(__file__).resolve().parents[2]


def shell(*words: str, cwd: Path, terminal: bool = False, **more: str) -> "subprocess.CompletedProcess[str]":
    """The command as a shell runs it; on a terminal if asked."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "tests")))
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    env |= {"PYTHONPATH": path, "COLUMNS": "80", "TERM": "xterm-256color", **more}
    if not terminal:
        return run_python("-m", "sigadapt", *words, cwd=cwd, env=env)
    command = [sys.executable, "-m", "sigadapt", *words]
    code = f"import pty, sys; sys.exit(pty.spawn({command!r}) >> 8)"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, check=False)  # noqa: S603


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    said = Answer(calls=[Call("get_weather", {"city": 42})])
    (tmp_path / "answer.json").write_bytes(bytes_of("openai", said))
    return tmp_path / "answer.json"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], object]:
    """Writes a module into the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write_module(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text, "utf-8")

    return write_module


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"sigadapt {sigadapt.__version__}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "offered"),
    [("sigadapt ", "show"), ("sigadapt demo --wire ", "anthropic"), ("sigadapt read --wire ", "cohere")],
)
def test_a_shell_completes_verbs_and_values(words: str, offered: str, tmp_path: Path) -> None:
    """command-line: A shell completes verbs and values."""
    number = str(len(words.split()))
    done = shell(cwd=tmp_path, _SIGADAPT_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=number)
    assert offered in done.stdout.split()


def test_the_completion_script_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """command-line: A shell completes verbs and values."""
    monkeypatch.setenv(
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1"
    )  # else the parent process is asked
    with pytest.raises(SystemExit):
        main(["--show-completion", "bash"])
    assert "_SIGADAPT_COMPLETE" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["demo", "show", "read"])
def test_json_is_one_document(verb: str, answer: Path, capsys: Any) -> None:
    """command-line: JSON is one document on stdout."""
    words = {"show": [ASSIST, "-t", TOOLS], "read": [str(answer)]}.get(verb, [])
    assert main([verb, *words, "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert (document["command"], document["version"]) == (verb, sigadapt.__version__)
    assert captured.err == ""


@pytest.mark.slow
def test_a_pipe_and_no_color_get_plain_text(answer: Path) -> None:
    """command-line: Pipes and NO_COLOR get plain text."""
    words = ("read", str(answer), "--tools", TOOLS)
    piped = shell(*words, cwd=answer.parent)
    assert "schema_mismatch" in piped.stdout
    assert "\x1b" not in piped.stdout
    colours = re.compile(r"\x1b\[[\d;]*3[0-7][\d;]*m")
    if sys.platform != "win32":
        assert colours.search(shell(*words, cwd=answer.parent, terminal=True).stdout)
        for plain in (words, ("demo",), ("--help",), ("show", ASSIST, "-m", "openai/gpt-4o-mini")):
            assert "\x1b" not in shell(*plain, cwd=answer.parent, terminal=True, NO_COLOR="1").stdout
    assert [line for line in piped.stdout.splitlines() if line != line.rstrip()] == []


def test_json_stands_alone_whatever_a_module_prints(tmp_path: Path) -> None:
    """command-line: JSON stands alone on stdout."""
    (tmp_path / "noisy.py").write_text(f"print('hello')\nfrom {TOOLS.partition(':')[0]} import *\n", "utf-8")
    tools = ("--tools", "noisy:TOOLS")
    for words in (("show", *tools), ("show", "noisy:Assist", *tools, "-m", "gemini/g")):
        done = shell(*words, "--json", cwd=tmp_path)
        assert json.loads(done.stdout)["command"] == words[0]
        assert "hello" in done.stderr


def test_a_terminal_that_lacks_characters_gets_escapes(tmp_path: Path) -> None:
    body = {"choices": [{"message": {"content": "Grüße 晴れ \ud800"}}]}
    (tmp_path / "answer").write_text(json.dumps(body), "utf-8")
    done = shell("read", "answer", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert r"Gr\xfc\xdfe" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(("words", "code"), table(__file__, "EXIT_CODES"))
def test_the_exit_code_says_what_happened(words: list[str], code: int, answer: Path) -> None:
    """command-line: The exit code says what happened."""
    assert main([word.format(answer=answer) for word in words]) == code


def test_a_users_module_that_fails_is_one_sentence(tmp_path: Path) -> None:
    """command-line: An error is one line, and never a traceback."""
    (tmp_path / "faulty_module.py").write_text("1 / 0", "utf-8")
    done = shell("show", "--tools", "faulty_module:TOOLS", cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "ZeroDivisionError" in line


FAULTY = r"""
class Faulty:
    @property
    def tools(self):
        raise RuntimeError("a fault\nof two lines")


TOOLS = Faulty()
"""


def test_an_unexpected_error_is_one_sentence(
    module: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """command-line: An error is one line, and never a traceback."""
    module("unexpected_fault", FAULTY)
    assert main(["show", "--tools", "unexpected_fault:TOOLS"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sigadapt show: unexpected RuntimeError: a fault")
    monkeypatch.setenv("SIGADAPT_DEBUG", "1")
    with pytest.raises(RuntimeError):
        main(["show", "--tools", "unexpected_fault:TOOLS"])


def test_an_interrupt_is_one_sentence(module: Any, capsys: pytest.CaptureFixture[str]) -> None:
    module("an_interrupt", "raise KeyboardInterrupt")
    assert main(["show", "--tools", "an_interrupt:TOOLS"]) == 1
    assert capsys.readouterr().err == "sigadapt show: stopped\n"


def test_the_installed_command_is_this_one(tmp_path: Path) -> None:
    """command-line: A module of the working directory is found."""
    (tmp_path / "mine.py").write_text("TOOLS = [{'name': 'f', 'description': 'F.'}]", "utf-8")
    done = shell("show", "--tools", "mine:TOOLS", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 tool,")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pty")
def test_a_terminal_sees_what_is_waited_for(tmp_path: Path) -> None:
    """command-line: The demo is one screen."""
    assert "asking the embedded provider" in shell("demo", cwd=tmp_path, terminal=True).stdout
    piped = shell("demo", cwd=tmp_path)
    assert "asking" not in piped.stdout + piped.stderr


def test_an_unknown_wire_names_the_option(answer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """command-line: A wire has one name."""
    assert main(["read", str(answer), "--wire", "x"]) == 2
    said = capsys.readouterr().err
    assert "wire" in said
    assert "anthropic" in said
