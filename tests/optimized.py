"""Programs with tool fields, every optimizer over them, and a model that learns from what they find.

    python tests/optimized.py FOLDER

loads what `save` wrote into FOLDER, as a program does that was not there when it was optimized, asks each
program once, and prints the bodies of all requests as JSON.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy

import sigadapt
from sigadapt import ToolDecls, metrics
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

CITIES = ("Paris", "Rome", "Oslo", "Lima", "Cairo")
LEARNT = "Ask for every city by its name."
"""What makes the model below good. It is also good if it is shown how once, by a demonstration."""


def get_weather(city: str, days: int = 3) -> str:
    """Weather for a city."""
    return f"Sunny in {city}."


def get_time(zone: str) -> str:
    """Time in a zone."""
    return "noon"


class Pick(dspy.Signature):
    """Use the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: sigadapt.ToolCalls = dspy.OutputField()


class Reply(dspy.Signature):
    """Answer the question."""

    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


class Picker(dspy.Module):
    """A program that holds its tools, as functions."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = [get_weather, get_time]
        self.pick = dspy.Predict(Pick)

    def forward(self, question: str) -> dspy.Prediction:
        return self.pick(question=question, tools=self.tools)


class Given(dspy.Module):
    """A program that is given its tools with each question."""

    def __init__(self) -> None:
        super().__init__()
        self.pick = dspy.Predict(Pick)

    def forward(self, question: str, tools: ToolDecls) -> dspy.Prediction:
        return self.pick(question=question, tools=tools)


class Described(dspy.Module):
    """A program that holds the descriptions of its tools."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = sigadapt.ToolTexts([get_weather, get_time], ["get_weather", "get_weather.city"])
        self.pick = dspy.Predict(Pick)

    def forward(self, question: str) -> dspy.Prediction:
        return self.pick(question=question, tools=self.tools(question=question))


class Agent(dspy.Module):
    """A program that runs its tools, with DSPy's own agent."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = dspy.ReActV2(Reply, tools=[get_weather, get_time])

    def forward(self, question: str) -> dspy.Prediction:
        return self.loop(question=question)


optimizers: Any = dspy  # their types are partial
PROGRAMS: dict[str, type[dspy.Module]] = {
    "picker": Picker,
    "given": Given,
    "described": Described,
    "agent": Agent,
}
OPTIMIZERS: dict[str, Callable[[Any, Any, list[Any], Any], Any]] = {
    "few shot": lambda program, metric, examples, lm: optimizers.BootstrapFewShot(
        metric=metric, max_bootstrapped_demos=2, max_labeled_demos=3
    ).compile(program, trainset=examples),
    "random search": lambda program, metric, examples, lm: optimizers.BootstrapFewShotWithRandomSearch(
        metric=metric, max_bootstrapped_demos=1, max_labeled_demos=1, num_candidate_programs=1, num_threads=1
    ).compile(program, trainset=examples, valset=examples),
    "MIPROv2": lambda program, metric, examples, lm: optimizers.MIPROv2(
        metric=metric,
        auto=None,
        num_candidates=2,
        max_bootstrapped_demos=1,
        max_labeled_demos=1,
        num_threads=1,
        prompt_model=lm,
        task_model=lm,
    ).compile(program, trainset=examples, valset=examples, num_trials=3, minibatch=False),
    "SIMBA": lambda program, metric, examples, lm: optimizers.SIMBA(
        metric=metric, max_steps=2, bsize=5, num_candidates=2, max_demos=2, num_threads=1
    ).compile(program, trainset=examples),
    "GEPA": lambda program, metric, examples, lm: optimizers.GEPA(
        metric=metric,
        max_metric_calls=20,
        reflection_lm=lm,
        reflection_minibatch_size=5,
        num_threads=1,
        add_format_failure_as_feedback=True,
    ).compile(program, trainset=examples),
}


def examples(kind: str) -> list[dspy.Example]:
    """The training set of a program."""
    given = {"tools": ToolDecls([get_weather, get_time])} if kind == "given" else {}
    made: list[dspy.Example] = []
    for city in CITIES:
        calls = [{"name": "get_weather", "args": {"city": city}}]
        example = dspy.Example(
            question=f"Weather in {city}?", calls=calls, answer=f"Sunny in {city}.", **given
        )
        made.append(example.with_inputs("question", *given))
    return made


def answer_matches(
    gold: Any, pred: Any, trace: Any = None, pred_name: str | None = None, pred_trace: Any = None
) -> Any:
    """The agent's metric."""
    right = gold.answer == getattr(pred, "answer", None)
    return dspy.Prediction(score=float(right), feedback="Ask for the city.") if pred_name else right


def metric_of(kind: str) -> Any:
    """The metric of a program."""
    return answer_matches if kind == "agent" else metrics.F1(tools=[get_weather, get_time])


def model(received: Received) -> Answer:
    """A model that is wrong in Rome and asks nothing in Oslo until it has learnt; also the prompt model."""
    body = received.body
    messages: list[Any] = body["messages"]
    if "tools" not in body:
        return Answer(text=_as_prompt_model(messages))
    last = messages[-1]
    if last["role"] == "tool":
        return Answer(calls=[Call("submit", {"answer": last["content"]})])
    city = next(city for city in (*CITIES, "Quito") if city in json.dumps(last))
    has_learnt = LEARNT in json.dumps(body) or any(m["role"] == "assistant" for m in messages)
    if city == "Rome" and not has_learnt:
        return Answer(calls=[Call("get_weather", {"town": city})])
    if city == "Oslo" and not has_learnt:
        return Answer(text="I do not know.")
    return Answer(text="Let me look.", calls=[Call("get_weather", {"city": city})])


def _as_prompt_model(messages: list[Any]) -> str:
    asked = json.dumps(messages)
    if "new_instruction" in asked:
        return json.dumps({"new_instruction": LEARNT})
    fields = dict.fromkeys(re.findall(r"\[\[ ## (\w+) ## \]\]", messages[-1]["content"]))
    advice = json.dumps({"pick": LEARNT, "loop.react": LEARNT})
    return "\n\n".join(
        f"[[ ## {field} ## ]]\n{advice if field == 'module_advice' else LEARNT}" for field in fields
    )


def conversation(provider: LoopbackProvider, program: Any, kind: str) -> list[Any]:
    """The bodies of the requests with which a program answers a new question."""
    before = len(provider.received)
    given = {"tools": [get_weather, get_time]} if kind == "given" else {}
    program(question="Weather in Quito?", **given)
    return [received.body for received in provider.received[before:]]


def path_of(folder: Path, kind: str, optimizer: str, form: str) -> Path:
    """Where a program is saved: as state in one JSON file, or whole in a folder."""
    name = f"{kind} {optimizer}"
    return folder / (f"{name}.json" if form == "state" else name)


def main(folder: Path) -> None:
    """Load and ask every program that is there."""
    told: dict[str, Any] = {}
    with LoopbackProvider(model) as provider:
        dspy.configure(lm=dspy.LM(**provider.lm_options("openai")), adapter=sigadapt.ChatAdapter())
        for path in sorted(folder.iterdir()):
            kind = path.stem.split()[0]
            if path.suffix:
                program = PROGRAMS[kind]()
                program.load(path)
            else:
                program = dspy.load(str(path), allow_pickle=True)
            told[path.name] = conversation(provider, program, kind)
    print(json.dumps(told))  # noqa: T201  (the test reads it)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
