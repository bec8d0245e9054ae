"""The cause of a tool's error stays on the machine: no history, saved run or optimized program has it."""

from typing import Any

import pytest
from agents import AGENTS, serving, turn

import sigadapt
from sigadapt import InputNeeded, ToolDecl
from sigadapt.testing import Call

CARD, PAY = Call("card", {"name": "Ada"}), Call("pay", {"to": "Ada"})
SECRETS = ("hunter2", "Traceback", __file__)


def card(name: str) -> str:
    """Look a card up."""
    try:
        raise ValueError("postgres://admin:hunter2@db")  # noqa: TRY301
    except ValueError as error:
        raise LookupError("no such card") from error


def pay(to: str) -> str:
    """Pay."""
    return "Paid."


TOOLS: Any = [card, ToolDecl.of(pay, requires_confirmation=True)]


def leaks(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_run_that_waits_has_the_message_alone(agent: Any) -> None:
    """runs: No cause leaves with a run."""
    with serving([turn(CARD), turn(PAY)], confirm="raise"), pytest.raises(InputNeeded) as caught:
        agent("question -> answer", tools=[*sigadapt.ToolDecls(TOOLS)])(question="q")
    error = caught.value
    assert leaks(error.model_dump_json()) == []
    history = error.resume(TOOLS, {error.requests[0].id: True})
    assert leaks(history.model_dump_json()) == []


def test_who_wants_the_traceback_has_it_in_the_history() -> None:
    """runs: DSPy's traceback on request."""
    with serving([turn(CARD), turn(PAY)], confirm="raise", tool_errors="traceback") as net:
        with pytest.raises(InputNeeded) as caught:
            sigadapt.ReAct("question -> answer", TOOLS)(question="q")
        assert "hunter2" in str(net.received[-1].body)
    assert "hunter2" in caught.value.model_dump_json()
