"""An evaluation of 500 rows shows how often the model makes the right calls, and what's wrong with the rest.

Calls are compared by the tools' schemas: the order of keys, 1 or 1.0 and omitted defaults don't matter. A bad
call is kept (`on_invalid="keep"`) and counts as wrong, so one bad answer doesn't hide the others.

    python examples/evaluation.py [openai/gpt-4o-mini]
"""

import json
import re
from collections import Counter
from itertools import product

import dspy
from played import language_model

import sigadapt
from sigadapt import ToolCalls, ToolDecls, metrics
from sigadapt.testing import Answer, Call, Received

CITIES = [f"City {number}" for number in range(100)]
DAYS = [1, 2, 3, 5, 7]


def get_weather(city: str, days: int = 3) -> str:
    """Weather for a city.

    Args:
        city: The city's name.
        days: How many days ahead.
    """
    raise NotImplementedError  # never runs: only the calls are scored


TOOLS = ToolDecls(get_weather)


class Pick(dspy.Signature):
    """Pick the tools that answer the question."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls | None = dspy.OutputField()


def row(city: str, days: int) -> dspy.Example:
    """A question, and the calls that answer it."""
    calls = [{"name": "get_weather", "args": {"city": city, "days": days}}]
    question = f"Weather in {city} for {days} days?"
    return dspy.Example(question=question, tools=TOOLS, calls=calls).with_inputs("question", "tools")


def script(received: Received) -> Answer:
    """The scripted model: it leaves defaults out, and is wrong in every tenth city."""
    found = re.search(r"in (City (\d+)) for (\d+)", received.body["messages"][-1]["content"])
    city, number, days = found[1], int(found[2]), int(found[3])
    if number % 20 == 9:
        return Answer(calls=[Call("get_weather", {"city": city, "days": "a few"})])
    if number % 20 == 19:
        return Answer(text=f"I do not know {city}.")
    return Answer(calls=[Call("get_weather", {"city": city} if days == 3 else {"city": city, "days": days})])


def main() -> None:
    """Evaluate, and print the scores, the codes of bad calls, and what is wrong in the first rows."""
    rows = [row(city, days) for city, days in product(CITIES, DAYS)]
    adapter = sigadapt.ChatAdapter(on_invalid="keep")
    with language_model(script) as lm, dspy.context(lm=lm, adapter=adapter):
        evaluate = dspy.Evaluate(devset=rows, metric=metrics.ExactMatch(), num_threads=8)
        result = evaluate(dspy.Predict(Pick))
    made = [(gold, pred.calls) for gold, pred, _ in result.results]
    f1 = sum(metrics.compare(gold.calls, calls, TOOLS).f1 for gold, calls in made) / len(made)
    print(f"{len(made)} rows: {result.score:g} % exact, F1 {f1:.2f}")
    print(json.dumps(Counter(bad.code for _, calls in made for bad in calls.invalid)))
    wrong = [(gold, calls) for gold, calls in made if not metrics.compare(gold.calls, calls, TOOLS).exact]
    for gold, calls in wrong[:2]:
        print(gold.question, metrics.compare(gold.calls, calls, TOOLS).feedback)


if __name__ == "__main__":
    main()
