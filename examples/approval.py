"""A person approves a payment, minutes or days later, in another process.

The first process stops if a call needs an approval: it saves the calls as JSON and ends. The second one loads
them, applies the person's decision, runs what was approved, and continues the conversation.

    python examples/approval.py ask [openai/gpt-4o-mini]
    python examples/approval.py yes [openai/gpt-4o-mini]     # or: no
"""

import sys
from pathlib import Path

import dspy
from played import language_model

import sigadapt
from sigadapt import Confirmation, ToolCalls, ToolDecl, ToolDecls, ToolResults
from sigadapt.testing import Answer, Call, Received

SAVED = Path("approval.json")
QUESTION = "Pay 20 EUR to Ada and 500 EUR to Bob."


def pay(to: str, eur: float) -> str:
    """Pay a person."""
    return f"paid {eur:g} EUR to {to}"


def over_100(args: dict[str, float]) -> bool | Confirmation:
    """Small payments need no approval."""
    return args["eur"] > 100 and Confirmation(f"Pay {args['eur']:g} EUR to {args['to']}?")


TOOLS = ToolDecls(ToolDecl.of(pay, requires_confirmation=over_100))


class Assist(dspy.Signature):
    """Do what is asked, with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


def script(received: Received) -> Answer:
    """The scripted model: it calls for both payments, then repeats their results."""
    said = [message["content"] for message in received.body["messages"] if message["role"] == "tool"]
    if said:
        return Answer(text="; ".join(said))
    payments = (("Ada", 20), ("Bob", 500))
    return Answer(calls=[Call("pay", {"to": to, "eur": eur}) for to, eur in payments])


def ask() -> None:
    """The first process: ask the model, save its calls, and show what a person has to decide."""
    calls = dspy.Predict(Assist)(question=QUESTION, tools=TOOLS).calls
    SAVED.write_text(calls.model_dump_json(), encoding="utf-8")
    for request in calls.awaiting_confirmation(TOOLS):
        print(request.hint)


def answer(*, approves: bool) -> None:
    """The second process: run what needs no approval or has one, and let the model continue."""
    calls = ToolCalls.model_validate_json(SAVED.read_text(encoding="utf-8"))
    SAVED.unlink()  # before anything runs, so that nothing is paid twice
    results = calls.run(TOOLS, {request.id: approves for request in calls.awaiting_confirmation(TOOLS)})
    print(dspy.Predict(Assist)(question=QUESTION, tools=TOOLS, results=results).answer)


if __name__ == "__main__":
    with language_model(script) as lm, dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        ask() if "ask" in sys.argv else answer(approves="yes" in sys.argv)
