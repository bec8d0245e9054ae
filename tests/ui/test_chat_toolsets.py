"""A chat whose tools depend on what was asked: it waits, and goes on with the tools of its question."""

from pathlib import Path
from typing import Any

import pytest
from chat_pages import bank

import sigadapt
from sigadapt import RequestContext, ToolDecl, Toolset, ui
from sigadapt.testing import Answer, Call

PAY = Answer(calls=[Call("pay", {"to": "Bob"})])
DONE = Answer(calls=[Call("submit", {"answer": "Done."})])


@pytest.mark.parametrize("form", ["ai_sdk", "ag_ui"])
@pytest.mark.parametrize("decision", [True, False])
def test_a_chat_goes_on_with_the_tools_of_its_question(form: str, tmp_path: Path, *, decision: bool) -> None:
    """chats: A page waits for a person"""
    paid: list[str] = []

    def pay(to: str) -> str:
        """Pay somebody."""
        paid.append(to)
        return "Paid."

    def choose(context: RequestContext) -> list[Any]:
        return [ToolDecl.of(pay, requires_confirmation=True)] if "pay" in context.inputs["question"] else []

    agent = sigadapt.ReAct("question -> answer", tools=Toolset("shop", choose))
    with bank(tmp_path, [PAY, DONE, DONE]) as desk:
        desk.chats = ui.Chats(agent, tmp_path / "shop.db")
        desk.say(form, "pay Bob")
        [request] = desk.requests()
        desk.reply(form, {request["id"]: decision})
        assert paid == ["Bob"] * decision
        desk.say(form, "hello")
        assert desk.texts() == ["pay Bob", "Done.", "hello", "Done."]
