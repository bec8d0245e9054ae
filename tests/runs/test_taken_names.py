"""Names of an agent's fields: each reaches the model and the program, or is refused before a request."""

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any, cast

import dspy
import pytest
from agents import DSPY_AGENT, Shop, serving, submits, turn
from dspy.adapters import ChatAdapter
from dspy.adapters.base import Adapter
from dspy.adapters.types.tool import Tool
from dspy.utils.callback import BaseCallback
from tables import table

import sigadapt
from sigadapt.errors import InvalidSignature
from sigadapt.testing import Call

_OF_CALLS = ("__call__", "acall", "__init__")
BETWEEN: list[Any] = [
    *(getattr(kind, name) for kind in (dspy.Predict, dspy.Module, DSPY_AGENT) for name in vars(kind)),
    *(getattr(kind, name) for kind in (Adapter, ChatAdapter, Tool) for name in _OF_CALLS),
    *(dspy.Prediction.__init__, dspy.Example.__init__, sigadapt.stream, sigadapt.ReAct.__init__),
]
"""What DSPy and sigadapt run between a program and its model, with the fields as keywords."""

OPTIONS = ("config", "demos", "lm", "max_iters", "new_signature", "tool_calls", "next_thought", "completions")
ATTRIBUTES = ("signature", "instructions", "fields", "input_fields", "output_fields")
USUAL: Any = table(__file__, "USUAL")


def names() -> list[str]:
    """Every parameter between a program and its model, and names that people use."""
    found = {*OPTIONS, *ATTRIBUTES, *USUAL, "instance"}
    for function in BETWEEN:
        if callable(function):
            found |= set(inspect.signature(cast("Any", function)).parameters)
    return sorted(name for name in found - {"question", "answer"} if not name.startswith("_"))


def is_refused(error: Exception, name: str) -> bool:
    """Whether a refusal names a field: DSPy's own does so, too."""
    is_told = isinstance(error, (InvalidSignature, ValueError))
    return is_told and any(f"{quote}{name}{quote}" in str(error) for quote in "`'\"")


def ended(run: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """What a run gives, or the error that it ends in."""
    try:
        return run(), None
    except Exception as error:  # noqa: BLE001  (each test says which errors are right)
        return None, error


@pytest.mark.filterwarnings("ignore:Field name")
@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("name", names())
def test_an_input_of_any_name(name: str, how: str) -> None:
    """agent-runs: A name that the agent uses is refused."""

    def run() -> Any:
        agent = sigadapt.ReAct(f"question, {name} -> answer", tools=Shop().tools)
        inputs = {"question": "q", name: "VALUE"}
        return agent(**inputs) if how == "sync" else asyncio.run(agent.acall(**inputs))

    with serving([submits()]) as net, dspy.context(callbacks=[BaseCallback()]):
        out, error = ended(run)
    if error is None:
        assert out.answer == "Done."
        assert "VALUE" in json.dumps(net.received[0].body["messages"])
    else:
        assert is_refused(error, name), error
        assert not net.received


@pytest.mark.filterwarnings("ignore:Field name")
@pytest.mark.parametrize("name", names())
def test_an_output_of_any_name(name: str) -> None:
    """agent-runs: A name that the agent uses is refused."""
    with serving([turn(Call("submit", {name: "VALUE"}))]) as net:
        out, error = ended(lambda: sigadapt.ReAct(f"question -> {name}", tools=Shop().tools)(question="q"))
    if error is None:
        assert out[name] == "VALUE"
        assert [call.name for each in sigadapt.rounds(out) for call in each.calls] == ["submit"]
    else:
        assert is_refused(error, name), error
        assert not net.received


@pytest.mark.filterwarnings("ignore:Field name")
@pytest.mark.parametrize("name", [*OPTIONS, "self", "instance"])
def test_a_signature_that_is_a_class(name: str) -> None:
    """agent-runs: A name that the agent uses is refused."""
    annotations = {name: str, "answer": str}
    fields = {name: dspy.InputField(), "answer": dspy.OutputField(), "__annotations__": annotations}
    signature: Any = type("Asks", (dspy.Signature,), {"__doc__": "Answer.", **fields})
    with pytest.raises(InvalidSignature) as caught:
        sigadapt.ReAct(signature, tools=Shop().tools)
    assert caught.value.field == name


@pytest.mark.parametrize("name", ["tool_calls", "next_thought"])
def test_dspys_agent_swallows_no_input(name: str) -> None:
    """agent-runs: A name that the agent uses is refused."""
    agent = DSPY_AGENT(f"question, {name} -> answer", tools=Shop().tools)
    with serving([submits()]) as net, pytest.raises(InvalidSignature) as caught:
        agent(**{"question": "q", name: "VALUE"})
    assert caught.value.field == name
    assert not net.received
