"""A page in front of a program of several agents, whose tools have the same names."""

import logging
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest
from chat_pages import page_of, submit

import sigadapt
from sigadapt import ToolContext, ToolDecl, ui
from sigadapt.testing import Answer, Call

PAID: list[str] = []


def pay(to: str, account: str) -> str:
    """Pay somebody."""
    PAID.append(f"{account} {to}")
    return f"Paid {to}."


def ask_twice(context: ToolContext, account: str) -> str:
    """Ask for two things."""
    to = context.ask("To whom?")
    eur = context.ask("How much?")
    PAID.append(f"{account} {to} {eur}")
    return f"Paid {to}."


def tools_of(account: str) -> list[Any]:
    return [
        ToolDecl.of(partial(pay, account=account), requires_confirmation=True),
        ToolDecl.of(partial(ask_twice, account=account)),
    ]


class Triage(dspy.Module):
    """Sends each chat to one of two agents."""

    def __init__(self, agent: type[Any]) -> None:
        super().__init__()
        self.private = agent("question -> answer", tools=tools_of("private"))
        self.business = agent("question -> answer", tools=tools_of("business"))

    def forward(self, history: dspy.History, question: str | None = None) -> dspy.Prediction:
        inputs = {} if question is None else {"question": question}
        return self.business(history=history, **inputs)


AGENTS: list[Any] = [sigadapt.ReAct, dspy.ReActV2]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_agent_that_waits_runs_the_call(agent: type[Any], tmp_path: Path) -> None:
    """chats: The agent that waits runs the call"""
    PAID.clear()
    answers = [Answer(calls=[Call("pay", {"to": "Bob"})]), submit("Done.")]
    with page_of(lambda: Triage(agent), answers, tmp_path) as page:
        page.say("ai_sdk", "Pay Bob.")
        [request] = page.requests()
        page.reply("ai_sdk", {request["id"]: True})
    assert PAID == ["business Bob"]


def test_a_second_question_is_of_the_same_agent(tmp_path: Path) -> None:
    """chats: The agent that waits runs the call"""
    PAID.clear()
    answers = [Answer(calls=[Call("ask_twice", {})]), submit("Done.")]
    with page_of(lambda: Triage(sigadapt.ReAct), answers, tmp_path) as page:
        page.say("ai_sdk", "Pay Bob.")
        for reply in ("Bob", "75"):
            [request] = page.requests()
            page.reply("ai_sdk", {request["id"]: reply})
    assert PAID == ["business Bob 75"]


def test_a_module_is_looked_at_without_a_warning(tmp_path: Path) -> None:
    """chats: The agent that waits runs the call"""
    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("dspy.primitives.module")
    logger.addHandler(handler)
    try:
        ui.Chats(Triage(sigadapt.ReAct), tmp_path / "chats.db")
    finally:
        logger.removeHandler(handler)
    assert told == []
