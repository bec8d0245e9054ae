"""The loopback provider asked by `dspy.LM`, on both of its engines, over every wire, whole and streamed."""

import json
from typing import Any, cast

import dspy
import pytest
from dspy.clients.errors import LMRateLimitError
from support import PARIS, ROME

from sigadapt.testing import WIRES, Answer, Call, Failure, LoopbackProvider

pytestmark = pytest.mark.usefixtures("closed_streams")

TOOL = {
    "name": "get_weather",
    "description": "Weather for a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
TWO = (PARIS, ROME)
FULL = Answer(text="Let me look at it.", calls=TWO, reasoning="Two cities, two calls.", signature="c2ln")
CUT = Answer(text="Let me look at it.", calls=[Call("get_weather", '{"city":"Par')], finish="length")

# Each way dspy.LM can be set to ask, and the wire it then speaks.
ROUTES = [
    *(
        pytest.param(wire, engine, wire, id=f"{wire}-{engine}")
        for wire, row in WIRES.items()
        for engine in ("auto", "litellm")
        if row.options.get("engine", engine) == engine
    ),
    pytest.param("ollama", "auto", "openai", id="ollama-auto"),
]


def request(model: str) -> dspy.lm15.Request:
    body = {"model": model, "messages": [{"role": "user", "content": "Weather?"}]}
    return dspy.lm15.request_from_openai_chat({**body, "tools": [{"type": "function", "function": TOOL}]})


def ask(provider: LoopbackProvider, wire: str, engine: str) -> dspy.lm15.Response:
    lm: Any = dspy.LM(**provider.lm_options(wire, engine=engine, timeout=600))
    return lm(request(lm.model))


class Ask(dspy.Module):
    """One request, for `dspy.streamify` to stream."""

    def forward(self) -> dspy.Prediction:
        lm = cast("Any", dspy.settings).lm
        return dspy.Prediction(response=lm(request(lm.model)))


async def streamed(provider: LoopbackProvider, wire: str, engine: str) -> tuple[int, dspy.lm15.Response]:
    """How many chunks came, and the Response DSPy made of them."""
    with dspy.context(lm=dspy.LM(**provider.lm_options(wire, engine=engine, timeout=600))):
        program: Any = dspy.streamify(Ask())
        items: list[Any] = [item async for item in program()]
    *chunks, prediction = items
    return len(chunks), prediction.response


def called(response: dspy.lm15.Response) -> list[tuple[str, Any]]:
    return [(call.name, call.input) for call in response.tool_calls]


def said(response: dspy.lm15.Response) -> str:
    """All the text; `Response.text` is None where there are calls."""
    return "".join(part.text for part in response.message.parts if part.type == "text")


def thought(response: dspy.lm15.Response) -> list[str]:
    return [part.text for part in response.message.parts if part.type == "thinking"]


def raw_arguments(body: Any) -> list[str]:
    """The arguments' text in an OpenAI body, chat or responses."""
    if "output" in body:
        return [item["arguments"] for item in body["output"] if item["type"] == "function_call"]
    return [call["function"]["arguments"] for call in body["choices"][0]["message"]["tool_calls"]]


@pytest.mark.parametrize(("wire", "engine", "spoken"), ROUTES)
def test_dspy_reads_a_whole_answer(wire: str, engine: str, spoken: str):
    """loopback-provider: dspy.LM reads a whole answer."""
    with LoopbackProvider([FULL]) as provider:
        response = ask(provider, wire, engine)
    assert said(response) == FULL.text
    assert called(response) == [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})]
    assert thought(response) == [FULL.reasoning]
    assert response.finish_reason == "tool_call"
    assert (response.usage.input_tokens, response.usage.output_tokens) == FULL.usage
    (received,) = provider.received
    assert (received.wire, received.stream) == (spoken, False)
    assert received.model == WIRES[wire].model.partition("/")[2]
    assert "get_weather" in json.dumps(received.body["tools"])


@pytest.mark.parametrize(("wire", "engine", "spoken"), ROUTES)
def test_dspy_reads_that_an_answer_was_cut_off(wire: str, engine: str, spoken: str):
    """loopback-provider: dspy.LM reads a whole answer."""
    with LoopbackProvider([Answer(text="It is", finish="length")]) as provider:
        response = ask(provider, wire, engine)
    assert (said(response), response.finish_reason) == ("It is", "length")


@pytest.mark.parametrize(
    ("wire", "engine"),
    [
        ("openai", "auto"),
        ("openai", "litellm"),
        ("responses", "auto"),
        ("responses", "litellm"),
        ("ollama", "auto"),
    ],
)
def test_cut_off_arguments_arrive_as_sent(wire: str, engine: str):
    """loopback-provider: Arguments that are no JSON are sent as text."""
    with LoopbackProvider([CUT]) as provider:
        response = ask(provider, wire, engine)
    assert raw_arguments(response.provider_data) == ['{"city":"Par']
    assert any(word in json.dumps(response.provider_data) for word in ('"length"', '"max_output_tokens"'))


@pytest.mark.parametrize(("wire", "engine", "spoken"), ROUTES)
def test_dspy_reads_a_failure(wire: str, engine: str, spoken: str):
    """loopback-provider: A failure is sent in the wire's error shape."""
    with LoopbackProvider([Failure(429, "slow down, please")]) as provider:
        with pytest.raises(LMRateLimitError, match="slow down, please") as caught:
            ask(provider, wire, engine)
        assert caught.value.status == 429
        assert len(provider.received) == 1, "not retried"


# DSPy 3.4 does not stream the responses API through LiteLLM, and says so.
STREAMED = [route for route in ROUTES if route.id != "responses-litellm"]


@pytest.mark.parametrize(("wire", "engine", "spoken"), STREAMED)
async def test_dspy_streams_an_answer(wire: str, engine: str, spoken: str):
    """loopback-provider: dspy.LM reads a streamed answer."""
    answer = Answer(text="Let me look at it.", calls=TWO[:1])
    with LoopbackProvider([answer]) as provider:
        chunks, response = await streamed(provider, wire, engine)
    assert chunks >= 4, "the text came in several pieces"
    assert said(response) == answer.text
    assert called(response) == [("get_weather", {"city": "Paris"})]
    assert (response.usage.input_tokens, response.usage.output_tokens) == answer.usage
    (received,) = provider.received
    assert (received.wire, received.stream) == (spoken, True)


# DSPy 3.4 does not take signed reasoning from LiteLLM's streams, and says so.
UNSIGNED = {"anthropic-litellm"}


@pytest.mark.parametrize(
    ("wire", "engine", "spoken"), [route for route in STREAMED if route.id not in UNSIGNED]
)
async def test_dspy_streams_reasoning(wire: str, engine: str, spoken: str):
    """loopback-provider: dspy.LM reads a streamed answer."""
    with LoopbackProvider([Answer(text="It is sunny.", reasoning="The sun is out.")]) as provider:
        _, response = await streamed(provider, wire, engine)
    assert (said(response), thought(response)) == ("It is sunny.", ["The sun is out."])


@pytest.mark.parametrize("wire", ["openai", "anthropic", "gemini"])
def test_litellm_streams_reasoning_and_calls(wire: str):
    """loopback-provider: LiteLLM reads a streamed answer."""
    litellm: Any = pytest.importorskip("litellm")
    with LoopbackProvider([FULL]) as provider:
        options = provider.lm_options(wire)
        chunks = list(
            litellm.completion(
                model=options["model"],
                api_base=options["api_base"],
                api_key=options["api_key"],
                messages=[{"role": "user", "content": "Weather?"}],
                tools=[{"type": "function", "function": TOOL}],
                stream=True,
                timeout=600,
            )
        )
    whole: Any = litellm.stream_chunk_builder(chunks)
    message = whole.choices[0].message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
    assert calls == [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})]
    assert (message.content, message.reasoning_content) == (FULL.text, FULL.reasoning)
    assert whole.choices[0].finish_reason == "tool_calls"


def test_given_ids_are_sent_on_every_wire():
    """loopback-provider: Calls get ids in the wire's style."""
    with LoopbackProvider([Answer(calls=[Call("get_weather", id="mine")])]) as provider:
        got = {wire: ask(provider, wire, "auto").tool_calls[0].id for wire in WIRES}
        bodies = [ask(provider, wire, "litellm").provider_data for wire in ("gemini", "ollama")]
    assert got == dict.fromkeys(WIRES, "mine")
    assert all("mine" in json.dumps(body) for body in bodies)
