"""The programs in examples/ run as they stand, offline, and print what they say."""

import ast
import os
from pathlib import Path

import pytest
from processes import run_fresh_python, run_python
from tables import table

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py"))
HELPERS = {"bank.py", "played.py", "notes_server.py", "batch_rows.py", "batch_command.py"}
ELSEWHERE = {"ag_ui.py", "batch_parallel.py", "batch_ray.py", "chat_endpoint.py", "use_chat.py"}
"""What the tests in tests/examples run."""
LONGER = {"batch_rows.py": 115, "chat_endpoint.py": 115, "long_job.py": 120, "support_bot.py": 160}
"""The most lines of whole programs, which show several things together."""

PRINTS: dict[str, list[str]] = table(__file__, "PRINTS")


FRESH = "mcp_agent.py"
"""The example that runs in a fresh process, as a user starts one. A forked process runs the others."""


def printed(command: str, folder: Path) -> str:
    """What an example prints, in a process of its own, in an empty folder, without a key."""
    name, *words = command.split()
    env = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    env |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    run = run_fresh_python if name == FRESH else run_python
    done = run(ROOT / "examples" / name, *words, env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_prints(command: str, folder: Path) -> None:
    shown = printed(command, folder)
    assert [line for line in PRINTS[command] if line not in shown] == [], shown


@pytest.mark.parametrize("command", [command for command in PRINTS if not command.startswith("approval")])
def test_an_example_prints_what_it_says(command: str, tmp_path: Path) -> None:
    assert_prints(command, tmp_path)


@pytest.mark.parametrize("word", ["yes", "no"])
def test_an_approval_survives_the_process(word: str, tmp_path: Path) -> None:
    """confirmation: A request survives a restart."""
    assert_prints("approval.py ask", tmp_path)
    assert (tmp_path / "approval.json").exists()
    assert_prints(f"approval.py {word}", tmp_path)
    assert not (tmp_path / "approval.json").exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_short_and_says_how_to_run_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") < LONGER.get(path.name, 100)
    said = ast.get_docstring(ast.parse(text)) or ""
    if path.name not in HELPERS:
        assert f"python examples/{path.name}" in said
        assert "openai/gpt-4o-mini" in said
        assert path.name in ELSEWHERE or any(command.startswith(path.name) for command in PRINTS)
