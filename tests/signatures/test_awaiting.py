"""Steps that wait by themselves or not: the same for a caller that can await, refused for one that cannot."""

import asyncio
import warnings
from collections.abc import Generator
from typing import Any

import pytest
from internals import Await, Steps, arun, run

from sigadapt.errors import InvalidOption, SigadaptError


class Both:
    """A step that can be taken at once or awaited."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def now(self) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value

    async def later(self) -> Any:
        await asyncio.sleep(0)
        return self.now()


def refusal() -> SigadaptError:
    return InvalidOption("cannot wait", field="f")


async def soon(value: Any) -> Any:
    await asyncio.sleep(0)
    if isinstance(value, Exception):
        raise value
    return value


def summed(*steps: Any) -> Steps[list[Any]]:
    """Every step's value, or its error where the steps handle one."""
    found: list[Any] = []
    for step in steps:
        try:
            found.append((yield step))
        except KeyError as error:  # noqa: PERF203  (each step is handled by itself)
            found.append(error)
    return found


async def test_what_is_awaited_comes_back_into_the_steps() -> None:
    """toolsets: An async toolset is awaited."""
    error = KeyError("k")
    steps = summed(Await(soon(1), refusal), Both(2), Await(soon(error), refusal))
    assert await arun(steps) == [1, 2, error]


def test_nothing_is_awaited_where_nobody_can() -> None:
    """toolsets: A sync call refuses a toolset that has to be awaited."""
    closed: list[str] = []

    def steps() -> Generator[Any, Any, None]:
        try:
            yield Both(1)
            yield Await(soon(2), refusal)
            closed.append("went on")
        finally:
            closed.append("closed")

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that was never awaited
        with pytest.raises(InvalidOption, match="cannot wait"):
            run(steps())
    assert closed == ["closed"]


def test_what_is_no_coroutine_is_refused_without_being_touched() -> None:
    loop = asyncio.new_event_loop()
    future: Any = loop.create_future()
    with pytest.raises(InvalidOption):
        run(summed(Await(future, refusal)))
    assert not future.done()
    loop.close()
