"""The cause of a tool's error stays on the machine: no history, saved run or optimized program has it."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import dspy
import pytest
from agents import AGENTS, DSPY_AGENT, read_back, serving, submits, turn

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


@pytest.mark.parametrize("is_async", [False, True])
def test_a_history_has_the_message_alone(caplog: pytest.LogCaptureFixture, *, is_async: bool) -> None:
    """runs: No cause leaves with a run."""
    agent: Any = sigadapt.ReAct("question -> answer", [card])
    with (
        caplog.at_level(logging.DEBUG, "sigadapt"),
        serving([turn(CARD), submits()]) as net,
        sigadapt.Run() as run,
    ):
        out = asyncio.run(agent.acall(question="q")) if is_async else agent(question="q")
    for history in (out.history, run.history):
        assert leaks(history.model_dump_json()) == []
        result = sigadapt.rounds(history)[0].results[0]
        assert (result.value, result.is_error) == ("LookupError: no such card", True)
    assert "ERROR: LookupError: no such card" in str(net.received[-1].body)
    assert "hunter2" in caplog.text


def test_dspys_adapter_reads_no_cause_later() -> None:
    """runs: No cause leaves with a run."""
    with serving([turn(CARD), submits(), submits()]) as net:
        out: Any = sigadapt.ReAct("question -> answer", [card])(question="q")
        with dspy.context(adapter=dspy.ChatAdapter(use_native_function_calling=True)):
            DSPY_AGENT("question -> answer", [card])(question="q", history=read_back(out.history))
    assert "no such card" in str(net.received[-1].body)
    assert leaks(str(net.received[-1].body)) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_run_that_waits_has_the_message_alone(agent: Any) -> None:
    """runs: No cause leaves with a run."""
    with (
        serving([turn(CARD), turn(PAY)], confirm="raise"),
        pytest.raises(InputNeeded) as caught,
    ):
        agent("question -> answer", tools=[*sigadapt.ToolDecls(TOOLS)])(question="q")
    error = caught.value
    assert leaks(error.model_dump_json()) == []
    history = error.resume(TOOLS, {error.requests[0].id: True})
    assert leaks(history.model_dump_json()) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_question_after_a_failure_has_the_message_alone(agent: Any) -> None:
    """runs: No cause leaves with a run."""

    def ask(context: sigadapt.ToolContext) -> str:
        """Ask."""
        return context.ask("Which one?")

    with serving([turn(CARD), turn(Call("ask", {}))]), pytest.raises(InputNeeded) as caught:
        agent("question -> answer", tools=[*sigadapt.ToolDecls([card, ask])])(question="q")
    assert leaks(caught.value.model_dump_json()) == []


def test_an_optimized_program_has_the_message_alone(tmp_path: Path) -> None:
    """runs: No cause leaves with a run."""
    agent: Any = sigadapt.ReAct("question -> answer", [card])
    rows: list[Any] = [dspy.Example(question="q", answer="Done.").with_inputs("question")]
    optimizer: Any = dspy.BootstrapFewShot(max_bootstrapped_demos=1, max_labeled_demos=0)
    with serving([turn(CARD), submits()]):
        program = optimizer.compile(agent, trainset=rows)
    program.save(tmp_path / "program.json")
    saved = (tmp_path / "program.json").read_text()
    assert "no such card" in saved
    assert leaks(saved) == []


def test_who_wants_the_traceback_has_it_in_the_history() -> None:
    """runs: DSPy's traceback on request."""
    with serving([turn(CARD), turn(PAY)], confirm="raise", tool_errors="traceback") as net:
        with pytest.raises(InputNeeded) as caught:
            sigadapt.ReAct("question -> answer", TOOLS)(question="q")
        assert "hunter2" in str(net.received[-1].body)
    assert "hunter2" in caught.value.model_dump_json()
