"""The type of a failed result is that of the exception that was caught, and never read out of a text."""

import asyncio
from collections.abc import Callable
from typing import Any

import dspy
import pytest

import sigadapt
from sigadapt import ToolCalls, ToolResult, ToolResults
from sigadapt.testing import Answer, Call, LoopbackProvider

mcp_types = pytest.importorskip("mcp.types")


KEY = "a secret of 16 bytes or more"


class CardDeclined(Exception):
    """An exception of a program's own."""


def raising(error: Exception) -> Callable[..., Any]:
    def fetch() -> str:
        """Fetch."""
        raise error

    return fetch


def giving(value: Any) -> Callable[..., Any]:
    def fetch() -> Any:
        """Fetch."""
        return value

    return fetch


def reported(text: str) -> Any:
    content = [mcp_types.TextContent(type="text", text=text)]
    return mcp_types.CallToolResult(content=content, isError=True)


CASES: dict[str, tuple[Callable[..., Any], str | None]] = {
    "an exception": (raising(KeyError("hunter2")), "KeyError"),
    "an exception of the program's own": (raising(CardDeclined("x")), "CardDeclined"),
    "an exception whose text names a type": (raising(RuntimeError("ValueError: x")), "RuntimeError"),
    "a server's text that looks like a type": (giving(reported("Hunter2: denied")), None),
    "a failed result": (giving(ToolResult(call_id="c", name="f", value="Hunter2", is_error=True)), None),
    "no failure": (giving("KeyError: a word"), None),
}


def one_call() -> ToolCalls:
    return ToolCalls([{"id": "call_1", "name": "fetch", "args": {}}])


def of_turn(function: Callable[..., Any]) -> ToolResult:
    [result] = one_call().run([function])
    return result


def of_async_turn(function: Callable[..., Any]) -> ToolResult:
    [result] = asyncio.run(one_call().arun([function]))
    return result


def of_agent(kind: Any) -> Callable[[Callable[..., Any]], ToolResult]:
    def run(function: Callable[..., Any]) -> ToolResult:
        answers = [Answer(calls=[Call("fetch", {})]), Answer(calls=[Call("submit", {"answer": "done"})])]
        with LoopbackProvider(answers) as provider:
            lm = dspy.LM(**provider.lm_options("openai"))
            with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
                program = kind("question -> answer", tools=[function])
                events: list[Any] = [*sigadapt.stream_sync(program, question="q")]
        [result] = [event.result for event in events if isinstance(event, sigadapt.events.ResultReady)]
        return result

    return run


WAYS: dict[str, Callable[[Callable[..., Any]], ToolResult]] = {
    "run": of_turn,
    "arun": of_async_turn,
    "sigadapt.ReAct": of_agent(sigadapt.ReAct),
    "dspy.ReActV2": of_agent(dspy.ReActV2),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_a_type_is_that_of_the_exception(way: str, name: str) -> None:
    """tool-call-outputs: A failed result has the type of the exception that was caught"""
    function, kind = CASES[name]
    result = WAYS[way](function)
    assert result.error_type == kind
    assert ToolResult.model_validate_json(result.model_dump_json()) == result
    assert ("error_type" in result.model_dump()) == (kind is not None)


def test_a_signature_covers_the_type() -> None:
    """tool-call-outputs: A failed result has the type of the exception that was caught"""
    calls = one_call()
    results = ToolResults.of(calls, [KeyError("x")])
    mark = sigadapt.trust.sign([calls, results], KEY)
    assert sigadapt.trust.is_signed([calls, results], mark, KEY)
    [result] = results
    forged = ToolResults.of(calls, [result.model_copy(update={"error_type": "Hunter2"})])
    assert not sigadapt.trust.is_signed([calls, forged], mark, KEY)
