"""Descriptions of tools as data of a program: changed by hand and by GEPA, saved, loaded, sent."""

import json
from pathlib import Path
from typing import Annotated, Any

import cloudpickle
import dspy
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import run_python
from support import Must, serving

import sigadapt
from sigadapt import ToolDecl, ToolDecls, Toolset, ToolTexts
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, Call


def get_weather(city: Annotated[str, pydantic.Field(description="Where.")], days: int = 3) -> str:
    """Weather for a city."""
    return city


def get_time(zone: str) -> str:
    """Time in a zone."""
    return zone


class Weather(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tools = ToolTexts(
            [get_weather, get_time], ["get_weather", "get_weather.city", "get_weather.days"]
        )
        self.pick = dspy.Predict(Must)

    def forward(self, question: str) -> dspy.Prediction:
        return self.pick(question=question, tools=self.tools(question=question))


def sent(program: Any) -> list[Any]:
    """The tools that a program sends."""
    answer = Answer(calls=[Call("get_weather", {"city": "Paris"})])
    with serving([answer]) as provider:
        program(question="Paris?")
        return [tool["function"] for tool in provider.received[0].body["tools"]]


SCRIPT = """
import sys, json, dspy
sys.path[:0] = [{tests!r}, {here!r}]
import test_tool_texts as here
program = here.Weather() if {path!r}.endswith(".json") else dspy.load({path!r}, allow_pickle=True)
if {path!r}.endswith(".json"):
    program.load({path!r})
print(json.dumps(here.sent(program)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["state.json", "whole"])
def test_a_new_process_sends_what_was_saved(form: str, tmp_path: Path):
    """tool-declarations: Saved texts are sent by a new process."""
    program = Weather()
    program.tools["get_weather"], program.tools["get_weather.city"] = "Forecasts.", "In English."
    path = str(tmp_path / form)
    program.save(path, save_program=form == "whole")
    here = Path(__file__).parent
    script = SCRIPT.format(tests=str(here.parent), here=str(here), path=path)
    done = run_python("-c", script)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == sent(program)
    assert "In English." in done.stdout


def metric(gold: Any, pred: Any, trace: Any = None, pred_name: str | None = None, _: Any = None) -> Any:
    score = sigadapt.metrics.F1()(gold, pred)
    return dspy.Prediction(score=score, feedback="Use Celsius.") if pred_name else score


def test_gepa_writes_a_better_description():
    """tool-declarations: GEPA changes the description of a tool."""
    better, asked = "Weather for a city, by its English name.", list[str]()

    def model(received: Any) -> Answer:
        body = received.body
        if "tools" not in body:
            asked.append(json.dumps(body["messages"]))
            return Answer(text=json.dumps({"new_instruction": better}))
        knows = better in json.dumps(body["tools"])
        return Answer(calls=[Call("get_weather", {"city": "Paris" if knows else "Parigi"})])

    calls = [{"name": "get_weather", "args": {"city": "Paris"}}]
    examples = [
        dspy.Example(question=f"Che tempo fa? {n}", calls=calls).with_inputs("question") for n in (1, 2)
    ]
    options: dict[str, Any] = {"max_metric_calls": 12, "reflection_minibatch_size": 2, "num_threads": 1}
    with serving(model):
        settings: Any = dspy.settings
        optimizer: Any = dspy.GEPA(metric=metric, reflection_lm=settings.lm, **options)
        program = optimizer.compile(Weather(), trainset=examples)
    assert program.tools["get_weather"] == better
    assert "Che tempo fa?" in asked[0]
    assert "Weather for a city." in asked[0]
    assert program.tools["get_weather.days"] == ""
    assert "description" not in program.tools()["get_weather"].parameters["properties"]["days"]
    assert program.pick.signature.instructions == "Answer with the tools."


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_text_that_nobody_changed_is_sent_as_written(tool: str, parameter: str):
    """tool-declarations: An unchanged text is sent as its author wrote it."""
    schema = {"type": "object", "properties": {"a.b": {"description": parameter}, "c": True}}
    decl = ToolDecl("get.it", tool, schema)
    texts = ToolTexts(decl, ["get.it", "get.it.c"])
    assert texts().to_openai() == ToolDecls(decl).to_openai()
    assert cloudpickle.loads(cloudpickle.dumps(texts))().to_openai() == texts().to_openai()


def test_a_text_waits_for_its_tool():
    """tool-declarations: A text waits for its tool."""
    texts = ToolTexts([get_weather, get_time])
    texts["get_time"] = "The hour."
    search = {"type": "web_search"}
    assert texts([get_weather, search]).to_openai() == ToolDecls([get_weather, search]).to_openai()
    assert texts(Toolset("clock", [get_time])).to_openai()[0]["function"]["description"] == "The hour."


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("get_wether", "get_weather"),
        ("get_weather.town", "tool.parameter"),
        ("get_time.zones", "'get_time.zone'"),
    ],
)
def test_a_text_of_nothing_is_refused(name: str, fix: str):
    """tool-declarations: A text of no tool is refused."""
    with pytest.raises(InvalidOption, match=fix) as caught:
        ToolTexts([get_weather, get_time], [name])
    assert caught.value.code == "unknown_text"


def test_tools_and_parameters_with_dots_have_texts():
    """tool-declarations: A changed text is sent, and the function stays."""

    def tool(name: str, *parameters: str) -> dict[str, Any]:
        properties = {each: {"type": "string", "description": f"{name} {each}"} for each in parameters}
        return {"name": name, "parameters": {"type": "object", "properties": properties}}

    texts = ToolTexts([tool("a", "x.y"), tool("a.b", "c.d", "c")], ["a.x.y", "a.b.c.d", "a.b.c", "a.b"])
    assert [texts[name] for name in texts.texts] == ["a x.y", "a.b c.d", "a.b c", ""]
    texts["a.b.c.d"] = "New."
    assert texts()["a.b"].parameters["properties"]["c.d"]["description"] == "New."


@pytest.mark.parametrize("most", [0, 3])
def test_the_trace_stays_within_dspys_bound(most: int):
    texts, trace = ToolTexts([get_weather, get_time]), list[Any]()
    with dspy.context(trace=trace, max_trace_size=most):
        for _ in range(4):
            texts(question="?")
    assert len(trace) == most


def test_texts_are_looped_over_by_name() -> None:
    """tool-declarations: Texts of tools are looked through as a mapping is."""
    texts = ToolTexts([{"name": "now", "description": "The time."}, {"name": "rain"}], ["now", "rain"])
    assert [*texts] == ["now", "rain"]
    assert {name: texts[name] for name in texts} == {"now": "The time.", "rain": ""}
    odd: list[Any] = ["snow", 0, None, []]
    assert ("now" in texts, [each in texts for each in odd]) == (True, [False] * 4)
    for name in odd:
        with pytest.raises(InvalidOption) as caught:
            texts[name]
        assert caught.value.code == "unknown_text"
