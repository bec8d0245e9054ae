"""`timeout` and `sequential` of a declaration: what is refused, what keeps them, and where they hold."""

import asyncio
import copy
import dataclasses
import pickle
import threading
from collections.abc import Callable
from typing import Any, cast

import dspy
import pytest
from signatures.tool_functions.served_tools import Call, serving, submits, turn

import sigadapt
from sigadapt import Run, ToolCall, ToolCalls, ToolContext, ToolDecl, ToolDecls, Toolset
from sigadapt.errors import InvalidToolDecl

FOREVER = 20
CALLS = ToolCalls([ToolCall(id="1", name="slow", args={}), ToolCall(id="2", name="slow_later", args={})])


def slow() -> str:
    """Wait."""
    threading.Event().wait(0.4)
    return "late"


async def slow_later() -> str:
    """Wait."""
    await asyncio.sleep(FOREVER)
    return "late"


@pytest.mark.parametrize("timeout", [0, -1, True, "1", float("nan"), float("inf"), 10**12])
def test_no_timeout(timeout: Any) -> None:
    """tool-call-outputs: A tool has a time limit of its own."""
    with pytest.raises(InvalidToolDecl, match="timeout"):
        ToolDecl.of(slow, timeout=timeout)


COPIES: dict[str, Callable[[ToolDecl], Any]] = {
    "replace": lambda decl: dataclasses.replace(decl, description="Other."),
    "ToolDecl.of": ToolDecl.of,
    "renamed": lambda decl: ToolDecl.of(decl, name="other"),
    "deepcopy": copy.deepcopy,
    "pickle": lambda decl: pickle.loads(pickle.dumps(decl)),  # noqa: S301  (its own bytes)
    "to_dspy": lambda decl: ToolDecl.of(decl.to_dspy()),
    "toolset": lambda decl: Toolset("shop", [decl]).resolve()["slow"],
    "prefixed": lambda decl: Toolset("shop", [decl]).prefixed("x_").resolve()["x_slow"],
    "deferred": lambda decl: Toolset("shop", [decl]).deferred().resolve()["slow"],
    "ToolDecls": lambda decl: ToolDecls([decl])["slow"],
}


@pytest.mark.parametrize("form", COPIES)
def test_copies(form: str) -> None:
    """tool-call-outputs: A tool has a time limit of its own."""
    decl = ToolDecl.of(slow, timeout=0.5, sequential=True)
    again = COPIES[form](decl)
    assert (again.timeout, again.sequential) == (0.5, True)
    assert ToolDecl.of(decl, timeout=2).timeout == 2
    assert (ToolDecl.of(slow).timeout, ToolDecl.of(slow).sequential) == (None, False)


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize(("own", "given"), [(0.05, None), (0.05, FOREVER), (FOREVER, 0.05), (None, 0.05)])
def test_the_smaller_one_holds(how: str, own: Any, given: Any) -> None:
    """tool-call-outputs: A tool has a time limit of its own."""
    decls = ToolDecls([ToolDecl.of(slow, timeout=own), ToolDecl.of(slow_later, timeout=own)])
    if how == "sync":
        results = CALLS.run(decls, timeout=given)
    else:
        results = asyncio.run(CALLS.arun(decls, timeout=given))
    first, second = results
    assert str(first.value).endswith("after 0.05 seconds. It may still be running.")
    assert str(second.value).endswith("after 0.05 seconds. It was cancelled.")


def slow_with_context(context: ToolContext) -> str:
    """Wait."""
    return slow()


class Unchanged:
    def after_tool(self, call: ToolCall, result: Any, context: ToolContext) -> None:
        """Leave the result as it is."""


BLOCKING: dict[str, ToolDecls] = {
    "alone": ToolDecls([ToolDecl.of(slow, timeout=0.05)]),
    "with its context": ToolDecls([ToolDecl.of(slow_with_context, name="slow", timeout=0.05)]),
    "with a hook": ToolDecls([ToolDecl.of(slow, timeout=0.05)]).with_hooks(Unchanged()),
}


@pytest.mark.parametrize("home", ["run", "arun", "agent"])
@pytest.mark.parametrize("form", BLOCKING)
def test_a_thread_runs_on(form: str, home: str) -> None:
    """tool-call-outputs: A tool has a time limit of its own."""
    decls = BLOCKING[form]
    calls = ToolCalls([CALLS[0]])
    if home == "agent":
        with serving(turn(Call("slow", {})), submits()), Run() as run:
            _ = asyncio.run(cast("Any", dspy).ReActV2("question -> answer", tools=decls).acall(question="q"))
        result = run.rounds[0].results[0]
    else:
        [result] = calls.run(decls) if home == "run" else asyncio.run(calls.arun(decls))
    assert str(result.value).endswith("after 0.05 seconds. It may still be running.")


def test_a_call_alone() -> None:
    """tool-call-outputs: A tool has a time limit of its own."""
    decls = ToolDecls([ToolDecl.of(slow, timeout=0.05), ToolDecl.of(slow_later, timeout=0.05)])
    first, second = CALLS
    with pytest.raises(TimeoutError, match=r"after 0\.05 seconds\. It may still be running\."):
        first.execute(decls)
    with pytest.raises(TimeoutError, match=r"after 0\.05 seconds\. It was cancelled\."):
        asyncio.run(second.execute(decls))
    assert first.execute([slow]) == "late"


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("kind", [sigadapt.ReAct, cast("Any", dspy).ReActV2])
def test_agents(kind: Any, how: str) -> None:
    """tool-call-outputs: A tool has a time limit of its own."""
    decls = ToolDecls([ToolDecl.of(slow, timeout=0.05), ToolDecl.of(slow_later, timeout=0.05)])
    agent = kind("question -> answer", tools=decls)
    with serving(turn(Call("slow", {}), Call("slow_later", {})), submits()), Run() as run:
        _ = agent(question="q") if how == "sync" else asyncio.run(agent.acall(question="q"))
    texts = [str(result.value) for result in run.rounds[0].results]
    assert texts[0].endswith("It may still be running.")
    assert texts[1].endswith("It was cancelled.")
