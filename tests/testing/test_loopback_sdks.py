"""The loopback provider read by the providers' own SDKs, whole and streamed: independent judges of shape."""

import base64
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from sigadapt.testing import Answer, Call, LoopbackProvider

PARIS = {"city": "Paris"}
ROME = {"city": "Rome"}
TWO = (Call("get_weather", PARIS), Call("get_weather", ROME))
SIGNATURE = base64.b64encode(b"opaque").decode()
FULL = Answer(
    text="Let me look at it.", calls=TWO, reasoning="Two cities.", signature=SIGNATURE, usage=(12, 34)
)
CUT = Answer(text="Let me look.", calls=[Call("get_weather", '{"city":"Par')], finish="length")
USER: Any = [{"role": "user", "content": "Weather?"}]


def open_ai(provider: LoopbackProvider) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url("openai"), api_key="x", max_retries=0, timeout=600)


def claude(provider: LoopbackProvider) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=provider.url, api_key="x", max_retries=0, timeout=600)


def google(provider: LoopbackProvider) -> genai.Client:
    return genai.Client(api_key="x", http_options=types.HttpOptions(base_url=provider.url, timeout=600_000))


@pytest.mark.parametrize("answer", [FULL, CUT, Answer(text="Sunny."), Answer(calls=TWO), Answer(text="")])
def test_openai_chat_streamed(answer: Answer):
    """loopback-provider: The official SDKs read a streamed answer."""
    with (
        LoopbackProvider([answer]) as provider,
        open_ai(provider) as client,
        client.chat.completions.stream(
            model="gpt-4o-mini", messages=USER, stream_options={"include_usage": True}
        ) as stream,
    ):
        pieces = [event.delta for event in stream if event.type == "content.delta" and event.delta]
        whole = stream.current_completion_snapshot
    choice: Any = whole.choices[0]
    assert pieces == list(answer.pieces(answer.text))
    got = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]
    assert got == [(call.name, call.text) for call in answer.calls]
    assert choice.finish_reason == answer.reason
    assert whole.usage is not None
    assert whole.usage.completion_tokens == answer.usage[1]


def _blocks(message: Any) -> list[Any]:
    keys = {"thinking": ("thinking", "signature"), "text": ("text",), "tool_use": ("id", "name", "input")}
    return [tuple(getattr(block, key) for key in keys[block.type]) for block in message.content]


BLOCKS = [
    ("Two cities.", SIGNATURE),
    ("Let me look at it.",),
    ("toolu_1", "get_weather", PARIS),
    ("toolu_2", "get_weather", ROME),
]


def test_anthropic_whole():
    """loopback-provider: The official SDKs read a whole answer."""
    with LoopbackProvider([FULL]) as provider, claude(provider) as client:
        got = client.messages.create(model="claude-sonnet-4-6", max_tokens=100, messages=USER)
    assert (_blocks(got), got.stop_reason) == (BLOCKS, "tool_use")
    assert (got.usage.input_tokens, got.usage.output_tokens) == (12, 34)


def test_gemini_signs_the_text_where_there_is_no_call():
    """loopback-provider: The opaque token of a turn is sent."""
    with (
        LoopbackProvider([Answer(text="Sunny.", signature=SIGNATURE)]) as provider,
        google(provider) as client,
    ):
        got: Any = client.models.generate_content(model="gemini-2.5-flash", contents="Weather?")
    assert got.candidates[0].content.parts[0].thought_signature == b"opaque"


@pytest.mark.parametrize(("finish", "word"), [("length", "MAX_TOKENS"), ("content_filter", "SAFETY")])
def test_gemini_says_why_it_finished(finish: str, word: str):
    """loopback-provider: The official SDKs read a streamed answer."""
    with LoopbackProvider([Answer(finish=finish)]) as provider, google(provider) as client:
        (chunk,) = client.models.generate_content_stream(model="gemini-2.5-flash", contents="Weather?")
    assert chunk.candidates is not None
    assert chunk.candidates[0].finish_reason == types.FinishReason(word)
