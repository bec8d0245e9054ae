"""Run: what it counts, in threads, tasks, and runs around it; and how it is left."""

import asyncio
import pickle
from collections.abc import AsyncGenerator
from typing import Any

import dspy
import pytest
from agents import Shop, looks, serving, submits, turn
from dspy.utils.callback import BaseCallback

import sigadapt
from sigadapt import Limits, Run, run_of
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer

HI = Answer(text="[[ ## answer ## ]]\nHi.\n\n[[ ## completed ## ]]", usage=(40, 4))
ask: Any = dspy.Predict("question -> answer")


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
        each = (
            asyncio.to_thread(run_now, who) if how == "threads" else run_later(who) for who in ("AA", "BB")
        )
        await asyncio.gather(*each)

    with serving(script):
        asyncio.run(run_both())
    assert {who: run.usage.input_tokens for who, run in runs.items()} == {"AA": 20, "BB": 2_000}
    assert "BB" not in runs["AA"].history.model_dump_json()


def test_threads_of_dspy() -> None:
    """agent-runs: A run counts what happens inside."""
    rows = [(ask, dspy.Example(question=str(n)).with_inputs("question")) for n in range(4)]
    with serving([HI]), Run() as run:
        dspy.Parallel(num_threads=3, disable_progress_bar=True)(rows)
    assert (run.usage.requests, run.usage.input_tokens) == (4, 160)


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


def test_run_of_other_errors() -> None:
    """agent-runs: An error carries its run."""
    with pytest.raises(InvalidOption) as caught:
        run_of(ValueError("x"))
    assert caught.value.code == "no_run"
