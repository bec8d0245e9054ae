"""The remaining forms: TwoStepAdapter, BAMLAdapter, examples with calls, strict mode, structured output."""

from typing import Any

import dspy
import pydantic
import pytest
from dspy.utils.exceptions import AdapterParseError
from support import PARIS, Ask, May, get_weather

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolResults
from sigadapt.testing import Answer, LoopbackProvider, Received

MODES = ("sync", "async")


class Place(pydantic.BaseModel):
    name: str
    people: int


class Describe(Ask):
    """Describe the place, or use the tools."""

    place: Place = dspy.OutputField()


async def ask(
    provider: LoopbackProvider, signature: Any, adapter: Any, mode: str = "sync", demos: Any = (), **lm: Any
) -> Any:
    inputs: dict[str, Any] = {"question": "weather?", "tools": [get_weather], "demos": list(demos)}
    with dspy.context(lm=dspy.LM(**provider.lm_options("openai", **lm)), adapter=adapter):
        predict = dspy.Predict(signature)
        return await predict.acall(**inputs) if mode == "async" else predict(**inputs)


@pytest.mark.parametrize("mode", MODES)
async def test_two_step_extracts_from_text_and_takes_calls_as_they_are(mode: str) -> None:
    """adapter-plug-in: A two-step adapter extracts from text and takes calls as they are."""

    def second(received: Received) -> Answer:
        assert "It is lovely, with two million people." in str(received.body)
        return Answer(text='[[ ## place ## ]]\n{"name": "Paris", "people": 2000000}\n\n[[ ## completed ## ]]')

    answers = [Answer(text="It is lovely, with two million people."), Answer(text="Hm.", calls=[PARIS])]
    with LoopbackProvider(answers) as main, LoopbackProvider(second) as extraction:
        adapter = sigadapt.adapters.TwoStepAdapter(dspy.LM(**extraction.lm_options("openai")))
        assert isinstance(adapter, dspy.TwoStepAdapter)
        described = await ask(main, Describe, adapter, mode)
        called = await ask(main, Describe, adapter, mode)
    assert described.place == Place(name="Paris", people=2_000_000)
    assert described.calls == ToolCalls()
    assert (called.place, called.calls[0].args, called.calls.text) == (None, {"city": "Paris"}, "Hm.")
    assert len(extraction.received) == 1, "calls need no second model"
    assert "tools" not in main.received[0].body["messages"][0]["content"].replace("use the tools", "")


@pytest.mark.parametrize("mode", MODES)
async def test_two_step_says_when_nothing_was_extracted(mode: str) -> None:
    with (
        LoopbackProvider([Answer(text="Lovely.")]) as main,
        LoopbackProvider([Answer(text="nothing like it")]) as extraction,
        pytest.raises(AdapterParseError),
    ):
        await ask(
            main, Describe, sigadapt.adapters.TwoStepAdapter(dspy.LM(**extraction.lm_options("openai"))), mode
        )


async def test_structured_output_has_a_name_and_no_strict_flag() -> None:
    """adapter-plug-in: Structured output is asked for by schema, without a strict flag."""
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        await ask(provider, Describe, sigadapt.JSONAdapter())
        await ask(provider, May, sigadapt.ChatAdapter())
    form, none = [received.body.get("response_format") for received in provider.received]
    assert form is not None
    assert none is None
    assert form["type"] == "json_schema"
    assert form["json_schema"]["name"] == "response"
    assert form["json_schema"]["schema"]["required"] == ["place"]
    assert "strict" not in form["json_schema"]


async def test_examples_with_calls_become_real_turns() -> None:
    """adapter-plug-in: Examples with calls become assistant and tool messages."""
    calls = ToolCalls(tool_calls=[ToolCall(id="call_1", name="get_weather", args={"city": "Rome"})])
    demos: list[dict[str, Any]] = [
        {"question": "Say hi.", "answer": "Hi.", "calls": None},
        {"question": "Rome?", "calls": calls, "results": ToolResults.of(calls, ["rain"])},
        {"calls": calls.model_dump()},
    ]
    with LoopbackProvider([Answer(calls=[PARIS])]) as provider:
        await ask(provider, May, sigadapt.ChatAdapter(), demos=demos)
    _, *messages = provider.received[0].body["messages"]
    assert [row["role"] for row in messages] == [
        *("user", "assistant"),
        *("user", "assistant", "tool"),
        *("user", "assistant", "tool"),
        "user",
    ]
    assert "Hi." in messages[1]["content"]
    first, second = messages[3], messages[6]
    assert first["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city":"Rome"}'}
    assert messages[4]["tool_call_id"] == first["tool_calls"][0]["id"] != second["tool_calls"][0]["id"]
    assert messages[4]["content"] == "rain"
    assert "without `question`" in messages[5]["content"], "an incomplete example says what is missing"
    assert messages[7]["content"] == "(the result is not part of this example)"
