"""LiteLLM's keywords on `dspy.LM`: the same leaves as under DSPy's own adapter, over the same engine."""

import asyncio
import copy
from collections.abc import Iterator
from typing import Any

import dspy
import pytest
from support import ENGINES, PARIS, get_weather, lm_of

import sigadapt
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, LoopbackProvider


class Lists(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    answer: str = dspy.OutputField()
    calls: dspy.ToolCalls = dspy.OutputField()


HARM = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
BUDGET = {"type": "enabled", "budget_tokens": 1024}
KEYWORDS: list[tuple[str, dict[str, Any]]] = [
    ("openai", {"seed": 7}),
    ("openai", {"logit_bias": {"1": 1}}),
    ("openai", {"user": "u"}),
    ("openai", {"metadata": {"a": "b"}}),
    ("openai", {"top_k": 5}),
    ("openai", {"min_p": 0.1}),
    ("openai", {"repetition_penalty": 1.1}),
    ("openai", {"extra_body": {"x": 1}}),
    ("openai", {"extra_headers": {"x-a": "b"}}),
    ("openai", {"headers": {"x-a": "b"}}),
    ("openai", {"drop_params": True, "thinking": BUDGET}),
    ("openai", {"additional_drop_params": ["temperature"], "temperature": 0.5}),
    ("openai", {"custom_llm_provider": "openai"}),
    ("openai", {"organization": "o"}),
    ("openai", {"project": "p"}),
    ("openai", {"api_version": "v"}),
    ("openai", {"num_ctx": 4096}),
    ("openai", {"region": "us"}),
    ("openai", {"aws_region_name": "us-east-1"}),
    ("openai", {"allowed_openai_params": ["foo"], "foo": 1}),
    ("openai", {"web_search_options": {}}),
    ("openai", {"modalities": ["text"]}),
    ("openai", {"input_cost_per_token": 0.1}),
    ("openai", {"max_retries": 0}),
    ("openai", {"service_tier": "flex", "store": True, "top_p": 0.5}),
    ("anthropic", {"thinking": BUDGET}),
    ("anthropic", {"drop_params": True, "seed": 1}),
    ("anthropic", {"context_management": {"edits": []}}),
    ("anthropic", {"container": {"id": "c"}}),
    ("anthropic", {"mcp_servers": []}),
    ("anthropic", {"extra_headers": {"x-a": "b"}, "top_k": 5}),
    ("gemini", {"safety_settings": HARM}),
    ("gemini", {"thinking": BUDGET}),
    ("gemini", {"vertex_project": "p", "vertex_location": "l"}),
    ("gemini", {"extra_body": {"x": 1}}),
    ("ollama", {"num_ctx": 4096}),
    ("ollama", {"keep_alive": "5m"}),
    ("ollama", {"mirostat": 1, "repeat_penalty": 1.2}),
    ("ollama", {"extra_body": {"x": 1}}),
    ("responses", {"truncation": "auto"}),
    ("responses", {"include": ["x"]}),
    ("responses", {"previous_response_id": "r"}),
    ("responses", {"reasoning": {"effort": "low"}}),
    ("responses", {"text": {"verbosity": "low"}}),
    ("responses", {"max_tool_calls": 3}),
    ("responses", {"extra_body": {"x": 1}}),
    ("responses", {"drop_params": True}),
    *[(wire, {"max_tokens": 120}) for wire in ("openai", "anthropic", "gemini")],
    ("responses", {"max_tokens": 16000}),
    ("openai", {"max_completion_tokens": 120}),
    ("openai", {"max_tokens": 120, "min_p": 0.1}),
    ("openai", {"temperature": 0.5, "top_p": 0.5, "stop": ["x"]}),
]
CONVERSATION = {"messages", "tools", "input", "contents", "instructions"} | {
    "systemInstruction",
    "system_instruction",
    "system",
}
"""What each adapter says in its own words."""
HEADERS = ("x-a", "openai-organization", "openai-project", "anthropic-beta", "authorization", "x-api-key")


@pytest.fixture(scope="module")
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider([Answer(calls=[PARIS])]) as running:
        yield running


def sent(
    provider: LoopbackProvider,
    adapter: Any,
    wire: str,
    engine: str,
    keywords: dict[str, Any],
    *,
    is_async: bool = False,
) -> Any:
    """The settings and the headers that a provider gets."""
    before = len(provider.received)
    lm = lm_of(provider, wire, engine, cache=False, num_retries=0, **copy.deepcopy(keywords))
    with dspy.context(lm=lm, adapter=adapter):
        given: Any = {"question": "q", "tools": [dspy.Tool(get_weather)]}
        predict = dspy.Predict(Lists)
        out: Any = asyncio.run(predict.acall(**given)) if is_async else predict(**given)
    (received,) = provider.received[before:]
    assert [each.args for each in out.calls.tool_calls] == [{"city": "Paris"}]
    body = {key: value for key, value in received.body.items() if key not in CONVERSATION}
    if body.get("n") == 1:  # DSPy's engine for typed requests says so
        del body["n"]
    of_gemini = body.pop("generationConfig", {})
    of_gemini.pop("candidate_count", None)
    headers = {key: value for key, value in received.headers.items() if key in HEADERS}
    return body, of_gemini, headers


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("wire", "keywords"), KEYWORDS, ids=[f"{w}-{'-'.join(k)}" for w, k in KEYWORDS])
def test_litellms_keywords_leave_as_under_dspys_adapter(
    provider: LoopbackProvider, wire: str, keywords: dict[str, Any], engine: str
) -> None:
    """adapter-plug-in: LiteLLM's keywords leave as under DSPy's adapter."""
    dspys = dspy.ChatAdapter(use_native_function_calling=True, use_json_adapter_fallback=False)
    ours = sigadapt.ChatAdapter(tool_calling="native", use_json_adapter_fallback=False)
    assert sent(provider, ours, wire, engine, keywords) == sent(provider, dspys, wire, engine, keywords)


def ask(lm: dspy.LM, adapter: sigadapt.ChatAdapter | None = None, **config: Any) -> Any:
    with dspy.context(lm=lm, adapter=adapter or sigadapt.ChatAdapter(tool_calling="native")):
        return dspy.Predict(Lists)(question="q", tools=[dspy.Tool(get_weather)], config=config)


def test_what_only_litellm_takes_is_part_of_the_cache_key() -> None:
    """adapter-plug-in: Settings that only LiteLLM takes are part of the cache's key."""
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        for value in (0.125, 0.25, 0.125):
            ask(lm_of(provider, cache=True, min_p=value, temperature=0.7))
    assert [received.body["min_p"] for received in provider.received] == [0.125, 0.25]


def test_a_fixed_engine_refuses_what_it_cannot_send() -> None:
    """adapter-plug-in: A fixed engine refuses what it cannot send."""
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        with pytest.raises(InvalidOption, match="min_p"):
            ask(lm_of(provider, engine="lm15", cache=False, min_p=0.1))
        for engine in ("auto", "litellm"):
            with pytest.raises(InvalidOption, match="top_p must be numeric"):
                ask(lm_of(provider, engine=engine, cache=False, min_p=0.1), top_p="hot")
    assert not provider.received
