"""Each request begins with the bytes of the one before it, whatever storage does in between."""

import json
from itertools import pairwise
from typing import Any

import dspy
import pytest
from support import ENGINES, Turns, by_value, lm_of

import sigadapt
from sigadapt import ToolCalls, ToolResults
from sigadapt.testing import Answer, Call, LoopbackProvider

WIRES = ["openai", "responses", "anthropic", "gemini", "ollama"]
ROWS = ("messages", "contents", "input")


def look_up(city: str, days: int = 3) -> str:
    """Look something up."""
    raise AssertionError


def rows_of(body: dict[str, Any]) -> list[str]:
    rows = next(body[key] for key in ROWS if key in body)
    return [json.dumps(row) for row in rows]


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_request_begins_with_the_one_before_it(wire: str, mode: Any) -> None:
    """conversations: Storage that reorders keys changes no request."""
    calls = [Call("look_up", {"days": 1, "city": "Paris"}), Call("look_up", {"city": "Rome"})]
    text = '<tool_call>\n{"name": "look_up", "arguments": {"days": 1, "city": "Paris"}}\n</tool_call>'
    answer = Answer(text="Look.", calls=calls) if mode == "native" else Answer(text=text)
    adapter = sigadapt.ChatAdapter(tool_calling=mode, repair=True)
    results: ToolResults | None = None
    with LoopbackProvider(lambda _: answer) as provider:
        with dspy.context(lm=lm_of(provider, wire, cache=False), adapter=adapter):
            for _ in range(3):
                out: Any = dspy.Predict(Turns)(question="?", tools=[look_up], results=results)
                more = ToolResults.of(out.calls, [{"z": 1.0, "a": [{"y": 2, "b": None}]}] * len(out.calls))
                stored: list[Any] = (
                    [] if results is None else by_value(json.loads(results.model_dump_json()))["rounds"]
                )
                results = ToolResults.model_validate({"rounds": [*stored, *more.rounds]})
        bodies = [rows_of(each.body) for each in provider.received]
    for before, after in pairwise(bodies):
        assert len(after) > len(before)
        assert after[: len(before)] == before


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_that_a_program_wrote_keeps_its_order(wire: str) -> None:
    """conversations: Storage that reorders keys changes no request."""
    calls = ToolCalls(tool_calls=[sigadapt.ToolCall(id="t1", name="look_up", args={"days": 1, "city": "X"})])
    results = ToolResults.of(calls, [{"z": 1, "a": 2}])
    saved = by_value(json.loads(results.model_dump_json()))
    with LoopbackProvider(lambda _: Answer(text="Done.")) as provider:
        adapter = sigadapt.ChatAdapter(tool_calling="native")
        with dspy.context(lm=lm_of(provider, wire, cache=False), adapter=adapter):
            for given in (results, ToolResults.model_validate(saved)):
                dspy.Predict(Turns)(question="?", tools=[look_up], results=given)
        first, second = [rows_of(each.body) for each in provider.received]
    assert first == second


@pytest.mark.parametrize("engine", ENGINES)
def test_an_integer_of_any_size_goes_back_in_an_object(engine: str) -> None:
    """conversations: A turn goes back as it came."""
    count = {"name": "count", "parameters": {"type": "object"}}
    answers = [Answer(calls=[Call("count", {"n": 10**30})]), Answer(text="Done.")]
    with (
        LoopbackProvider(answers) as provider,
        dspy.context(lm=lm_of(provider, "anthropic", engine), adapter=sigadapt.ChatAdapter()),
    ):
        asked: Any = dspy.Predict(Turns)(question="How many?", tools=[count])
        dspy.Predict(Turns)(question="How many?", tools=[count], results=ToolResults.of(asked.calls, [1]))
    assert str(10**30) in json.dumps(provider.received[1].body["messages"])
