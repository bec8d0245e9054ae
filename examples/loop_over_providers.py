"""The same loop of calls and results, written by hand, on three providers.

Each turn may hold text, calls, or both. A call that does not fit its tool never runs: the adapter tells the
model and asks again (`on_invalid="reask"`). A tool that fails is a failed result, which each provider gets in
its own form. The loop ends when the model calls no more tools, or after so many turns.

    python examples/loop_over_providers.py
    python examples/loop_over_providers.py openai/gpt-4o-mini anthropic/claude-sonnet-4-6
"""

import dspy
from played import language_model, named

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolDecls, ToolResults
from sigadapt.testing import Answer, Call

SCRIPT = [
    Answer(calls=[Call("get_weather", {"town": "Atlantis"})]),  # does not fit: the adapter asks again
    Answer(text="Let me look.", calls=[Call("get_weather", {"city": "Atlantis"}), Call("get_time", {})]),
    Answer(calls=[Call("get_weather", {"city": "Santorini"})]),
    Answer(text="It is sunny in Santorini, which is as near as one gets."),
]
MOST_TURNS = 5


def get_weather(city: str) -> str:
    """Weather for a city."""
    if city == "Atlantis":
        raise LookupError("no such city")
    return f"Sunny in {city}."


def get_time() -> str:
    """The time in UTC."""
    return "12:00"


TOOLS = ToolDecls([get_weather, get_time])


class Assist(dspy.Signature):
    """Answer the question, with tools where they help."""

    history: dspy.History = dspy.InputField()
    question: str | None = dspy.InputField(default=None)
    tools: ToolDecls = dspy.InputField()
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


def run(call: ToolCall) -> str | Exception:
    """Run one call. Its arguments come as the Python values that the function's annotations ask for."""
    try:
        return TOOLS[call.name].func(**call.bind(TOOLS))
    except Exception as error:
        return error


def answer(question: str) -> str | None:
    """Ask until the model answers without a call."""
    events: list[dict[str, object]] = []
    turn: dict[str, object] = {"question": question}
    for _ in range(MOST_TURNS):
        out = dspy.Predict(Assist)(history=dspy.History(messages=events), tools=TOOLS, **turn)
        if not out.calls:
            return out.answer
        values = [run(call) for call in out.calls]
        print(f"  {out.calls} -> {', '.join(map(repr, values))}")
        errors = [isinstance(value, Exception) for value in values]
        results = ToolResults.of(out.calls, [str(value) for value in values], errors)
        events.append({**turn, "calls": out.calls, "results": results})
        turn = {}
    return None


if __name__ == "__main__":
    adapter = sigadapt.ChatAdapter(on_invalid="reask", max_reasks=2)
    for number, wire in enumerate(("openai", "anthropic", "gemini")[: len(named()) or 3]):
        with language_model(SCRIPT, wire, number) as lm, dspy.context(lm=lm, adapter=adapter):
            print(lm.model)
            print(" ", answer("How is the weather in Atlantis?"))
