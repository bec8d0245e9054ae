"""A tool's function runs from sync and async code alike, whatever kind of function it is."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import dspy
import pytest
from combinations import Ran, server, session_of
from internals import function_calls
from support import lm_of

import sigadapt
from sigadapt import ToolCalls, ToolDecl, ToolDecls, Toolset
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, Call, LoopbackProvider

HOW = pytest.mark.parametrize("how", ["run", "arun"])
WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


def results_of(how: str, calls: ToolCalls, tools: Any, **options: Any) -> list[Any]:
    if how == "run":
        return list(calls.run(tools, **options))
    return list(asyncio.run(calls.arun(tools, **options)))


def turn(*names: str) -> ToolCalls:
    return ToolCalls([{"name": name, "args": {}} for name in names])


class OddError(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise ValueError


def raising(error: BaseException, *, is_async: bool) -> Callable[..., Any]:
    def fail() -> str:
        raise error

    async def later() -> str:
        raise error

    return later if is_async else fail


@HOW
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    "error",
    [StopIteration("the end"), StopAsyncIteration(), RecursionError("deep"), AssertionError(), OddError()],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("timeout", [None, 20])
def test_any_exception_is_a_failed_result(how: str, error: Any, timeout: Any, *, is_async: bool) -> None:
    """tool-call-outputs: Any exception of a tool is a failed result."""
    function = raising(error, is_async=is_async)
    tools = [ToolDecl.of(function, name="fail"), ToolDecl.of(lambda: "here", name="look")]
    failed, good = results_of(how, turn("fail", "look"), tools, timeout=timeout)
    assert failed.is_error
    assert type(error).__name__ in failed.value
    assert (good.value, good.is_error) == ("here", False)


@HOW
def test_the_context_of_the_caller_is_seen(how: str) -> None:
    """tool-call-outputs: Async functions run from sync code."""

    def who() -> str:
        return WHO.get()

    async def who_later() -> str:
        return WHO.get()

    token = WHO.set("Ada")
    try:
        results = results_of(how, turn("who", "who_later"), [who, who_later])
    finally:
        WHO.reset(token)
    assert [result.value for result in results] == ["Ada", "Ada"]


async def test_a_sync_function_does_not_block_the_loop() -> None:
    """tool-call-outputs: The calls of a turn run side by side."""
    released = threading.Event()

    def wait() -> bool:
        return released.wait(20)

    async def release() -> None:  # which needs the loop while the function waits
        released.set()

    tool: Any = ToolDecl.of(wait).to_dspy()
    running = asyncio.ensure_future(tool.acall())
    await release()
    assert await running is True


async def test_an_agent_in_a_notebook_runs_async_tools() -> None:
    """tool-call-outputs: Async functions run from sync code."""

    async def fetch() -> str:
        await asyncio.sleep(0)
        return "page"

    script = [Answer(calls=[Call("fetch", {})]), Answer(calls=[Call("submit", {"answer": "Read."})])]
    with (
        LoopbackProvider(script) as provider,
        dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter()),
    ):
        agent: Any = cast("Any", dspy).ReActV2("question -> answer", tools=ToolDecls([fetch]))
        assert agent(question="q").answer == "Read."
        assert "page" in str(provider.received[1].body["messages"][-1])


async def test_a_session_is_called_on_its_loop() -> None:
    """tool-call-outputs: A session's tools run on the session's loop."""
    ran = Ran()
    calls = ToolCalls([{"name": "book", "args": {"city": "Rome", "nights": 2}}])
    async with session_of(ran) as session:
        decls = await Toolset("hotel", session).aresolve()
        in_thread = await asyncio.to_thread(calls.run, decls)
        in_other_loop = await asyncio.to_thread(lambda: asyncio.run(calls.arun(decls)))
        here = await calls.arun(decls)
        with pytest.raises(InvalidOption) as caught:
            calls.run(decls)
        assert caught.value.code == "blocked_loop"
        with pytest.raises(InvalidOption, match="await"):
            decls.to_dspy()[0](city="Rome", nights=2)
    assert ran == [("Rome", 2)] * 3
    for results in (in_thread, in_other_loop, here):
        assert not next(iter(results)).is_error


async def test_a_server_is_called_anywhere_once_its_loop_has_ended() -> None:
    """tool-call-outputs: A session's tools run on the session's loop."""
    ran = Ran()
    toolset = Toolset("hotel", server(ran))
    decls = await asyncio.to_thread(lambda: asyncio.run(toolset.aresolve()))
    calls = ToolCalls([{"name": "book", "args": {"city": "Rome", "nights": 2}}])
    assert not next(iter(calls.run(decls))).is_error
    assert not next(iter(await calls.arun(decls))).is_error
    assert len(ran) == 2


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


async def test_an_agent_on_the_loop_of_its_session_tells_the_developer() -> None:
    """tool-call-outputs: A session's tools run on the session's loop."""
    ran = Ran()
    book = Call("book", {"city": "Rome", "nights": 2})
    async with session_of(ran) as session:
        decls = await Toolset("hotel", session).aresolve()
        marked = ToolDecls([ToolDecl.of(decl, requires_confirmation=True) for decl in decls])
        asked: list[Any] = []

        def ask(*question: Any) -> bool:
            asked.append(question)
            return True

        for tools in (decls, marked.confirmed_by(ask)):
            with (
                LoopbackProvider([Answer(calls=[book])]) as provider,
                dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter()),
            ):
                agent: Any = cast("Any", dspy).ReActV2("question -> answer", tools=tools)
                with pytest.raises(InvalidOption) as caught:
                    agent(question="q")
                assert (caught.value.code, len(provider.received)) == ("blocked_loop", 1)
        calls = ToolCalls([{"name": "book", "args": {"city": "Rome", "nights": 2}}])
        with pytest.raises(InvalidOption, match="await"):
            calls.run(marked.confirmed_by(ask))
    assert (ran, asked) == ([], [])


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


def test_a_parameter_may_have_any_name() -> None:
    """tool-call-outputs: Async functions run from sync code."""

    def find(instance: str, kwargs: str) -> str:
        return instance + kwargs

    tool: Any = ToolDecl.of(find).to_dspy()
    assert tool(instance="a", kwargs="b") == "ab"
    assert asyncio.run(tool.acall(instance="a", kwargs="b")) == "ab"
