"""The programs in examples/ run as they stand, offline, and print what they say."""

import ast
import os
from pathlib import Path

import pytest
from processes import run_fresh_python, run_python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py"))
HELPERS = {"bank.py", "played.py", "notes_server.py", "batch_rows.py", "batch_command.py"}
ELSEWHERE = {"ag_ui.py", "batch_parallel.py", "batch_ray.py", "chat_endpoint.py", "use_chat.py"}
"""What the tests in tests/examples run."""
LONGER = {"batch_rows.py": 115, "chat_endpoint.py": 115, "long_job.py": 120, "support_bot.py": 160}
"""The most lines of whole programs, which show several things together."""

PRINTS: dict[str, list[str]] = {
    "mcp_agent.py": [
        "list_notes() -> {'result': ['call', 'groceries']}",
        '<schema_mismatch: read_note({"note":"call"})> -> failed',
        "read_note(title='calls') -> failed",
        "read_note(title='call') -> Ada, 15:00",
        "Call Ada at 15:00.",
    ],
    "approval.py ask": ["Pay 500 EUR to Bob?"],
    "approval.py yes": ["paid 20 EUR to Ada; paid 500 EUR to Bob"],
    "approval.py no": ["paid 20 EUR to Ada; ERROR: The user rejected this call. It was not run."],
    "streaming_endpoint.py": [
        '{"text": "Let me l"}',
        '{"call": "get_weather(city=\'Paris\')"}',
        '{"answer": null, "calls": {"tool_calls": [{"id": "call_1", "name": "get_weather"',
    ],
    "support_bot.py": [
        "openai/gpt-4o-mini: list_orders()",
        "openai/gpt-4o-mini failed (LMServerError).",
        "anthropic/claude-sonnet-4-6: refund(order=7), refund(order=8)",
        "anthropic/claude-sonnet-4-6 failed (UnusableAnswer).",
        "gemini/gemini-2.5-flash: At nine.",
    ],
    "memory.py": [
        "A restaurant in Oslo, without nuts.",
        "load_memory(query='lives city') -> ['My family lives in the city of Oslo.']",
    ],
    "long_job.py": [
        "2 of 2 calls wait: train(model='m'), review().",
        'train {"job": "train-m"} -> Thank you. The run waits on.',
        "review null -> The model is trained and reviewed.",
    ],
    "mcp_asks.py": ["Delete the note 'groceries'? {'confirm': 'boolean'}", "The note is gone."],
    "evaluation.py": [
        "500 rows: 90 % exact, F1 0.90",
        '{"schema_mismatch": 25}',
        "The call get_weather(city='City 9', days=1) is missing.",
    ],
    "optimizer.py": ["0 -> 100", "Weather for a city, by its English name: Munich, not München."],
}


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
