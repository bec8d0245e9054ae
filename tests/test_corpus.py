"""The recordings behind the measured pages: clones, the reader, and what a recipe says without them."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GIT = shutil.which("git") or "git"
ROOT = Path(__file__).resolve().parent.parent
MAIN: Any = importlib.import_module("benchmarks.corpus.__main__")
CLONES: Any = importlib.import_module("benchmarks.corpus.clones")
READER: Any = importlib.import_module("benchmarks.corpus.answer_reader")


def run(*command: str, **options: Any) -> str:
    """Run a command from the root and return what it prints."""
    done = subprocess.run(  # noqa: S603  (our own command)
        command, cwd=ROOT, capture_output=True, text=True, check=False, **options
    )
    return done.stdout + done.stderr


def test_a_missing_clone_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing clone is named."""
    out = tmp_path / "out"
    assert MAIN.main([str(tmp_path), str(out)]) == 1
    (needed,) = capsys.readouterr().err.splitlines()
    for source in CLONES.SOURCES:
        assert f"git clone --no-checkout {source.address} {tmp_path / source.name}" in needed
    assert not out.exists()


def test_a_clone_without_its_commit_is_named(tmp_path: Path) -> None:
    """A missing clone is named."""
    source = CLONES.GORILLA
    run(GIT, "init", "-q", str(tmp_path / source.name))
    remedy = CLONES.remedy(source, tmp_path)
    assert remedy == f"git -C {tmp_path / source.name} fetch origin {source.commit}"


def test_a_file_is_read_at_the_commit(tmp_path: Path) -> None:
    """The recordings are built from clones."""
    folder = tmp_path / "some"
    name = ("-c", "user.name=x", "-c", "user.email=x@x.test")
    run(GIT, "init", "-q", str(folder))
    (folder / "a.json").write_text("1", encoding="utf-8")
    run(GIT, "-C", str(folder), "add", ".")
    run(GIT, "-C", str(folder), *name, "commit", "-qm", "one")
    commit = run(GIT, "-C", str(folder), "rev-parse", "HEAD").strip()
    (folder / "a.json").write_text("changed since", encoding="utf-8")
    clone = CLONES.Clone(CLONES.Source("https://x.test/o/some", commit, "MIT"), tmp_path)
    assert clone.paths() == ["a.json"]
    assert clone.read("a.json") == b"1"
    assert [*clone.read_all(["a.json", "gone.json"])] == [("a.json", b"1")]


def test_the_help_and_the_page_name_each_commit(capsys: pytest.CaptureFixture[str]) -> None:
    """The recordings are built from clones."""
    with pytest.raises(SystemExit):
        MAIN.main(["--help"])
    said = capsys.readouterr().out
    page = (ROOT / "docs" / "measured.md").read_text(encoding="utf-8")
    for source in CLONES.SOURCES:
        assert source.address in said
        assert source.commit in said
        assert source.commit in page


def test_the_reader_reads_whole_and_streamed_answers() -> None:
    """The recordings are built from clones."""
    call = {"id": "call_1", "function": {"name": "now", "arguments": "{}"}}
    whole = {"choices": [{"message": {"content": "Hm.", "tool_calls": [call]}}]}
    pieces = (
        'data: {"choices":[{"delta":{"content":"Hm."}}]}\n'
        'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"now"}}]}}]}\n'
        'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}\n'
        "data: [DONE]\n"
    )
    for response in (whole, pieces):
        found = READER.expected("openai-chat", {"tools": []}, response)
        assert found == {"calls": [{"id": "call_1", "name": "now", "args": {}}], "text": "Hm.", "tools": []}
    with pytest.raises(READER.UnreadableError):
        READER.expected("openai-chat", {}, {"error": "down"})


@pytest.mark.slow
@pytest.mark.parametrize("command", ["evidence answers", "evidence board", "conformance"])
def test_a_recipe_says_what_it_lacks(command: str) -> None:
    """A recipe says what it lacks."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SIGADAPT_")}
    (line,) = run(sys.executable, "tasks.py", *command.split(), env=env).splitlines()
    assert line.startswith(f"{command.removeprefix('evidence ')}: ")
    assert "needs" in line
    assert "SIGADAPT_" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("tasks.py evidence answers", "SIGADAPT_CORPUS (nowhere) has no answers/"),
        ("tasks.py evidence nonsense", "the parts are answers, board, faults, peers"),
        ("tasks.py test --dspy", "--dspy needs `newest`, a folder"),
        (".ci/conformance.py tests", "SIGADAPT_CHECKS (tests) is no folder of"),
        ("-m benchmarks nonsense", "the parts are wholecall, streamed"),
        ("-m benchmarks.peers nowhere", "`python3 tasks.py evidence peers` makes it"),
    ],
)
def test_a_recipe_refuses_what_is_wrong(command: str, reason: str) -> None:
    """A recipe says what it lacks."""
    env = {**os.environ, "SIGADAPT_CORPUS": "nowhere"}
    (line,) = run(sys.executable, *command.split(), env=env).splitlines()
    assert reason in line


@pytest.mark.slow
def test_every_recipe_explains_itself() -> None:
    """A recipe says what it lacks."""
    said = run(sys.executable, "tasks.py", "test", "--help")
    assert said.startswith("test: Run the tests but the slow ones")
    assert "--coverage" in said
