"""What the names of DSPy do that are not public and that requests stand on.

When a new DSPy changes one of them, the test of that name fails here. The agents' half is tested with whole
runs (`tests/runs`).
"""

import asyncio
from types import MemberDescriptorType
from typing import Any

import dspy
import pytest
from internals import internals

lm15 = dspy.lm15


def test_planned_asks_capabilities_once_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Counting(dspy.LM):
        @property
        def supports_function_calling(self) -> bool:
            asked.append("asked")
            return True

    class Adapter:
        @internals.planned
        def run(self, lm: Any, lm_kwargs: dict[str, Any]) -> tuple[bool, bool]:
            return lm.supports_function_calling, lm.supports_function_calling

    assert Adapter().run(Counting("openai/x"), {}) == (True, True), "the decorated method no longer runs"
    assert asked


def test_a_model_has_no_slots_that_a_copy_would_have_to_look_for() -> None:
    slots = [
        name
        for kind in dspy.LM.__mro__
        for name, each in vars(kind).items()
        if isinstance(each, MemberDescriptorType)
    ]
    assert slots == []


def test_client_keys_are_connection_settings() -> None:
    assert {"api_key", "api_base", "timeout", "headers"} <= internals.CLIENT_KEYS
    assert {"temperature", "max_tokens", "tools"}.isdisjoint(internals.CLIENT_KEYS)


@pytest.mark.parametrize(
    ("model", "options", "native", "adapter"),
    [
        ("openai/gpt-4o-mini", {}, True, "OpenAIChatLM"),
        ("openai/gpt-5", {"model_type": "responses"}, True, "OpenAILM"),
        ("anthropic/claude-sonnet-4-6", {}, True, "AnthropicLM"),
        ("gemini/gemini-2.5-flash", {}, True, "GeminiLM"),
        ("openai/gpt-4o-mini", {"engine": "litellm"}, False, None),
        ("bedrock/anthropic.claude-sonnet-4-5", {}, False, None),
    ],
)
def test_a_backend_is_selected_offline(
    model: str, options: dict[str, Any], native: bool, adapter: str | None
) -> None:
    selection = internals.select_backend(dspy.LM(model, **options))
    assert selection.native is native
    assert getattr(selection.resolution, "adapter", None) == adapter


def test_ollama_is_known_as_a_server() -> None:
    assert internals.select_backend(dspy.LM("ollama/llama3.1")).resolution.provider == "ollama"


def test_a_server_that_wants_its_reasoning_back_says_so() -> None:
    compat = internals.select_backend(dspy.LM("deepseek/deepseek-reasoner", api_key="x")).resolution.compat
    assert lm15.OpenAIChatCompat.preset(compat).thinking_replay == "native"


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_litellms_chunks_become_lm15s_events() -> None:
    stream = internals.ChatStream(lm15.Request(model="m", messages=(lm15.Message.user("Hi"),)))
    events = [event for each in ({"content": "Hi"}, {"content": "."}) for event in stream.feed(chunk(each))]
    assert [event.delta.text for event in events if event.type == "delta"] == ["Hi", "."]
    assert hasattr(stream, "chunks"), "the body is put together from `chunks`"


def test_litellms_errors_become_dspys() -> None:
    with pytest.raises(lm15.RateLimitError, match="slow down"), internals.litellm_errors(model="m"):
        raise internals.get_litellm().exceptions.RateLimitError("slow down", "openai", "m")


def test_streams_are_closed() -> None:
    closed: list[str] = []

    class Source:
        def close(self) -> None:
            closed.append("sync")

        async def aclose(self) -> None:
            closed.append("async")

    async def close_async() -> None:
        async with internals.aclosing(Source()):
            pass

    with internals.closing(Source()):
        pass
    asyncio.run(close_async())
    assert closed == ["sync", "async"]
