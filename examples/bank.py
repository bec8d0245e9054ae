"""The agent behind the pages of use_chat.py, ag_ui.py and chat_endpoint.py: a payment needs a yes.

Replace it with your own agent. `script` answers for the model if the command line names none.
"""

import os
from typing import Any

import dspy
import uvicorn
from played import language_model

import sigadapt
from sigadapt import ToolDecl
from sigadapt.testing import Answer, Call, Received


def get_balance() -> str:
    """The balance of the account."""
    return "620 EUR"


def pay(to: str, eur: int) -> str:
    """Pay a person."""
    return f"Paid {eur} EUR to {to}."


AGENT = sigadapt.ReAct(
    "question -> answer", tools=[get_balance, ToolDecl.of(pay, requires_confirmation=True)]
)


def script(received: Received) -> Answer:
    """Look at the balance, ask to pay, and say what came of it."""
    rows = received.body["messages"]
    last = max(number for number, row in enumerate(rows) if row["role"] == "user")
    results = [row["content"] for row in rows[last:] if row["role"] == "tool"]
    if not results:
        return Answer(text="Let me look at your account.", calls=[Call("get_balance")])
    if len(results) == 1:
        return Answer(calls=[Call("pay", {"to": "Ada", "eur": 120})])
    return Answer(calls=[Call("submit", {"answer": f"You had {results[0]}. {results[1]}"})])


def serve(app: Any) -> None:
    """Serve an app with its model, until Ctrl-C."""
    with language_model(script) as lm:
        dspy.configure(lm=lm, adapter=sigadapt.ChatAdapter(confirm="raise"))
        uvicorn.run(app, port=int(os.environ.get("PORT", "8000")), log_level="warning")
