"""What the tests of tools that ask share: an agent's provider, and saving."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import dspy

import sigadapt
from sigadapt import InputNeeded, ToolCall, ToolContext, ToolDecls
from sigadapt.testing import Answer, Call, LoopbackProvider

__all__ = ["Call", "Hook", "agent_of", "changing", "one", "saved", "serving", "submits", "turn", "waiting"]

Hook: Any = SimpleNamespace
"""A hook of the functions that it is given."""


def changing(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A hook that gives a call with other arguments."""

    def before_tool(call: ToolCall, context: ToolContext) -> ToolCall:
        return call.model_copy(update={"args": {**call.args, **change(call.args)}})

    return Hook(before_tool=before_tool)


def turn(*calls: Call, text: str = "") -> Answer:
    return Answer(text=text, calls=list(calls))


def submits(answer: str = "done") -> Answer:
    return Answer(calls=[Call("submit", {"answer": answer})])


@contextmanager
def serving(*script: Answer, wire: Any = "openai", **options: Any) -> Generator[LoopbackProvider]:
    fields: dict[str, Any] = {"confirm": "raise", **options}
    adapter = sigadapt.ChatAdapter(**fields)
    with (
        LoopbackProvider(list(script)) as net,
        dspy.context(lm=dspy.LM(**net.lm_options(wire)), adapter=adapter),
    ):
        yield net


def agent_of(kind: str, tools: Any) -> Any:
    if kind == "ReAct":
        return sigadapt.ReAct("question -> answer", tools)
    react = cast("Any", dspy.ReActV2)
    return react("question -> answer", tools=[*ToolDecls(tools)])


def waiting(run: Callable[[], Any]) -> InputNeeded:
    """Return the error that something ends in, as JSON saves it."""
    try:
        outcome = run()
    except InputNeeded as error:
        return saved(error)
    raise AssertionError(f"it went on: {outcome!r}")


def saved(error: InputNeeded) -> InputNeeded:
    return InputNeeded.model_validate_json(error.model_dump_json())


def one(error: InputNeeded) -> Any:
    [request] = error.requests
    return request
