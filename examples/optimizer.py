"""An optimizer rewrites the description of a tool, and `save` keeps it.

`ToolTexts` holds descriptions as a part of the program. GEPA reads the question, the description and what was
wrong with the calls, and writes a better one. The function keeps its docstring.

    python examples/optimizer.py [openai/gpt-4o-mini]
"""

import json

import dspy
from dspy.teleprompt.gepa import InstructionProposer
from played import language_model

import sigadapt
from sigadapt import ToolCalls, ToolDecls, ToolTexts, metrics
from sigadapt.testing import Answer, Call, Received

BETTER = "Weather for a city, by its English name: Munich, not München."
CITIES = {"München": "Munich", "Roma": "Rome", "Lisboa": "Lisbon", "Praha": "Prague"}


def get_weather(city: str) -> str:
    """Weather."""
    raise NotImplementedError  # an optimizer of calls runs none


class Pick(dspy.Signature):
    """Pick the tools that answer the question."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls | None = dspy.OutputField()


class Picker(dspy.Module):
    """The program: its tools' descriptions are parameters, as the instructions of its predictor are."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = ToolTexts([get_weather])
        self.pick = dspy.Predict(Pick)

    def forward(self, question: str) -> dspy.Prediction:
        """Pick the calls for a question."""
        return self.pick(question=question, tools=self.tools(question=question))


def script(received: Received) -> Answer:
    """The models that are played: one picks calls by the description, one writes a better description."""
    body = received.body
    if "tools" not in body:
        return Answer(text=json.dumps({"new_instruction": BETTER}))
    asked = next(city for city in CITIES if city in body["messages"][-1]["content"])
    knows = "English" in body["tools"][0]["function"]["description"]
    return Answer(calls=[Call("get_weather", {"city": CITIES[asked] if knows else asked})])


def main() -> None:
    """Optimize, save, load into a new program, and print the scores before and after."""
    rows = [
        dspy.Example(question=f"Weather in {asked}?", calls=[{"name": "get_weather", "args": {"city": city}}])
        for asked, city in CITIES.items()
    ]
    rows = [row.with_inputs("question") for row in rows]
    metric = metrics.F1(tools=[get_weather])
    hint = "Where the input names a tool, write the description of that tool, as its callers should read it."
    # A bad call is kept, so that the metric can say in its feedback what is wrong with it.
    adapter = sigadapt.ChatAdapter(on_invalid="keep")
    with language_model(script) as lm, dspy.context(lm=lm, adapter=adapter):
        evaluate = dspy.Evaluate(devset=rows, metric=metric, num_threads=4)
        before = evaluate(Picker()).score
        proposer = InstructionProposer(additional_instructions=hint)
        gepa = dspy.GEPA(metric, max_metric_calls=24, reflection_lm=lm, instruction_proposer=proposer)
        gepa.compile(Picker(), trainset=rows).save("picker.json")
        program = Picker()
        program.load("picker.json")
        print(f"{before:g} -> {evaluate(program).score:g}")
    print(program.tools["get_weather"])


if __name__ == "__main__":
    main()
