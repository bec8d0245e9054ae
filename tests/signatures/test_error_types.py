"""The type of a failed result is that of the exception that was caught, and never read out of a text."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any, cast

import dspy
import pytest
from signatures.tool_functions.served_tools import Call, serving, submits, turn

import sigadapt
from sigadapt import Run, ToolCalls, ToolDecl, ToolDecls, ToolResult, ToolResults

mcp_types = pytest.importorskip("mcp.types")


KEY = "a secret of 16 bytes or more"


class CardDeclined(Exception):
    """An exception of a program's own."""


class OddError(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise ValueError


def raising(error: Exception, *, is_async: bool) -> Callable[..., Any]:
    def fetch() -> str:
        """Fetch."""
        raise error

    async def fetch_later() -> str:
        """Fetch."""
        raise error

    return fetch_later if is_async else fetch


def giving(value: Any) -> Callable[..., Any]:
    def fetch() -> Any:
        """Fetch."""
        return value

    return fetch


def reported(text: str) -> Any:
    content = [mcp_types.TextContent(type="text", text=text)]
    return mcp_types.CallToolResult(content=content, isError=True)


ERRORS = [
    *(KeyError("hunter2"), CardDeclined("x"), RuntimeError("ValueError: x"), AssertionError(), OddError()),
    *(StopIteration("the end"), StopAsyncIteration(), RecursionError("deep")),
]
CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    "a server's text that looks like a type": (giving(reported("Hunter2: denied")), None),
    "a failed result": (giving(ToolResult(call_id="c", name="f", value="Hunter2", is_error=True)), None),
    "no failure": (giving("KeyError: a word"), None),
} | {
    f"{type(error).__name__}{', later' * is_async}": (raising(error, is_async=is_async), type(error).__name__)
    for error in ERRORS
    for is_async in (False, True)
}
later, _ = CASES["StopIteration, later"]
CASES["StopIteration, later"] = later, "RuntimeError"  # Python's own: no coroutine may raise the other
BOTH = ToolCalls([{"id": f"call_{name}", "name": name, "args": {}} for name in ("fetch", "look")])


class Unchanged:
    def after_tool(self, call: Any, result: Any, context: Any) -> None:
        """Leave the result as it is."""


def of_turn(
    function: Callable[..., Any], *hooks: Any, is_async: bool = False, timeout: Any = None
) -> ToolResult:
    tools = ToolDecls([ToolDecl.of(function, name="fetch"), ToolDecl.of(lambda: "here", name="look")])
    tools = tools.with_hooks(*hooks)
    if is_async:
        result, good = asyncio.run(BOTH.arun(tools, timeout=timeout))
    else:
        result, good = BOTH.run(tools, timeout=timeout)
    assert (good.value, good.is_error) == ("here", False)
    return result


def of_agent(kind: Any, function: Callable[..., Any]) -> ToolResult:
    with serving(turn(Call("fetch", {})), submits()):
        program = kind("question -> answer", tools=[ToolDecl.of(function, name="fetch")])
        events: list[Any] = [*sigadapt.stream_sync(program, question="q")]
    [result] = [event.result for event in events if isinstance(event, sigadapt.events.ResultReady)]
    return result


WAYS: dict[str, Callable[[Callable[..., Any]], ToolResult]] = {
    "run": of_turn,
    "run, in a time limit": functools.partial(of_turn, timeout=20),
    "arun": functools.partial(of_turn, is_async=True),
    "arun, in a time limit": functools.partial(of_turn, is_async=True, timeout=20),
    "sigadapt.ReAct": functools.partial(of_agent, sigadapt.ReAct),
    "dspy.ReActV2": functools.partial(of_agent, dspy.ReActV2),
    "run, with a hook": lambda function: of_turn(function, Unchanged()),
    "arun, with a hook": lambda function: of_turn(function, Unchanged(), is_async=True),
}


def test_an_awaited_agent_reads_the_type() -> None:
    """tool-call-outputs: Any exception of a tool is a failed result."""
    function = raising(StopIteration("the end"), is_async=False)
    agent = cast("Any", dspy).ReActV2
    with serving(turn(Call("fetch", {})), submits()), Run() as run:
        program = agent("question -> answer", tools=ToolDecls([ToolDecl.of(function, name="fetch")]))
        asyncio.run(program.acall(question="q"))
    assert [result.value for result in run.rounds[0].results] == ["StopIteration: the end"]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_a_type_is_that_of_the_exception(way: str, name: str) -> None:
    """tool-call-outputs: A failed result has the type of the exception that was caught
    tool-call-outputs: Any exception of a tool is a failed result.
    """
    function, kind = CASES[name]
    result = WAYS[way](function)
    assert result.error_type == kind
    assert kind is None or (result.is_error and kind in str(result.value))
    assert ToolResult.model_validate_json(result.model_dump_json()) == result
    assert ("error_type" in result.model_dump()) == (kind is not None)


def test_a_signature_covers_the_type() -> None:
    """tool-call-outputs: A failed result has the type of the exception that was caught"""
    calls = ToolCalls([{"id": "call_1", "name": "fetch", "args": {}}])
    results = ToolResults.of(calls, [KeyError("x")])
    mark = sigadapt.trust.sign([calls, results], KEY)
    assert sigadapt.trust.is_signed([calls, results], mark, KEY)
    [result] = results
    forged = ToolResults.of(calls, [result.model_copy(update={"error_type": "Hunter2"})])
    assert not sigadapt.trust.is_signed([calls, forged], mark, KEY)
