"""A language model of the user's that cannot stream: every way of streaming gives its whole answer."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import dspy
import pytest
from support import May

import sigadapt
from sigadapt.events import CallReady, Ended, ResultReady, TextDelta

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def find(city: str) -> str:
    """Find a city."""
    return f"{city} is in Italy."


def completion(content: str | None, *calls: tuple[str, str], finish: str = "stop") -> dict[str, Any]:
    """A chat completion, as a `forward` returns one."""
    rows = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, "tool_calls": rows or None}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


def steps_of_agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
    if any(row["role"] == "tool" for row in messages):
        return completion(None, ("submit", '{"answer": "In Italy."}'), finish="tool_calls")
    return completion("Let me look.", ("find", '{"city": "Rome"}'), finish="tool_calls")


class Forward(dspy.BaseLM):
    """A model that has a `forward` alone."""

    def __init__(self, answer: Callable[[list[dict[str, Any]]], Any]) -> None:
        super().__init__(model="mine/x", cache=False)
        self.answer = answer

    @property
    def supports_function_calling(self) -> bool:
        return True

    def forward(self, prompt: Any = None, messages: Any = None, **_: Any) -> Any:
        return self.answer(messages)


class Both(Forward):
    """A model that has an `aforward`, too."""

    async def aforward(self, prompt: Any = None, messages: Any = None, **_: Any) -> Any:
        return self.answer(messages)


class Engine:
    """An engine that has no `stream`."""

    supports_function_calling = True

    def __init__(self, answer: Callable[[list[dict[str, Any]]], Any]) -> None:
        self.answer = answer

    def complete(self, request: Any) -> Any:
        rows = [{"role": message.role} for message in request.messages]
        return dspy.lm15.response_from_openai_chat(self.answer(rows), model=request.model)


class AsyncEngine(Engine):
    async def complete(self, request: Any) -> Any:
        return super().complete(request)


def without_stream(answer: Callable[[list[dict[str, Any]]], Any]) -> dspy.LM:
    """A model with an engine of the user's own."""
    return dspy.LM("mine/x", engine=Engine(answer), async_engine=AsyncEngine(answer), cache=False)


Kind: TypeAlias = Callable[[Callable[[list[dict[str, Any]]], Any]], dspy.BaseLM]
KINDS: list[Any] = [
    pytest.param(Forward, marks=pytest.mark.dspy_3_4),
    pytest.param(Both, marks=pytest.mark.dspy_3_4),
    without_stream,
]


async def gathered(events: Any) -> list[Any]:
    return [each async for each in events]


def streamed_async(program: Any, **inputs: Any) -> list[Any]:
    return asyncio.run(gathered(sigadapt.stream(program, **inputs)))


def streamed_sync(program: Any, **inputs: Any) -> list[Any]:
    return [*sigadapt.stream_sync(program, **inputs)]


WAYS: dict[str, Callable[..., list[Any]]] = {"stream": streamed_async, "stream_sync": streamed_sync}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_agent(kind: Kind, way: str) -> None:
    """watching-runs: A model that cannot stream gives its whole answer."""
    agent = sigadapt.ReAct("question -> answer", tools=[find])
    with dspy.context(lm=kind(steps_of_agent), adapter=sigadapt.ChatAdapter()):
        events = WAYS[way](agent, question="q")
    assert isinstance(events[-1], Ended)
    assert [each.call.name for each in events if isinstance(each, CallReady)] == ["find"]
    assert [each.result.value for each in events if isinstance(each, ResultReady)] == ["Rome is in Italy."]
    texts = [(each.text, each.field) for each in events if isinstance(each, TextDelta)]
    assert texts == [("Let me look.", None), ("In Italy.", "answer")]


ANSWERS: dict[str, dict[str, Any]] = {
    "a call": completion(None, ("find", '{"city": "Rome"}'), finish="tool_calls"),
    "text and calls": completion("Two.", ("find", '{"city": "A"}'), ("find", '{"city": "B"}')),
    "a bad call": completion(None, ("find", '{"city": 7}'), finish="tool_calls"),
    "half of a call": completion(None, ("find", '{"city": "Ro'), finish="length"),
    "plain text": completion("In Italy."),
    "marked text": completion("[[ ## answer ## ]]\nIn Italy.\n\n[[ ## completed ## ]]"),
    "text that was cut off": completion("[[ ## answer ## ]]\nIn", finish="length"),
    "nothing": completion(""),
}


def outcome(run: Callable[[], Any]) -> str:
    try:
        return repr(run())
    except sigadapt.SigadaptError as error:
        return f"{error.code}: {error}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ANSWERS)
def test_the_prediction_is_the_unstreamed_one(name: str, kind: Kind) -> None:
    """watching-runs: A model that cannot stream gives its whole answer."""
    program = dspy.Predict(May)
    inputs: dict[str, Any] = {"question": "q", "tools": [find]}

    def streamified() -> Any:
        streaming: Any = dspy.streamify(program)
        return asyncio.run(gathered(streaming(**inputs)))[-1]

    adapter = sigadapt.ChatAdapter(on_invalid="keep")
    with dspy.context(lm=kind(lambda _: ANSWERS[name]), adapter=adapter):
        whole = outcome(lambda: program(**inputs))
        streamed = [outcome(lambda way=way: WAYS[way](program, **inputs)[-1].prediction) for way in WAYS]
        streamed.append(outcome(streamified))
    assert streamed == [whole] * 3


class Wrapped(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = dspy.Predict("question -> answer")

    def forward(self, question: str) -> Any:
        return self.inner(question=question)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "program", [dspy.Predict("question -> answer"), Wrapped()], ids=["Predict", "module"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_program_without_tools(kind: Kind, program: Any, way: str) -> None:
    """watching-runs: A model that cannot stream gives its whole answer."""
    model = kind(lambda _: completion("[[ ## answer ## ]]\nHello.\n\n[[ ## completed ## ]]"))
    with dspy.context(lm=model, adapter=sigadapt.ChatAdapter()):
        events = WAYS[way](program, question="q")
    assert events[-1].prediction.answer == "Hello."
    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == "Hello."


@pytest.mark.parametrize("kind", KINDS)
def test_a_page(kind: Kind, tmp_path: Path) -> None:
    """watching-runs: A model that cannot stream gives its whole answer."""
    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}

    async def page() -> list[Any]:
        agent = sigadapt.ReAct("question -> answer", tools=[find])
        chats = sigadapt.ui.Chats(agent, tmp_path / "chats.db")
        texts = [each async for each in chats.ai_sdk({"id": "c", "messages": [message]}, "ada")]
        return [json.loads(line[6:]) for each in texts for line in each.splitlines() if "{" in line]

    with dspy.context(lm=kind(steps_of_agent), adapter=sigadapt.ChatAdapter()):
        rows = asyncio.run(page())
    assert not [row for row in rows if row["type"] == "error"]
    assert [row["delta"] for row in rows if row["type"] == "text-delta"] == ["Let me look.", "In Italy."]
