"""Each optimizer of DSPy works on the program of a log, and changes what is sent."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportPrivateUsage=false

import json
import re
from pathlib import Path
from typing import Any

import dspy
import pytest
from logs.made_logs import CITIES, weather_log
from optimized import OPTIMIZERS

import sigadapt
from sigadapt.logs import Adopted, adopt, load
from sigadapt.metrics import F1
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

LEARNT = "READ THE MAP FIRST."
SYSTEM = "You are a weather desk. Use the tools."
CHOSEN = {name: OPTIMIZERS[name] for name in ("few shot", "MIPROv2", "SIMBA", "GEPA")}


def copro(program: Any, metric: Any, examples: list[Any], lm: Any) -> Any:
    optimizers: Any = dspy
    settings = {"num_threads": 1, "display_progress": False}

    def score(example: Any, prediction: Any, trace: Any = None) -> float:
        return float(metric(example, prediction))

    optimizer = optimizers.COPRO(prompt_model=lm, metric=score, breadth=2, depth=1)
    return optimizer.compile(program, trainset=examples, eval_kwargs=settings)


def weather_model(received: Received) -> Answer:
    """A model that misspells Oslo and Riga until it has learnt, or is shown how; also the prompt model."""
    body = received.body
    text = json.dumps(body)
    if "tools" not in body:
        return Answer(text=prompt_model(body["messages"]))
    city = re.findall(r"Weather in (\w+)", text)[-1]
    has_learnt = LEARNT in text or any(message["role"] == "assistant" for message in body["messages"])
    is_wrong = city in ("Oslo", "Riga", "Cork") and not has_learnt
    return Answer(calls=[Call("get_weather", {"city": city.upper() if is_wrong else city})])


def prompt_model(messages: list[Any]) -> str:
    asked = json.dumps(messages)
    if "new_instruction" in asked:
        return json.dumps({"new_instruction": LEARNT})
    fields = dict.fromkeys(re.findall(r"\[\[ ## (\w+) ## \]\]", messages[-1]["content"]))
    advice = json.dumps({"turn": LEARNT})
    return "\n\n".join(
        f"[[ ## {field} ## ]]\n{advice if field == 'module_advice' else LEARNT}" for field in fields
    )


@pytest.fixture(scope="module")
def adopted(tmp_path_factory: pytest.TempPathFactory) -> Adopted:
    """The log, saved and loaded: the program is that of program.py."""
    folder = tmp_path_factory.mktemp("desk")
    adopt(weather_log(SYSTEM)).save(folder)
    return load(folder)


@pytest.mark.parametrize("name", [*CHOSEN, "COPRO"])
def test_an_optimizer_changes_what_is_sent(name: str, adopted: Adopted, tmp_path: Path) -> None:
    """logs: An optimizer changes what is sent"""
    optimize = CHOSEN.get(name, copro)
    with LoopbackProvider(weather_model) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))
        with dspy.context(lm=lm):
            best = optimize(adopted.program.deepcopy(), F1(tools=adopted.tools), adopted.rows, lm)
        best.save(tmp_path / "best.json")
        again: Any = adopted.program.deepcopy()
        again.load(tmp_path / "best.json")
        row = {**adopted.heldout[0].inputs(), "question": "Weather in Quito?"}
        bodies: list[Any] = []
        for program in (adopted.program, best, again):
            before = len(provider.received)
            with dspy.context(lm=lm):
                program(**row)
            bodies.append(provider.received[before].body["messages"])
    recorded, learnt, loaded = bodies
    assert [message["content"] for message in recorded] == [SYSTEM, "Weather in Quito?"]
    assert learnt == loaded
    assert learnt[-1] == recorded[-1]
    if name == "few shot":
        ids = [call["id"] for message in learnt for call in message.get("tool_calls", ())]
        assert learnt[0] == recorded[0]
        assert len(ids) == len({*ids}) >= 2
    elif name == "SIMBA":  # which chooses by chance between a rule and an example
        assert learnt != recorded
    else:
        assert learnt[0]["content"] == LEARNT


def test_an_example_keeps_its_conversation(adopted: Adopted) -> None:
    """logs: An optimizer changes what is sent"""
    history = dspy.History(messages=[{"question": "Hi.", "answer": "Hello."}])
    calls = [{"name": "get_weather", "args": {"city": "Lima"}}]
    program: Any = adopted.program.deepcopy()
    program.turn.demos = [dspy.Example(question="Weather in Lima?", history=history, calls=calls)]
    with (
        LoopbackProvider([Answer(text="ok")]) as provider,
        dspy.context(lm=dspy.LM(**provider.lm_options("anthropic"))),
    ):
        program(**adopted.train[0].inputs())
    sent = provider.received[0].body["messages"]
    roles = [message["role"] for message in sent]
    assert roles == ["user", "assistant", "user", "assistant", "user", "user"]
    assert "not part of this example" in json.dumps(sent)
    assert "is_error" not in json.dumps(sent)


def test_all_cities_are_rows(adopted: Adopted) -> None:
    """logs: The program of a log runs"""
    assert {row.calls[0]["args"]["city"] for row in adopted.rows} == {*CITIES}
    assert sigadapt.ToolDecls(adopted.tools).fingerprint() == adopted.tools.fingerprint()
