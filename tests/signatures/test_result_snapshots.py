"""A result is what its tool returned then: what the tool changes later does not rewrite the past."""

import asyncio
import dataclasses
import json
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, cast

import dspy
import pydantic
import pytest
from signatures.tool_functions.served_tools import Call, serving, submits, turn

import sigadapt
from sigadapt import ToolCalls, ToolDecl, ToolResult, ToolResults
from sigadapt.testing import LoopbackProvider

mcp_types = pytest.importorskip("mcp.types")

IMAGE = dspy.Image(url="data:image/png;base64,iVBORw0KGgo=")
CALL = ToolCalls([{"id": "call_1", "name": "add", "args": {}}])
TWO = ToolCalls([{"id": f"call_{n}", "name": "add", "args": {}} for n in (1, 2)])


class Todo(pydantic.BaseModel):
    items: list[str]


@dataclasses.dataclass
class Record:
    items: list[str]


class Alone(Todo):
    """A model that refuses to be copied."""

    def __deepcopy__(self, memo: Any = None) -> NoReturn:
        raise TypeError("it holds a lock")


def mcp_result(items: list[str]) -> Any:
    return mcp_types.CallToolResult.model_construct(
        content=[],
        structuredContent={"todo": {"items": items}},
        structured_content={"todo": {"items": items}},
    )


def failed(items: list[str]) -> ToolResult:
    return ToolResult(call_id="", name="", value=[*items], is_error=True).model_copy(update={"value": items})


VALUES: dict[str, Callable[[list[str]], Any]] = {
    "a list": lambda items: items,
    "a list in a list": lambda items: [items],
    "a list in a tuple": lambda items: (1, items),
    "a list in an object": lambda items: {"todo": {"items": items}},
    "a list by a number": lambda items: {1: items},
    "a list in a model": lambda items: Todo.model_construct(items=items),
    "a list in a model in a list": lambda items: [Todo.model_construct(items=items)],
    "a list in a dataclass": Record,
    "a list in a model that cannot be copied": lambda items: Alone.model_construct(items=items),
    "a list beside an image": lambda items: [IMAGE, items],
    "a list in a program's outputs": lambda items: dspy.Prediction(items=items),
    "a ToolResult": lambda items: ToolResult(call_id="", name="", value=items),
    "a failed ToolResult": failed,
    "an MCP result": mcp_result,
}


def adding(make: Callable[[list[str]], Any]) -> ToolDecl:
    """A tool that returns the same items each time, and one more."""
    items: list[str] = []
    held = make(items)

    def add() -> Any:
        items.append(f"item {len(items) + 1}")
        return held

    return ToolDecl.of(add)


def of_runs(make: Callable[[list[str]], Any]) -> list[ToolResult]:
    tool = adding(make)
    return [*CALL.run([tool]), *CALL.run([tool])]


def of_turn(make: Callable[[list[str]], Any]) -> list[ToolResult]:
    return [*TWO.run([adding(make)], parallel=False)]


def of_async_turn(make: Callable[[list[str]], Any]) -> list[ToolResult]:
    return [*asyncio.run(TWO.arun([adding(make)], parallel=False))]


def of_values(make: Callable[[list[str]], Any]) -> list[ToolResult]:
    execute = partial(CALL[0].execute, sigadapt.ToolDecls([adding(make)]))
    return [*ToolResults.of(CALL, [execute()]), *ToolResults.of(CALL, [execute()])]


def of_agent(kind: Any, make: Callable[[list[str]], Any]) -> list[ToolResult]:
    with serving(turn(Call("add", {})), turn(Call("add", {})), submits()) as net, sigadapt.Run() as run:
        kind("question -> answer", tools=[adding(make)])(question="q")
    _check_prefixes(net)
    return [result for each in run.rounds for result in each.results if result.name == "add"]


def _check_prefixes(net: LoopbackProvider) -> None:
    first, second, third = (received.body["messages"] for received in net.received)
    assert third[: len(second)] == second
    assert second[: len(first)] == first


WAYS: dict[str, Callable[[Callable[[list[str]], Any]], list[ToolResult]]] = {
    "two runs": of_runs,
    "one by one": of_turn,
    "one by one, async": of_async_turn,
    "sigadapt.ReAct": partial(of_agent, sigadapt.ReAct),
    "dspy.ReActV2": partial(of_agent, dspy.ReActV2),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("way", WAYS)
def test_what_a_tool_changes_later_stays_as_it_was(way: str, name: str) -> None:
    """tool-call-outputs: A result is a copy as of the return"""
    first, second = (str(ToolResults.of(CALL, [_plain(result)])) for result in WAYS[way](VALUES[name]))
    assert "item 1" in first
    assert "item 2" not in first
    assert "item 2" in second


def _plain(result: ToolResult) -> Any:
    return json.loads(result.model_dump_json())["value"]


@pytest.mark.parametrize("name", sorted(VALUES.keys() - {"a ToolResult", "a failed ToolResult"}))
def test_values_given_for_calls_stay_too(name: str) -> None:
    """tool-call-outputs: A result is a copy as of the return"""
    first, second = (result.model_dump_json() for result in of_values(VALUES[name]))
    assert "item 2" not in first
    assert "item 2" in second


def test_a_program_that_runs_a_call_gets_the_tools_own_object() -> None:
    """tool-call-outputs: A result is a copy as of the return"""
    held = Todo(items=[])
    tool = ToolDecl.of(lambda: held, name="add")
    assert CALL[0].execute(sigadapt.ToolDecls([tool])) is held
    [result] = CALL.run([tool])
    assert result.value == held
    assert cast("object", result.value) is not held


def test_the_observations_of_dspy_react_stay() -> None:
    """tool-call-outputs: A result is a copy as of the return"""
    form = (
        "[[ ## next_thought ## ]]\nx\n\n[[ ## next_tool_name ## ]]\n{}\n\n[[ ## next_tool_args ## ]]\n{{}}\n"
    )
    answers = [sigadapt.testing.Answer(text=form.format(name)) for name in ("add", "add", "finish")]
    last = sigadapt.testing.Answer(text="[[ ## reasoning ## ]]\nx\n\n[[ ## answer ## ]]\ny\n")
    with serving(*answers, last):
        react = cast("Any", dspy.ReAct)
        out = react("question -> answer", tools=[adding(VALUES["a list"]).to_dspy()])(question="q")
    assert out.trajectory["observation_0"] == ["item 1"]
    assert out.trajectory["observation_1"] == ["item 1", "item 2"]
