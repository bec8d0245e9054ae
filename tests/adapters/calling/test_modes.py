"""Which way a model calls tools, and what happens where an endpoint refuses tools."""

import asyncio
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import LMError
from support import PARIS, May, get_weather

import sigadapt
from sigadapt import ToolDecls
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, Failure, LoopbackProvider, Received

SAID = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'

REFUSALS = {
    "vLLM": (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    "Ollama": (400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
    "llama.cpp": (500, "tools param requires --jinja flag"),
    "llama.cpp, older": (500, "Unsupported param: tools"),
    "OpenRouter": (404, 'No endpoints found that support tool use. Try disabling "get_weather".'),
    "TGI": (422, "Tool error: function calling is not supported by this model"),
    "Bedrock": (400, "This model doesn't support tool use."),
    "a gateway": (400, "`tools` are not supported for this model"),
    "LiteLLM": (
        400,
        "litellm.UnsupportedParamsError: perplexity does not support parameters: ['tools'], for model=sonar.",
    ),
    "another gateway": (400, "Function calling is not enabled for this model"),
    "LM Studio": (400, "The template of this model does not support tools"),
}
OTHERS = {
    "a tool": (400, "the tool 'x' is not supported: see tools_not_supported"),
    "a bad schema": (400, "Invalid schema for function 'get_weather': missing type"),
    "a forced choice": (400, "tool_choice 'required' is not supported by this server"),
    "a choice by itself": (400, "this model does not support tool_choice"),
    "LiteLLM, a choice": (400, "openai does not support parameters: ['tool_choice'], for model=m."),
    "parallel calls": (400, "this model does not support parallel tool calls"),
    "streaming": (400, "This model doesn't support tool use in streaming mode."),
    "too long": (400, "context length exceeded"),
    "overloaded": (503, "overloaded"),
    "forbidden": (401, "tools are not supported with this key"),
}


def in_either_way(received: Received) -> Answer:
    return Answer(calls=[PARIS]) if "tools" in received.body else Answer(text=SAID)


def mode_of(model: str, **options: Any) -> str:
    """The way in which the tools arrive."""
    with LoopbackProvider(in_either_way) as provider:
        ask(dspy.LM(**provider.lm_options("openai", model=model)), **options)
    (received,) = provider.received
    assert ("tools" in received.body) is ("<tools>" not in str(received.body))
    return "native" if "tools" in received.body else "prompted"


def ask(lm: Any, **options: Any) -> Any:
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(**options)):
        return dspy.Predict(May)(question="weather?", tools=ToolDecls([get_weather]))


class Completing(dspy.LM):
    """A text-completion model that calls a tool."""

    prompt = ""

    def __call__(self, prompt: Any = None, **settings: Any) -> Any:
        self.prompt = prompt
        return [SAID]


def test_auto_decides_by_what_is_facts_of_a_model() -> None:
    """prompted-calling: The mode of a model."""
    assert mode_of("openai/gpt-4o-mini") == "native"
    assert mode_of("openai/nobody-knows-this") == "native"
    completing: Any = Completing("openai/x", model_type="text")
    assert [call.args for call in ask(completing).calls] == [{"city": "Paris"}]
    assert "<tools>" in completing.prompt
    assert mode_of("openai/gpt-4o-mini", tool_calling="prompted") == "prompted"
    named = {"openai/gpt-4o-mini": "prompted"}
    assert mode_of("openai/gpt-4o-mini", tool_calling=named) == "prompted"
    assert mode_of("openai/gpt-4.1", tool_calling=named) == "native"


def test_native_calling_of_a_text_completion_model_is_refused() -> None:
    """adapter-plug-in: A model that cannot be sent tools is refused."""
    with pytest.raises(InvalidOption) as caught:
        ask(Completing("openai/x", model_type="text"), tool_calling="native")
    assert caught.value.field == "tool_calling"


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(InvalidOption) as caught:
        sigadapt.ChatAdapter(call_format="hermess")
    assert "Did you mean 'hermes'" in str(caught.value)


def asked(
    provider: LoopbackProvider, *, engine: str, is_async: bool = False, times: int = 1, **options: Any
) -> Any:
    options_of_lm: Any = {
        **provider.lm_options("openai"),
        "model": "openai/nobody-knows-this",
        "engine": engine,
    }
    options_of_lm |= {"cache": False, "num_retries": 0}
    lm = dspy.LM(**options_of_lm)
    predict, out = dspy.Predict(May), None
    with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(**options)):
        for _ in range(times):
            given: Any = {"question": "weather?", "tools": ToolDecls([get_weather])}
            out = asyncio.run(predict.acall(**given)) if is_async else predict(**given)
    return out, lm


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("server", REFUSALS)
def test_an_endpoint_that_refuses_tools_is_prompted_from_then_on(
    server: str, engine: str, is_async: bool
) -> None:
    """prompted-calling: An endpoint refuses tools."""
    status, said = REFUSALS[server]

    def policy(received: Received) -> Any:
        return Failure(status, said) if "tools" in received.body else Answer(text=SAID)

    with LoopbackProvider(policy) as provider:
        out, lm = asked(provider, engine=engine, is_async=is_async, times=2)
    assert ["tools" in received.body for received in provider.received] == [True, False, False]
    assert [call.args for call in out.calls] == [{"city": "Paris"}]
    first, second = (entry["changes"] for entry in lm.history)
    assert any(said[:40] in change.why for change in first), "the refusal is on record, once"
    assert not any(said[:40] in change.why for change in second)


@pytest.mark.parametrize("reason", OTHERS)
def test_no_other_error_changes_the_mode(reason: str) -> None:
    """prompted-calling: Another error."""
    status, said = OTHERS[reason]
    with LoopbackProvider(lambda _: Failure(status, said)) as provider, pytest.raises(LMError):
        asked(provider, engine="auto")
    assert len(provider.received) == 1


def test_native_calls_need_no_reading_of_text() -> None:
    with LoopbackProvider([Answer(text=SAID, calls=[PARIS])]) as provider:
        out, _ = asked(provider, engine="auto", recover=True)
    assert [call.altered for call in out.calls] == [()]
    assert out.calls.text == SAID
