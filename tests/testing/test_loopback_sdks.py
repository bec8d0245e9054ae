"""The loopback provider read by the providers' own SDKs, whole and streamed: independent judges of shape."""

import base64
from typing import Any

import anthropic
import ollama
import openai
import pytest
from google import genai
from google.genai import errors, types

from sigadapt.testing import Answer, Call, Failure, LoopbackProvider

PARIS = {"city": "Paris"}
ROME = {"city": "Rome"}
TWO = (Call("get_weather", PARIS), Call("get_weather", ROME))
SIGNATURE = base64.b64encode(b"opaque").decode()
FULL = Answer(
    text="Let me look at it.", calls=TWO, reasoning="Two cities.", signature=SIGNATURE, usage=(12, 34)
)
CUT = Answer(text="Let me look.", calls=[Call("get_weather", '{"city":"Par')], finish="length")
USER: Any = [{"role": "user", "content": "Weather?"}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}


def open_ai(provider: LoopbackProvider) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url("openai"), api_key="x", max_retries=0, timeout=600)


def claude(provider: LoopbackProvider) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=provider.url, api_key="x", max_retries=0, timeout=600)


def google(provider: LoopbackProvider) -> genai.Client:
    return genai.Client(api_key="x", http_options=types.HttpOptions(base_url=provider.url, timeout=600_000))


def test_openai_chat_whole():
    """loopback-provider: The official SDKs read a whole answer."""
    with LoopbackProvider([FULL]) as provider, open_ai(provider) as client:
        got = client.chat.completions.create(model="gpt-4o-mini", messages=USER)
    choice = got.choices[0]
    assert (got.model, choice.finish_reason, choice.message.content) == (
        "gpt-4o-mini",
        "tool_calls",
        FULL.text,
    )
    calls: Any = choice.message.tool_calls
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
        ("call_1", "get_weather", '{"city":"Paris"}'),
        ("call_2", "get_weather", '{"city":"Rome"}'),
    ]
    assert got.usage is not None
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.total_tokens) == (12, 34, 46)


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


def test_openai_chat_sends_usage_only_where_asked():
    """loopback-provider: The official SDKs read a streamed answer."""
    with LoopbackProvider([FULL]) as provider, open_ai(provider) as client:
        chunks = list(client.chat.completions.create(model="gpt-4o-mini", messages=USER, stream=True))
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)
    reasoning = [getattr(chunk.choices[0].delta, "reasoning_content", None) or "" for chunk in chunks]
    assert "".join(reasoning) == FULL.reasoning


async def test_openai_asked_by_an_async_client():
    """loopback-provider: The official SDKs read a streamed answer."""
    with LoopbackProvider([Answer(text="It is sunny.")]) as provider:
        async with openai.AsyncOpenAI(
            base_url=provider.base_url("openai"), api_key="x", timeout=600
        ) as client:
            stream = await client.chat.completions.create(model="gpt-4o-mini", messages=USER, stream=True)
            pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(pieces) == "It is sunny."


def _output(response: Any) -> list[tuple[str, str]]:
    said: list[tuple[str, str]] = []
    for item in response.output:
        if item.type == "reasoning":
            said.append((item.encrypted_content, item.summary[0].text))
        elif item.type == "message":
            said.append(("text", item.content[0].text))
        else:
            said.append((item.call_id, item.arguments))
    return said


OUTPUT = [
    (SIGNATURE, "Two cities."),
    ("text", "Let me look at it."),
    ("call_1", '{"city":"Paris"}'),
    ("call_2", '{"city":"Rome"}'),
]


def test_openai_responses_whole():
    """loopback-provider: The official SDKs read a whole answer."""
    with LoopbackProvider([FULL, CUT]) as provider, open_ai(provider) as client:
        full = client.responses.create(model="gpt-5", input="Weather?")
        cut = client.responses.create(model="gpt-5", input="Weather?")
    assert (full.status, _output(full)) == ("completed", OUTPUT)
    assert full.usage is not None
    assert (full.usage.input_tokens, full.usage.output_tokens, full.usage.total_tokens) == (12, 34, 46)
    assert (cut.status, _output(cut)) == (
        "incomplete",
        [("text", "Let me look."), ("call_1", '{"city":"Par')],
    )
    assert cut.incomplete_details is not None
    assert cut.incomplete_details.reason == "max_output_tokens"
    assert [item.status for item in cut.output if item.type != "reasoning"] == ["completed", "incomplete"]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def test_openai_responses_streamed():
    """loopback-provider: The official SDKs read a streamed answer."""
    with (
        LoopbackProvider([FULL]) as provider,
        open_ai(provider) as client,
        client.responses.stream(model="gpt-5", input="Weather?") as stream,
    ):
        events: list[Any] = list(stream)
        final = stream.get_final_response()
    assert _output(final) == OUTPUT
    assert [event.sequence_number for event in events] == list(range(len(events)))
    joined: dict[str, str] = {}
    for event in events:
        if event.type.endswith(".delta"):
            joined[event.item_id] = joined.get(event.item_id, "") + event.delta
    assert list(joined.values()) == [text for _, text in OUTPUT], "the deltas amount to the items"
    assert sum(event.type == "response.function_call_arguments.delta" for event in events) > 2


def test_openai_responses_cut_off_in_a_stream():
    """loopback-provider: Arguments that are no JSON are sent as text."""
    with LoopbackProvider([CUT]) as provider, open_ai(provider) as client:
        *_, last = client.responses.create(model="gpt-5", input="Weather?", stream=True)
    assert last.type == "response.incomplete"
    assert _output(last.response)[-1] == ("call_1", '{"city":"Par')


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


def test_anthropic_streamed():
    """loopback-provider: The official SDKs read a streamed answer."""
    with (
        LoopbackProvider([FULL]) as provider,
        claude(provider) as client,
        client.messages.stream(model="claude-sonnet-4-6", max_tokens=100, messages=USER) as stream,
    ):
        pieces = [event.text for event in stream if event.type == "text"]
        got = stream.get_final_message()
    assert pieces == list(FULL.pieces(FULL.text))
    assert (_blocks(got), got.stop_reason) == (BLOCKS, "tool_use")
    assert (got.usage.input_tokens, got.usage.output_tokens) == (12, 34)


def test_anthropic_cut_off_in_a_stream():
    """loopback-provider: Arguments that are no JSON are sent as text."""
    with LoopbackProvider([CUT]) as provider, claude(provider) as client:
        events: list[Any] = list(
            client.messages.create(model="claude-sonnet-4-6", max_tokens=9, messages=USER, stream=True)
        )
    deltas = [event.delta for event in events if event.type == "content_block_delta"]
    assert (
        "".join(delta.partial_json for delta in deltas if delta.type == "input_json_delta") == '{"city":"Par'
    )
    assert [event.delta.stop_reason for event in events if event.type == "message_delta"] == ["max_tokens"]


def _parts(responses: list[Any]) -> list[Any]:
    parts = [part for response in responses for part in response.candidates[0].content.parts or ()]
    return [
        (part.function_call.name, part.function_call.args, part.thought_signature)
        if part.function_call
        else (part.text, bool(part.thought))
        for part in parts
    ]


def test_gemini_whole():
    """loopback-provider: The official SDKs read a whole answer."""
    with LoopbackProvider([FULL]) as provider, google(provider) as client:
        got: Any = client.models.generate_content(model="gemini-2.5-flash", contents="Weather?")
    assert _parts([got]) == [
        ("Two cities.", True),
        ("Let me look at it.", False),
        ("get_weather", PARIS, b"opaque"),
        ("get_weather", ROME, None),
    ]
    assert got.candidates[0].finish_reason == types.FinishReason.STOP
    assert got.candidates[0].content.parts[2].function_call.id is None
    assert (got.usage_metadata.prompt_token_count, got.usage_metadata.candidates_token_count) == (12, 34)


def test_gemini_streamed():
    """loopback-provider: The official SDKs read a streamed answer."""
    with LoopbackProvider([FULL]) as provider, google(provider) as client:
        chunks: list[Any] = list(
            client.models.generate_content_stream(model="gemini-2.5-flash", contents="Weather?")
        )
    parts = _parts(chunks)
    assert "".join(part[0] for part in parts if part[1] is True) == FULL.reasoning
    assert "".join(part[0] for part in parts if part[1] is False) == FULL.text
    assert parts[-2:] == [("get_weather", PARIS, b"opaque"), ("get_weather", ROME, None)]
    reasons = [chunk.candidates[0].finish_reason for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + [types.FinishReason.STOP]
    assert chunks[-1].usage_metadata.total_token_count == 46


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


@pytest.mark.parametrize("stream", [False, True])
def test_ollama(stream: bool):
    """loopback-provider: The official SDKs read a streamed answer."""
    with LoopbackProvider([FULL]) as provider:
        client: Any = ollama.Client(host=provider.url, timeout=600)
        got: Any = client.chat(model="llama3.1", messages=USER, stream=stream)
        parts: list[Any] = list(got) if stream else [got]
        client.close()
    assert "".join(part.message.thinking or "" for part in parts) == FULL.reasoning
    assert "".join(part.message.content or "" for part in parts) == FULL.text
    calls = [call.function for part in parts for call in part.message.tool_calls or ()]
    assert [(call.name, call.arguments) for call in calls] == [("get_weather", PARIS), ("get_weather", ROME)]
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert (parts[-1].done_reason, parts[-1].prompt_eval_count, parts[-1].eval_count) == ("stop", 12, 34)


def test_ollama_streams_unless_told_not_to():
    """loopback-provider: The official SDKs read a streamed answer."""
    with LoopbackProvider([FULL]) as provider:
        client = ollama.Client(host=provider.url, timeout=600)
        client.chat(model="llama3.1", messages=USER)
        list(client.chat(model="llama3.1", messages=USER, stream=True))
        client.close()
        assert [(request.body["stream"], request.stream) for request in provider.received] == [
            (False, False),
            (True, True),
        ]


def test_failures_reach_the_sdks_as_their_own_errors():
    """loopback-provider: A failure is sent in the wire's error shape."""
    script = [Failure(429, "slow down"), Failure(529, "busy"), Failure(503, "down"), Failure(404, "no model")]
    with LoopbackProvider(script) as provider:
        with open_ai(provider) as client, pytest.raises(openai.RateLimitError, match="slow down"):
            client.chat.completions.create(model="gpt-4o-mini", messages=USER, stream=True)
        with (
            claude(provider) as client,
            pytest.raises(anthropic.APIStatusError, match="overloaded_error") as busy,
        ):
            client.messages.create(model="claude-sonnet-4-6", max_tokens=9, messages=USER)
        with google(provider) as client, pytest.raises(errors.ServerError, match="UNAVAILABLE") as down:
            client.models.generate_content(model="gemini-2.5-flash", contents="Weather?")
        llama = ollama.Client(host=provider.url, timeout=600)
        with pytest.raises(ollama.ResponseError, match="no model") as absent:
            llama.chat(model="llama3.1", messages=USER)
        llama.close()
    assert (busy.value.status_code, down.value.code, absent.value.status_code) == (529, 503, 404)
