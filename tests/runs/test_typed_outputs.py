"""Agents whose outputs are types with definitions, beside DSPy's own adapter."""

from dataclasses import dataclass
from typing import Any, cast

import dspy
import pydantic
import pytest
from support import WIRES, serving

import sigadapt
from sigadapt import Files, Sources
from sigadapt.errors import InvalidOption, InvalidSignature
from sigadapt.testing import Answer, Call


class Part(pydantic.BaseModel):
    name: str
    parts: list["Part"] = []


@dataclass
class Stop:
    city: str


PART = {"name": "a", "parts": [{"name": "b"}]}
OUTPUTS: dict[str, tuple[Any, Any]] = {
    "list of models": (list[Part], [PART]),
    "model or None": (Part | None, PART),
    "dict of models": (dict[str, Part], {"k": PART}),
    "model that holds itself": (Part, PART),
    "list of dataclasses": (list[Stop], [{"city": "Paris"}]),
}
SIGNATURE: Any = cast("Any", dspy.Signature)
AGENTS: list[Any] = [dspy.ReActV2, sigadapt.ReAct]


def ask(agent: Any, adapter: Any, wire: str, script: list[Answer]) -> Any:
    with serving(script, wire), dspy.context(adapter=adapter):
        first = agent(question="Which?")
        return first, agent(question="And then?", history=first.history)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("agent_class", AGENTS)
def test_an_output_may_be_of_any_type(agent_class: Any, name: str, wire: str):
    """tool-declarations: Arguments of a DSPy tool may bring definitions."""
    annotation, value = OUTPUTS[name]
    signature = SIGNATURE({"question": (str, dspy.InputField()), "out": (annotation, dspy.OutputField())})
    script = [Answer(calls=[Call("submit", {"out": value})])] * 2
    agent = agent_class(signature, tools=[])
    dspys: Any = dspy.ReActV2(signature, tools=[])
    with_dspy = ask(dspys, dspy.ChatAdapter(use_native_function_calling=True), wire, script)
    predictions = ask(agent, sigadapt.ChatAdapter(), wire, script)
    expected = pydantic.TypeAdapter(annotation).validate_python(value)
    assert [prediction.out for prediction in predictions] == [expected, expected]
    assert [prediction.out for prediction in with_dspy] == [expected, expected]


@pytest.mark.parametrize("kind", [Sources, Files])
def test_an_agent_writes_no_sources(kind: Any):
    """server-tools: An agent's outputs are no sources."""
    signature = SIGNATURE({"question": (str, dspy.InputField()), "found": (kind, dspy.OutputField())})
    with pytest.raises(InvalidSignature, match="invent 'found'"):
        sigadapt.ReAct(signature, tools=[])
    with serving([Answer(text="Hi.")]) as provider:
        agent: Any = dspy.ReActV2(signature, tools=[])
        with pytest.raises(InvalidSignature, match="invent 'found'"):
            agent(question="Which?")
    assert not provider.received


def test_an_agent_without_a_question_asks_nothing():
    """agent-runs: An agent refuses inputs that it does not have."""
    agent: Any = sigadapt.ReAct("question -> answer", tools=[])
    with serving([Answer(calls=[Call("submit", {"answer": "Hi."})])] * 2) as provider:
        with pytest.raises(InvalidOption, match="Did you mean 'question'"):
            agent(questoin="Which?")
        with pytest.raises(InvalidOption, match="no input and no history"):
            agent()
        assert not provider.received
        first = agent(question="Which?")
        assert agent(history=first.history).answer == "Hi."


@pytest.mark.parametrize("max_iters", ["5", -1, 2.0, True, None])
def test_max_iters_is_a_count(max_iters: Any):
    with pytest.raises(InvalidOption, match="max_iters"):
        sigadapt.ReAct("question -> answer", tools=[], max_iters=max_iters)
