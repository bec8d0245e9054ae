"""A tool's function runs from sync and async code alike, whatever kind of function it is."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from combinations import Ran, server, session_of
from internals import function_calls

from sigadapt import ToolCalls, Toolset
from sigadapt.errors import InvalidOption


def results_of(how: str, calls: ToolCalls, tools: Any, **options: Any) -> list[Any]:
    if how == "run":
        return list(calls.run(tools, **options))
    return list(asyncio.run(calls.arun(tools, **options)))


def turn(*names: str) -> ToolCalls:
    return ToolCalls([{"name": name, "args": {}} for name in names])


async def test_arun_awaits_a_toolset() -> None:
    """tool-call-outputs: A toolset is awaited."""
    ran = Ran()
    calls = ToolCalls([{"name": "book", "args": {"city": "Rome", "nights": 2}}])
    toolset: Any = Toolset("hotel", server(ran))
    for tools in (toolset, [toolset], [toolset.named("book")]):
        assert not next(iter(await calls.arun(tools))).is_error
    assert len(ran) == 3


def test_a_tool_that_cancels_itself_fails() -> None:
    """tool-call-outputs: Any exception of a tool is a failed result."""

    async def fail() -> str:
        raise asyncio.CancelledError

    for how in ("run", "arun"):
        [result] = results_of(how, turn("fail"), [fail])
        assert (result.is_error, result.value) == (True, "CancelledError: it cancelled itself")


async def test_a_loop_that_waits_for_threads_of_others_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """tool-call-outputs: A session's tools run on the session's loop."""
    monkeypatch.setattr(function_calls, "_PATIENCE", 0.2)
    ran = Ran()
    async with session_of(ran) as session:
        decls = await Toolset("hotel", session).aresolve()
        tool: Any = decls.to_dspy()[0]
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(tool, city="Rome", nights=2)
            with pytest.raises(InvalidOption, match="await"):
                waiting.result()  # which blocks this loop
        await asyncio.sleep(0.1)
    assert ran == []
