"""DSPy's own adapter under a signature with sigadapt's fields."""

import asyncio
from typing import Any, cast

import dspy
import pytest
from dspy.adapters import utils
from support import Ask, May, Must, get_weather, lm_of

import sigadapt
from sigadapt import InvalidSignature, ToolCalls, ToolDecls
from sigadapt.testing import Answer, LoopbackProvider


class ToolsAlone(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls | None = dspy.InputField(default=None)
    answer: str = dspy.OutputField()


class Judge(dspy.Signature):
    """Say whether the calls answer the question."""

    question: str = dspy.InputField()
    calls: ToolCalls = dspy.InputField()
    good: bool = dspy.OutputField()


def called(program: Any, **inputs: Any) -> Any:
    return program(**inputs)


def awaited(program: Any, **inputs: Any) -> Any:
    return asyncio.run(program.acall(**inputs))


OWN: list[Any] = [
    None,
    dspy.ChatAdapter(),
    dspy.ChatAdapter(use_native_function_calling=True),
    dspy.JSONAdapter(),
    dspy.JSONAdapter(use_native_function_calling=False),
    dspy.XMLAdapter(),
    dspy.TwoStepAdapter(dspy.LM("openai/gpt-4o-mini")),
]


@pytest.mark.parametrize("signature", [Must, May, Ask, ToolsAlone])
@pytest.mark.parametrize("adapter", OWN, ids=lambda adapter: type(adapter).__name__)
@pytest.mark.parametrize("run", [called, awaited])
def test_dspys_own_adapter_is_refused_with_the_line_to_add(signature: Any, adapter: Any, run: Any):
    """adapter-plug-in: A forgotten adapter is said before the request."""
    with LoopbackProvider([Answer(text="hi")]) as provider:
        with (
            dspy.context(lm=lm_of(provider), adapter=adapter),
            pytest.raises(
                InvalidSignature, match=r"dspy\.configure\(adapter=sigadapt\.\w+Adapter\(\)\)"
            ) as caught,
        ):
            run(dspy.Predict(signature), question="q", tools=[dspy.Tool(get_weather)])
        assert provider.received == ()
    assert caught.value.code == "forgotten_adapter"


def test_the_line_names_the_adapter_of_the_same_name():
    with (
        dspy.context(lm=dspy.LM("openai/gpt-4o-mini"), adapter=dspy.XMLAdapter()),
        pytest.raises(InvalidSignature, match=r"sigadapt\.XMLAdapter\(\)"),
    ):
        dspy.Predict(Must)(question="q", tools=[get_weather])


@pytest.mark.parametrize("adapter", [dspy.ChatAdapter(), dspy.JSONAdapter(), sigadapt.ChatAdapter()])
def test_calls_as_an_input_are_text_for_any_adapter(adapter: Any):
    """adapter-plug-in: Calls as an input are taken by every adapter."""
    text = '{"good": true}' if isinstance(adapter, dspy.JSONAdapter) else "[[ ## good ## ]]\nTrue"
    with LoopbackProvider([Answer(text=text)]) as provider, dspy.context(lm=lm_of(provider), adapter=adapter):
        out = dspy.Predict(Judge)(question="q", calls=ToolCalls([{"name": "get_weather", "args": {}}]))
        assert out.good is True
        assert "get_weather" in str(provider.received[0].body)


def test_optimizers_describe_the_fields():
    """SIMBA, Refine and GEPA describe a program's signature so, outside of any call."""
    described: Any = cast("Any", utils).get_field_description_string
    with dspy.context(adapter=sigadapt.ChatAdapter()):
        assert "`tools`" in described(May.input_fields)
        assert "`calls`" in described(May.output_fields)
        # GEPA asks a plain ChatAdapter for the format of an answer that it says was wrong; nothing is sent.
        (system, *_) = dspy.ChatAdapter().format(May, [], {})
    assert "`tools` (ToolDecls)" in system["content"]
