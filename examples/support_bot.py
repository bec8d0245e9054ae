"""A support bot answers a customer, and moves to the next provider when one fails, in mid-conversation.

The tools know who the customer is, and the model does not: `partial` binds the customer. A large refund needs
an approval. Calls, results and reasoning of earlier turns go along to each provider, in its own format.

    python examples/support_bot.py
    python examples/support_bot.py openai/gpt-4o-mini anthropic/claude-sonnet-4-6 gemini/gemini-2.5-flash
"""

from contextlib import ExitStack
from functools import partial
from typing import Any

import dspy
from played import language_model, named

import sigadapt
from sigadapt import ToolCalls, ToolDecl, ToolDecls, ToolResults
from sigadapt.errors import UnusableAnswer
from sigadapt.testing import Answer, Call, Failure, Received

MOST_ROUNDS = 5
ORDERS = {"ann": {7: ("teapot", 40), 8: ("espresso machine", 400)}}


def list_orders(customer: str) -> dict[int, str]:
    """List the customer's orders, by number."""
    return {number: thing for number, (thing, _) in ORDERS[customer].items()}


def refund(customer: str, order: int) -> str:
    """Refund an order of the customer."""
    thing, eur = ORDERS[customer].pop(order)
    return f"{eur} EUR for the {thing} will be refunded."


def tools_for(customer: str) -> ToolDecls:
    """The tools of one customer. The model sees no parameter `customer`."""

    def is_large(args: dict[str, Any]) -> bool:
        return ORDERS[customer].get(args["order"], ("", 0))[1] > 100

    refund_order = partial(refund, customer=customer)
    return ToolDecls(
        [partial(list_orders, customer=customer), ToolDecl.of(refund_order, requires_confirmation=is_large)]
    )


class Support(dspy.Signature):
    """Help the customer, with the tools."""

    history: dspy.History = dspy.InputField()
    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


def ask_any(models: list[dspy.LM], **inputs: Any) -> dspy.Prediction:
    """Ask the first model that answers."""
    for lm in models:
        try:
            with dspy.context(lm=lm):
                out = dspy.Predict(Support)(**inputs)
        except (dspy.LMError, UnusableAnswer) as error:
            print(f"  {lm.model} failed ({type(error).__name__}).")
        else:
            print(f"  {lm.model}: {out.calls or out.answer}")
            return out
    raise SystemExit("No model answers.")


def run_calls(calls: ToolCalls, tools: ToolDecls) -> ToolResults:
    """Run the calls. One that needs an approval goes to a person first; here, nobody approves."""
    waiting = calls.awaiting_confirmation(tools)
    return calls.run(tools, {request.id: "A colleague will look at it tomorrow." for request in waiting})


def answer(models: list[dspy.LM], events: list[dict[str, Any]], question: str, tools: ToolDecls) -> None:
    """Answer one question, and add the turn to the conversation."""
    print(f"Customer: {question}")
    history, results = dspy.History(messages=events), ToolResults()
    for _ in range(MOST_ROUNDS):
        out = ask_any(models, history=history, question=question, tools=tools, results=results or None)
        if not out.calls:
            events.append({"question": question, "results": results or None, "answer": out.answer})
            return
        results = results + run_calls(out.calls, tools)


def script(received: Received) -> Answer | Failure:
    """The models that are played: the first goes down, and the second refuses the last question."""
    said = str(received.body)
    if "Refund both" not in said:
        done = "espresso" in said
        return Answer(text="A teapot and a machine.") if done else Answer(calls=[Call("list_orders")])
    if received.wire == "openai":
        return Failure(503, "overloaded")
    if "tomorrow?" in said:
        return Answer(text="", finish="refusal") if received.wire == "anthropic" else Answer(text="At nine.")
    if "colleague" in said:
        return Answer(text="The teapot is refunded. A colleague will decide on the machine.")
    return Answer(calls=[Call("refund", {"order": 7}), Call("refund", {"order": 8})])


def main() -> None:
    """One conversation of three questions."""
    with ExitStack() as stack, dspy.context(adapter=sigadapt.ChatAdapter(on_invalid="reask")):
        wires = ("openai", "anthropic", "gemini")[: len(named()) or 3]
        models = [
            stack.enter_context(language_model(script, wire, number)) for number, wire in enumerate(wires)
        ]
        events: list[dict[str, Any]] = []
        for question in ("What did I order?", "Refund both.", "When do you open tomorrow?"):
            answer(models, events, question, tools_for("ann"))


if __name__ == "__main__":
    main()
