"""A conversation moves in the middle of a round, and back, each step in a process of its own.

The first provider's turn holds a paused part, commentary, blocks of its own tools, and a call of a tool in
its own words that the program runs. The second provider gets the results, and calls again; the first one
gets those results.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from pair_turns import TURNS
from processes import run_python
from provider_rules import refusal
from wire_matrix import COLUMNS

pytestmark = pytest.mark.slow

COMMENTARY: dict[str, Any] = {
    "type": "message",
    "id": "msg_MARKfirst",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "I look it up.", "annotations": []}],
}
SHELL = {
    "type": "shell_call",
    "id": "sh_MARKshell",
    "call_id": "call_shell",
    "status": "completed",
    "action": {"commands": ["ls -l"]},
}
BASH = {"type": "tool_use", "id": "toolu_bash", "name": "bash", "input": {"command": "ls -l"}}
RESPONSES, ANTHROPIC, GEMINI = (TURNS[form].turn for form in ("responses", "anthropic", "gemini"))
PAUSE = next(n for n, block in enumerate(ANTHROPIC) if block["type"] == "server_tool_use") + 1

BEGINS: dict[str, list[Any]] = {
    "responses": [[*RESPONSES[:2], COMMENTARY, *RESPONSES[2:], SHELL]],
    "anthropic": [{"paused": ANTHROPIC[:PAUSE]}, [*ANTHROPIC[PAUSE:], BASH]],
    "gemini": [GEMINI],
}
"""The first turns, in as many answers as they come in, by column."""

SIGNATURES: dict[str, str | None] = {
    "MARKthinking": "Hm, MARKthinking.",
    "MARKreasoning": None,
    "MARKcode": None,
    "MARKsigned12": None,
}
WIRES = ("openai", "responses", "anthropic", "gemini", "ollama")
MOVES = [(source, target) for source in BEGINS for target in WIRES if source != target]


def in_a_new_process(asked: dict[str, Any]) -> dict[str, Any]:
    """Each conversation's next step."""
    script = Path(__file__).parents[1] / "continue_moves.py"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = run_python("-W", "ignore", script, stdin=json.dumps(asked), env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def moved(made_once: Any) -> list[dict[str, Any]]:
    """What the three steps of each move left."""
    return made_once("moves", three_steps)


def three_steps() -> list[dict[str, Any]]:
    """Make each move, one process for each step."""
    empty: dict[str, Any] = {"history": {"messages": []}}
    first = in_a_new_process({source: (source, empty, turns) for source, turns in BEGINS.items()})
    again = {form: turn.turn for form, turn in TURNS.items()}
    second = in_a_new_process({f"{a} {b}": (b, first[a], [again[COLUMNS[b].form]]) for a, b in MOVES})
    third = in_a_new_process({f"{a} {b}": (a, second[f"{a} {b}"], [again[a]]) for a, b in MOVES})
    return [first, second, third]


def marks(form: str) -> dict[str, str]:
    return dict(TURNS[form].marks)


@pytest.mark.parametrize("source", BEGINS)
def test_a_first_turn_has_all_that_was_said(source: str, moved: Any) -> None:
    """conversations: A conversation moves in the middle of a round."""
    made = moved[0][source]
    (event,) = made["history"]["messages"]
    calls = event["calls"]["tool_calls"]
    own = {"anthropic": ["bash"], "responses": ["shell"]}.get(source, [])
    assert [call["name"] for call in calls] == ["get_weather", "get_weather", *own]
    assert len(made["sent"]) == len(BEGINS[source])
    if source == "responses":
        assert "I look it up." in event["calls"]["turn"]["text"]


@pytest.mark.parametrize(("source", "target"), MOVES)
def test_results_go_to_another_provider(source: str, target: str, moved: Any) -> None:
    """conversations: A conversation moves in the middle of a round."""
    made = moved[1][f"{source} {target}"]
    (sent,) = made["sent"]
    assert refusal(target, sent, SIGNATURES) is None
    body = json.dumps(sent)
    assert "MARK" not in body
    assert "Let me look." in body
    assert body.count("sunny") == len(moved[0][source]["history"]["messages"][0]["calls"]["tool_calls"])
    assert ("ls -l" in body) is (source != "gemini")
    assert ("I look it up." in body) is (source == "responses")
    record = " ".join(why for what, why in made["changes"] if what == "dropped")
    assert all(name in record for name in marks(source).values()), record


@pytest.mark.parametrize(("source", "target"), MOVES)
def test_the_first_provider_gets_its_own_turn_back(source: str, target: str, moved: Any) -> None:
    """conversations: A conversation moves in the middle of a round."""
    made = moved[2][f"{source} {target}"]
    body = json.dumps(made["sent"][0])
    assert refusal(source, made["sent"][0], SIGNATURES) is None
    assert all(mark in body for mark in marks(source))
    assert all(block in body for block in ("ls -l", "Let me look.") if block in str(BEGINS[source]))
    form = COLUMNS[target].form
    foreign = {mark: name for mark, name in marks(form).items() if mark not in marks(source)}
    record = " ".join(why for _, why in made["changes"])
    assert all((mark in body) or name in record for mark, name in foreign.items()), record
