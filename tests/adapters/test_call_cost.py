"""What a call costs in work and memory, counted and never timed, and that concurrent calls do not meet."""

import asyncio
import gc
import sys
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, cast

import dspy
import pytest
from dspy.clients import capabilities
from sending import Engine
from support import May, Must

import sigadapt
from sigadapt import InputNeeded, ToolCall, ToolCalls, ToolDecls, ToolResults
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

TASKS = 64  # lm15 opens at most 100 connections


def echo(text: str) -> str:
    """Say it again."""
    return text


def quiet(engine: Any) -> Any:
    """DSPy's context in which nothing remembers a call: neither history nor trace."""
    lm = dspy.LM("openai/x", engine=engine, cache=False)
    adapter = sigadapt.ChatAdapter(tool_calling="native")
    return dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=None)


def collect() -> None:
    for _ in range(2):  # a class that another one held is only found by the second pass
        gc.collect()


class Think(Must):
    thoughts: dspy.Reasoning = dspy.OutputField()


def test_an_adapter_is_forgotten_with_its_last_user() -> None:
    """call-cost: Caches are bounded and weak."""
    adapter = sigadapt.ChatAdapter()
    adapter.format(Must, [], {"question": "?"})
    known = weakref.ref(adapter)
    del adapter
    collect()
    assert known() is None


def work(run: Callable[[], object]) -> int:
    """How many functions a run calls, Python's own included."""
    count = 0

    def counted(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    run()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def history(turns: int) -> dspy.History:
    return dspy.History(messages=[event(number) for number in range(turns)])


def event(number: int) -> dict[str, Any]:
    calls = ToolCalls(tool_calls=[ToolCall(id=f"call_{number}", name="echo", args={"text": "x"})])
    return {"question": f"{number}?", "calls": calls, "results": ToolResults.of(calls, ["x"])}


def test_work_grows_in_line_with_tools() -> None:
    """call-cost: Work grows in line with turns and tools."""

    def of(count: int) -> int:
        def declare_and_ask() -> None:
            decls = ToolDecls([{"name": f"tool_{number}"} for number in range(count)])
            dspy.Predict(Must)(question="?", tools=decls)

        with quiet(Engine()):
            return work(declare_and_ask)

    few, many, more = of(50), of(100), of(200)
    assert more - many <= 2.2 * (many - few)


def added_results(count: int) -> int:
    """The work of a loop that adds the results of so many turns."""
    turns = [
        ToolResults.of(ToolCalls([{"name": "echo", "args": {"text": "x"}}]), ["x"]) for _ in range(count)
    ]
    return work(lambda: sum(turns, ToolResults()))


def loaded_requests(count: int) -> int:
    """The work of loading a run with so many requests that wait."""

    def later(text: str) -> Any:
        return sigadapt.Pending(text)

    calls = ToolCalls([{"name": "later", "args": {"text": f"{number}"}} for number in range(count)])
    with pytest.raises(InputNeeded) as waiting:
        calls.run([later])
    saved = waiting.value.model_dump_json()
    return work(lambda: InputNeeded.model_validate_json(saved))


@pytest.mark.parametrize("of", [added_results, loaded_requests])
def test_work_grows_in_line_with_calls(of: Callable[[int], int]) -> None:
    """call-cost: Work grows in line with turns and tools."""
    few, many, more = of(20), of(40), of(80)
    assert more - many <= 2.2 * (many - few)


class Meeting:
    """A script whose answers wait until as many requests as expected are there, and echo the question."""

    def __init__(self, expected: int) -> None:
        self.expected, self.here = expected, 0
        self.everybody = asyncio.Event()

    async def reply(self, received: Received) -> Answer:
        self.here += 1
        if self.here == self.expected:
            self.everybody.set()
        await asyncio.wait_for(self.everybody.wait(), timeout=600)
        question = received.body["messages"][-1]["content"].rpartition("\n")[2]
        return Answer(calls=[Call("echo", {"text": question})])

    def __call__(self, received: Received) -> Awaitable[Answer]:
        return self.reply(received)


def text_of(prediction: Any) -> str:
    return prediction.calls[0].args["text"]


async def test_tasks_through_one_adapter_do_not_meet() -> None:
    """call-cost: No lock is held over a model call.

    call-cost: Each answer comes back to its own question.
    """
    adapter, decls, predict = sigadapt.ChatAdapter(), ToolDecls(echo), dspy.Predict(Must)
    with LoopbackProvider(Meeting(TASKS)) as provider:
        lm = dspy.LM(**provider.lm_options("openai"))

        async def ask(number: int) -> str:
            return text_of(await predict.acall(question=f"question {number}", tools=decls))

        with dspy.context(lm=lm, adapter=adapter):
            said = await asyncio.gather(*(ask(number) for number in range(TASKS)))
    assert said == [f"question {number}" for number in range(TASKS)]


def test_a_prompt_cache_reaches_the_request() -> None:
    """request-shaping: A prompt cache that was asked for reaches the provider."""
    engine, wanted = Engine(), dspy.lm15.CacheConfig(mode="auto")
    with quiet(engine), dspy.context(lm=dspy.LM("openai/x", engine=engine, cache=False, prompt_cache=wanted)):
        dspy.Predict(Must)(question="?", tools=[echo])
    assert engine.asked[-1].config.cache == wanted
    with quiet(engine):
        dspy.Predict(Must)(question="?", tools=[echo], config={"prompt_cache": wanted})
        assert engine.asked[-1].config.cache == wanted
        dspy.Predict(Must)(question="?", tools=[echo])
        assert engine.asked[-1].config.cache is None


@pytest.mark.parametrize(
    ("adapter", "signature", "options", "planned"),
    [
        (sigadapt.ChatAdapter, Must, {}, [True, False]),
        (sigadapt.ChatAdapter, May, {}, [True, False]),
        (sigadapt.ChatAdapter, May, {"tool_calling": "native"}, [False, False]),
        (
            sigadapt.JSONAdapter,
            May,
            {"tool_calling": "native"},
            [True, True],
        ),  # its form depends on the model
        (sigadapt.JSONAdapter, Must, {"tool_calling": "native"}, [False, False]),
        (sigadapt.ChatAdapter, Think, {"tool_calling": "native"}, [True, True]),
    ],
)
def test_dspy_plans_capabilities_only_where_they_are_asked_for(
    adapter: Any, signature: Any, options: Any, planned: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """call-cost: What does not change from call to call is compiled once."""
    entered: list[bool] = []
    scope = cast("Any", capabilities).planning_scope

    def noted(*arguments: Any) -> Any:
        entered[-1] = True
        return scope(*arguments)

    monkeypatch.setattr(capabilities, "planning_scope", noted)
    with LoopbackProvider([Answer(calls=[Call("echo", {"text": "x"})])]) as provider:
        lm = dspy.LM(**provider.lm_options("openai", cache=False))
        with dspy.context(lm=lm, adapter=adapter(**options)):
            for _ in planned:
                entered.append(False)
                dspy.Predict(signature)(question="?", tools=[echo])
    assert entered == planned


def many(count: int) -> list[Any]:
    def tool(number: int) -> Any:
        def made(text: str, times: int = 1) -> str:
            """Say it often."""
            return text * times

        made.__name__ = f"echo_{number}"
        return made

    return [tool(number) for number in range(count)]


def test_tools_that_were_dropped_are_forgotten() -> None:
    """call-cost: Caches are bounded and weak."""
    engine, tools = Engine(), many(20)
    known = [weakref.ref(tool) for tool in tools]
    with quiet(engine):
        for number in range(19):  # each is the first of a list that the next one follows
            dspy.Predict(Must)(question="?", tools=tools[number : number + 2])
    engine.asked.clear()
    del tools
    collect()
    assert [reference for reference in known if reference() is not None] == []


def test_settings_that_were_sent_are_sent_again_as_they_are() -> None:
    """request-shaping: Generation settings reach the provider."""
    engine = Engine()
    with quiet(engine):
        for temperature in (1, 1.0, 0.5, 1):
            dspy.Predict(Must)(question="?", tools=[echo], config={"temperature": temperature, "top_p": 0.5})
    sent = [request.config.temperature for request in engine.asked]
    assert sent == [1, 1.0, 0.5, 1]
