"""What a stream tells is what the program has in the end: each text, call and result, once."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import dspy
import pytest
from agents import serving
from support import ADAPTERS, WIRES

import sigadapt
from sigadapt import Run, ToolCall, ToolCalls, ToolDecl, ToolDecls
from sigadapt.errors import InputNeeded
from sigadapt.events import CallReady, Confirm, ResultReady, TextDelta, Used
from sigadapt.testing import Answer, Call

DONE = Answer(calls=[Call("submit", {"answer": "done"})])


class Turn(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


def count(x: int) -> int:
    """Count."""
    return x + 1


def told(program: Any, **inputs: Any) -> list[Any]:
    return list(sigadapt.stream_sync(program, question="q", **inputs))


def fields_of(events: list[Any]) -> dict[str | None, str]:
    """Return the texts that a reader has in the end."""
    texts: dict[str | None, str] = {}
    for event in events:
        if isinstance(event, TextDelta):
            before = "" if event.is_anew else texts.get(event.field, "")
            texts[event.field] = before + event.text
    return texts


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("text", ["hello", "42", "<think>hm</think>fine", "ok\n", "Two words."])
def test_text_that_the_gate_held_comes_once(text: str, wire: str, adapter: Any) -> None:
    """watching-runs: The pieces of a text are its output."""
    with serving([Answer(text=text)], wire), dspy.context(adapter=adapter(tool_calling="prompted")):
        events = told(dspy.Predict(Turn), tools=[count])
    assert fields_of(events)["answer"] == events[-1].prediction.answer


GOOD, BAD = Call("count", {"x": 1}), Call("count", {"x": "a"})
REASKS = {
    "words follow a bad call": [Answer(text="I will look", calls=[BAD]), Answer(text="The answer")],
    "a good call is kept": [Answer(calls=[GOOD, BAD]), Answer(calls=[Call("count", {"x": 2})])],
    "both": [Answer(text="First", calls=[BAD, GOOD]), Answer(text="Then", calls=[Call("count", {"x": 3})])],
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("script", REASKS.values(), ids=REASKS)
def test_a_reask_replaces_text_and_keeps_calls(script: list[Answer], wire: str) -> None:
    """watching-runs: A reask counts on."""
    with serving(script, wire), dspy.context(adapter=sigadapt.ChatAdapter(on_invalid="reask")):
        events = told(dspy.Predict(Turn), tools=[count])
    prediction = events[-1].prediction
    if prediction.answer is not None:
        assert fields_of(events)["answer"] == prediction.answer
    ready = [each.call for each in events if isinstance(each, CallReady)]
    good = [call.id for call in ready if isinstance(call, ToolCall)]
    assert good == [call.id for call in prediction.calls]


def unfit(x: int) -> int:
    """Count."""
    return "no int"  # type: ignore[return-value]


def failing(x: int) -> int:
    """Count."""
    raise LookupError(f"no {x}")


def cancelled(x: int) -> int:
    """Count."""
    raise asyncio.CancelledError


async def later(x: int) -> int:
    """Count."""
    return x


def late(x: int) -> int:
    """Count."""
    time.sleep(0.3)
    return x


TOOLS = ToolDecls(
    [
        count,
        ToolDecl.of(unfit, check_result=True),
        failing,
        cancelled,
        later,
        ToolDecl.of(late, timeout=0.05),
        ToolDecl.of(count, name="pay", requires_confirmation=True),
    ]
)
TURN = Answer(
    calls=[
        *(
            Call(name, {"x": 1})
            for name in ("count", "unfit", "failing", "cancelled", "later", "late", "pay")
        ),
        Call("count", {"x": "a"}),
        Call("pay", {"x": 2}),
    ]
)


def decisions_of(requests: Any) -> dict[str, Any]:
    """Return a yes with other arguments, and then a no."""
    first, second = requests
    return {first.id: first.call.model_copy(update={"args": {"x": 7}}), second.id: "Too much."}


class ByHand(dspy.Module):
    """A program that runs the calls of one turn itself."""

    def __init__(self) -> None:
        super().__init__()
        self.predictor = dspy.Predict(Turn)

    def forward(self, question: str) -> Any:
        prediction: Any = self.predictor(question=question, tools=TOOLS)
        calls: ToolCalls = prediction.calls
        requests = calls.awaiting_confirmation(TOOLS)
        return dspy.Prediction(results=calls.run(TOOLS, decisions_of(requests)))


class Resumed(dspy.Module):
    """A program that goes on with an agent that waits."""

    def __init__(self, agent: Any, error: InputNeeded) -> None:
        super().__init__()
        self.agent, self.error = agent, error

    def forward(self, question: str) -> Any:
        decisions = decisions_of(self.error.requests)
        return self.agent(history=self.error.resume(TOOLS, decisions))


def by_hand() -> Iterator[tuple[list[Any], Any]]:
    events = told(ByHand())
    yield events, [*events[-1].prediction.results]


def agent_that_waits(kind: Any) -> Iterator[tuple[list[Any], Any]]:
    agent = kind("question -> answer", tools=TOOLS)
    events: list[Any] = []
    with pytest.raises(InputNeeded) as waits:
        events.extend(sigadapt.stream_sync(agent, question="q"))
    assert any(isinstance(each, Confirm) for each in events)
    events += told(Resumed(agent, waits.value))
    yield events, [*sigadapt.rounds(events[-1].prediction)[0].results]


RUNNERS: dict[str, Callable[[], Iterator[tuple[list[Any], Any]]]] = {
    "by hand": by_hand,
    "sigadapt.ReAct": lambda: agent_that_waits(sigadapt.ReAct),
    "dspy.ReActV2": lambda: agent_that_waits(dspy.ReActV2),
}


@pytest.mark.parametrize("runner", RUNNERS.values(), ids=RUNNERS)
def test_each_result_is_told_once_as_the_history_has_it(runner: Any) -> None:
    """watching-runs: The results of a turn are told as the model reads them."""
    adapter = sigadapt.ChatAdapter(on_invalid="keep", confirm=None if runner is by_hand else "raise")
    with serving([TURN, DONE], "openai"), dspy.context(adapter=adapter):
        for events, results in runner():
            ready = [each for each in events if isinstance(each, ResultReady)]
            assert sorted(each.call_id for each in ready) == sorted(each.call_id for each in results)
            of_call = {each.call_id: each.result for each in ready}
            for result in results:
                event = of_call[result.call_id]
                assert event.is_error == result.is_error
                if event.note:  # which is in the value in an agent's history
                    assert event.note in str(result)
                else:
                    assert event.value == result.value


def test_calls_behind_the_one_that_was_left_did_not_begin() -> None:
    """watching-runs: Leaving early ends the program."""
    ran: list[int] = []
    has_begun = threading.Event()

    def pay(x: int) -> str:
        """Pay."""
        ran.append(x)
        has_begun.set()
        time.sleep(0.2)
        return "paid"

    async def leave(agent: Any) -> None:
        events = sigadapt.stream(agent, question="q")
        async for event in events:
            if isinstance(event, CallReady):
                break
        await asyncio.to_thread(has_begun.wait)
        await events.aclose()
        await asyncio.sleep(0.5)

    tools = [ToolDecl.of(pay, sequential=True)]
    kinds: list[Any] = [sigadapt.ReAct, dspy.ReActV2]
    for kind in kinds:
        ran.clear()
        has_begun.clear()
        turn = Answer(calls=[Call("pay", {"x": n}) for n in range(3)])
        with serving([turn, DONE], "openai"), dspy.context(adapter=sigadapt.ChatAdapter()), Run() as run:
            asyncio.run(leave(kind("question -> answer", tools=tools)))
        values = [result.value for each in run.rounds for result in each.results]
        assert ran == [0]
        assert values == ["paid"] + ["This call was not run: the run ended before it began."] * 2
        assert run.usage.tool_calls == 1


def test_tokens_are_told_without_a_history_of_the_model() -> None:
    """watching-runs: The tokens of a step are told."""
    tokens: list[Any] = []
    for disable_history in (False, True):
        with (
            serving([Answer(text="hello")], "openai"),
            dspy.context(adapter=sigadapt.ChatAdapter(), disable_history=disable_history),
        ):
            tokens.append(
                [each.usage for each in told(dspy.Predict(Turn), tools=[count]) if isinstance(each, Used)]
            )
    assert tokens[0] == tokens[1] != []
