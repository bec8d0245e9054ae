"""Tools of an agent under `dspy.streamify`: programs, async functions, time limits, one call or several."""

import asyncio
import collections
from typing import Any, cast

import dspy
import pytest
from support import serving

import sigadapt
from sigadapt import ToolDecl, ToolDecls
from sigadapt.testing import Answer, Call, Received

WORDS = "some words of the inner program"
_SECONDS = 20
"""How long a stream may take before the test takes it for one that hangs."""

inner = dspy.Predict("q -> out")


def think(q: str) -> str:
    """Ask the inner program."""
    return cast("Any", inner)(q=q).out


async def think_later(q: str) -> str:
    """Ask the inner program, and await it."""
    return (await cast("Any", inner).acall(q=q)).out


def script(tool: str, count: int) -> Any:
    """What a model writes: some calls of a tool, then a submit of their results."""

    def reply(received: Received) -> Answer:
        if "tools" not in received.body:
            return Answer(text=f"[[ ## out ## ]]\n{WORDS}\n\n[[ ## completed ## ]]", chunk=4)
        texts = [row["content"] for row in received.body["messages"] if row["role"] == "tool"]
        if texts:
            return Answer(calls=[Call("submit", {"answer": " | ".join(texts)})])
        return Answer(calls=[Call(tool, {"q": str(n)}) for n in range(count)])

    return reply


def streamed(kind: Any, tool: Any, count: int, *, is_async: bool) -> tuple[str, "collections.Counter[str]"]:
    """The answer of a streamed agent, and the status messages that came before."""
    messages: collections.Counter[str] = collections.Counter()

    async def read() -> str:
        answer = ""
        agent = kind("question -> answer", tools=ToolDecls([tool]))
        program: Any = dspy.streamify(agent, is_async_program=is_async)
        async for item in program(question="Think."):
            if isinstance(item, dspy.streaming.StatusMessage):
                messages[item.message] += 1
            elif isinstance(item, dspy.Prediction):
                answer = cast("Any", item).answer
        return answer

    name = tool.name if isinstance(tool, ToolDecl) else tool.__name__
    with serving(script(name, count)):
        return asyncio.run(asyncio.wait_for(read(), _SECONDS)), messages


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "tool",
    [
        think,
        think_later,
        ToolDecl.of(think, timeout=_SECONDS),
        ToolDecl.of(inner, name="inner", description="Ask the inner program."),
    ],
    ids=["sync", "async", "timeout", "program"],
)
def test_tools_that_ask_models_under_streamify(tool: Any, count: int, *, is_async: bool) -> None:
    """streaming: Tools run under streamify as without it."""
    answer, messages = streamed(sigadapt.ReAct, tool, count, is_async=is_async)
    assert answer.count(WORDS) == count
    assert "ERROR" not in answer
    of_dspys_agent = streamed(dspy.ReActV2, tool, count, is_async=is_async)
    assert (answer, messages) == of_dspys_agent
    assert sum(messages.values()) == 2 * (count + 1)
