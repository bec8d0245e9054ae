"""Run: what it counts, in threads, tasks, and runs around it; and how it is left."""

import asyncio
import contextvars
import pickle
import threading
from collections.abc import AsyncGenerator
from typing import Any, cast

import dspy
import pytest
from agents import AGENTS, Shop, looks, orders, serving, settings_of_dspy, submits, turn
from dspy.utils.callback import BaseCallback

import sigadapt
from sigadapt import Limits, Run, ToolCalls, ToolDecls, Usage, run_of
from sigadapt.dspy_boundary.current_run import open_place, open_turn
from sigadapt.errors import InvalidOption, LimitExceeded
from sigadapt.testing import Answer, Call, Failure

HI = Answer(text="[[ ## answer ## ]]\nHi.\n\n[[ ## completed ## ]]", usage=(40, 4))
ask: Any = dspy.Predict("question -> answer")


@pytest.mark.parametrize("agent_of", AGENTS)
def test_agent(agent_of: Any) -> None:
    """agent-runs: A run counts what happens inside."""
    script = [turn(looks(), usage=(100, 7)), turn(orders(), usage=(200, 9)), submits(usage=(300, 11))]
    with serving(script), Run() as run:
        agent_of("question -> answer", tools=Shop().tools)(question="How many?")
    usage = run.usage
    assert (usage.requests, usage.tool_calls, usage.input_tokens, usage.output_tokens) == (3, 2, 600, 27)
    assert usage.total_tokens == 627
    assert usage.cost is not None
    assert usage.cost > 0
    assert [call.name for each in run.rounds for call in each.calls] == ["stock", "order", "submit"]
    assert run.history.messages[0]["question"] == "How many?"
    assert run.error is None


def test_reask_and_hand_written_loop() -> None:
    """agent-runs: A run counts what happens inside."""

    class Turn(dspy.Signature):
        question: str = dspy.InputField()
        tools: ToolDecls = dspy.InputField()
        calls: ToolCalls = dspy.OutputField()

    bad = turn(Call("stock", {"title": 3}))
    with serving([bad, turn(looks())], on_invalid="reask"), Run() as run:
        calls = cast("Any", dspy.Predict(Turn))(question="q", tools=Shop().tools).calls
        assert (run.usage.requests, run.usage.tool_calls) == (2, 0)
        calls.run(Shop().tools)
        asyncio.run(calls.arun(Shop().tools))
        calls[0].execute(Shop().tools)
    assert (run.usage.requests, run.usage.tool_calls) == (2, 3)
    assert not run.history.messages


def test_failed_requests_and_retries() -> None:
    """agent-runs: A run counts what happens inside."""
    with serving([Failure(500), HI], num_retries=1) as net, Run() as run:
        ask(question="Hello?")
    assert len(net.received) == 2
    assert run.usage.requests == 1
    with serving([Failure(400)]), pytest.raises(dspy.utils.exceptions.LMError), Run() as run:
        ask(question="Hello?")
    assert run.usage == Usage(requests=1)
    assert isinstance(run.error, dspy.utils.exceptions.LMError)


def test_cache(tmp_path: Any) -> None:
    """agent-runs: An answer of the cache is no request."""
    question = f"Hello from {tmp_path}?"
    with serving([HI], cache=True) as net:
        ask(question=question)
        with Run(Limits(requests=1)) as run:
            for _ in range(3):
                ask(question=question)
            ask(question=f"Another, {question}")
            ask(question=question)
    assert len(net.received) == 2
    assert (run.usage.requests, run.usage.input_tokens) == (1, 40)


def test_unknown_figures() -> None:
    """agent-runs: A figure that an answer lacks is unknown."""
    body: dict[str, Any] = {"id": "1", "object": "chat.completion", "model": "m", "created": 1}
    body["choices"] = [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": HI.text}}
    ]
    with serving([HI, body], model="openai/no-such-model-7"), Run() as run:
        ask(question="1")
        assert (run.usage.input_tokens, run.usage.cost) == (40, None)
        ask(question="2")
    assert (run.usage.requests, run.usage.input_tokens, run.usage.total_tokens) == (2, None, None)


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_side_by_side(how: str) -> None:
    """agent-runs: Runs side by side share nothing."""

    def script(request: Any) -> Answer:
        text = str(request.body["messages"])
        tokens = 1_000 if "BB" in text else 10
        if request.body["messages"][-1]["role"] == "tool":
            return submits("BB" if "BB" in text else "AA", usage=(tokens, 1))
        return turn(looks("BB" if "BB" in text else "AA"), usage=(tokens, 1))

    agent = sigadapt.ReAct("question -> answer", tools=Shop().tools, limits=Limits(requests=2))
    runs: dict[str, Run] = {}

    def run_now(who: str) -> None:
        with Run(Limits(requests=2)) as runs[who]:
            assert agent(question=who).answer == who

    async def run_later(who: str) -> None:
        with Run(Limits(requests=2)) as runs[who]:
            assert (await agent.acall(question=who)).answer == who

    async def run_both() -> None:
        await asyncio.gather(run_later("AA"), run_later("BB"))

    with serving(script):
        if how == "tasks":
            asyncio.run(run_both())
        else:
            contexts = [contextvars.copy_context() for _ in "AB"]
            threads = [
                threading.Thread(target=context.run, args=(run_now, who * 2))
                for context, who in zip(contexts, "AB", strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert {who: run.usage.input_tokens for who, run in runs.items()} == {"AA": 20, "BB": 2_000}
    assert "BB" not in runs["AA"].history.model_dump_json()


def test_inner_runs() -> None:
    """agent-runs: An inner run counts in the outer one."""
    deps = object()
    inner: list[Run] = []

    def research(question: str) -> str:
        """Find out."""
        with Run(state={"own": True}) as run:
            inner.append(run)
            return ask(question=question).answer

    script = [
        turn(Call("research", {"question": "q"}), usage=(1, 1)),
        HI,
        submits(usage=(2, 2)),
    ]
    with serving(script), Run(deps=deps, state={"cart": 1}) as outer, Run() as middle:
        sigadapt.ReAct("question -> answer", tools=[research])(question="q")
        middle.state["seen"] = True
    assert (outer.usage.requests, middle.usage.requests, inner[0].usage.requests) == (3, 3, 1)
    assert outer.usage.input_tokens == 43
    assert outer.state == {"cart": 1, "seen": True}
    assert middle.deps is inner[0].deps is deps
    assert inner[0].state == {"own": True}
    assert not inner[0].history.messages
    assert len(outer.rounds) == len(middle.rounds) == 2


def test_threads_of_dspy() -> None:
    """agent-runs: A run counts what happens inside."""
    rows = [(ask, dspy.Example(question=str(n)).with_inputs("question")) for n in range(4)]
    with serving([HI]), Run() as run:
        dspy.Parallel(num_threads=3, disable_progress_bar=True)(rows)
    assert (run.usage.requests, run.usage.input_tokens) == (4, 160)


def test_bare_thread_is_outside() -> None:
    """agent-runs: A run counts what happens inside."""
    with serving([HI]), Run() as run:
        lm, adapter = settings_of_dspy.lm, settings_of_dspy.adapter

        def work() -> None:
            with dspy.context(lm=lm, adapter=adapter):
                ask(question="1")

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert run.usage.requests == 0


def test_left_in_another_task() -> None:
    """agent-runs: A run is left in another task."""
    runs: list[Run] = []

    async def endpoint() -> AsyncGenerator[int]:
        with Run() as run:
            runs.append(run)
            await ask.acall(question="1")
            yield 1
            yield 2

    async def main() -> None:
        pages = endpoint()
        await anext(pages)
        await asyncio.create_task(pages.aclose())  # pyright: ignore[reportArgumentType]
        await ask.acall(question="2")
        with Run() as later:
            await ask.acall(question="3")
        runs.append(later)

    with serving([HI]):
        asyncio.run(main())
    assert [run.usage.requests for run in runs] == [1, 1]


def test_settings_of_the_program() -> None:
    """agent-runs: The settings of a program take nothing from its run."""
    with serving([turn(looks()), submits()]), Run() as run, dspy.context(callbacks=[BaseCallback()]):
        sigadapt.ReAct("question -> answer", tools=Shop().tools)(question="q")
    assert run.usage.requests == 2
    assert len(run.rounds) == 2


def test_entered_once() -> None:
    """agent-runs: An inner run counts in the outer one."""
    with Run() as run:
        pass
    with pytest.raises(InvalidOption, match="entered once"), run:
        pass
    wrong_state: Any = [1]
    with pytest.raises(InvalidOption, match="state"):
        Run(state=wrong_state)
    wrong_limits: Any = 3
    with pytest.raises(InvalidOption, match="limits"):
        Run(wrong_limits)


def test_an_error_that_is_raised_twice() -> None:
    """agent-runs: An error carries its run."""
    error = ValueError("no")
    for _ in range(2):
        with pytest.raises(ValueError, match="no"), Run() as run:
            raise error
        assert run_of(error) is run
    saved = pickle.loads(pickle.dumps(error))  # noqa: S301  (its own bytes)
    with pytest.raises(ValueError, match="no"), Run() as run:
        raise saved
    assert run_of(saved) is not run


@pytest.mark.parametrize("kind", AGENTS)
def test_nothing_is_left_in_the_context(kind: Any) -> None:
    """agent-runs: A run is left in another task."""
    with serving([turn(looks()), submits()]), Run():
        kind("question -> answer", tools=Shop().tools)(question="q")
    assert open_turn.get() is None
    assert open_place() is None


def test_run_of_other_errors() -> None:
    """agent-runs: An error carries its run."""
    with pytest.raises(InvalidOption) as caught:
        run_of(ValueError("x"))
    assert caught.value.code == "no_run"


def test_pickled() -> None:
    """agent-runs: An error carries its run."""
    agent = sigadapt.ReAct("question -> answer", tools=Shop().tools, limits=Limits(requests=1))
    with serving([turn(looks())]), pytest.raises(LimitExceeded) as caught:
        agent(question="q")
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert (again.code, again.used, again.limit) == ("requests", 1, 1)
    assert again.run.usage == run_of(caught.value).usage
    assert again.run.history.model_dump_json() == run_of(caught.value).history.model_dump_json()
