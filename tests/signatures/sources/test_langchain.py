# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false, reportMissingImports=false
# pyright: reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# (LangChain is not among the development dependencies)
"""LangChain tools, where LangChain is installed."""

import asyncio
import datetime as dt
from typing import Annotated, Any

import pydantic
import pytest

from sigadapt import ToolCalls, ToolDecl, ToolDecls
from sigadapt.errors import InvalidToolDecl

tools = pytest.importorskip("langchain_core.tools", reason="langchain-core is not installed")
langchain_runnables = pytest.importorskip("langchain_core.runnables")


def make() -> Any:
    def search(words: str, limit: int = 3, key: Annotated[str, tools.InjectedToolArg] = "secret") -> str:
        """Search the index."""
        raise AssertionError

    return tools.tool(search)


def test_a_tool_is_shown_as_langchain_shows_it():
    """tool-declarations: A function's parameters become a schema."""
    source = make()
    facts = ToolDecl.of(source)
    assert (facts.name, facts.description) == ("search", "Search the index.")
    assert facts.parameters == {
        "type": "object",
        "properties": {"words": {"type": "string"}, "limit": {"type": "integer", "default": 3}},
        "required": ["words"],
    }


def test_a_schema_of_arguments_passes_through():
    """tool-declarations: A dict schema passes through unchanged."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    source = tools.StructuredTool(
        name="q", description="Ask.", args_schema=schema, func=print, extras={"a": 1}
    )
    facts = ToolDecl.of(source)
    assert (facts.parameters, facts.extras) == (schema, {"a": 1})
    assert ToolDecl.of(source, parameters={"type": "object"}).parameters == {"type": "object"}


def test_arguments_of_another_kind_are_refused():
    v1 = pytest.importorskip("pydantic.v1")
    model = v1.create_model("Old", a=(int, ...))
    source = tools.StructuredTool(name="q", description="Ask.", args_schema=model, func=print)
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(source)
    assert (caught.value.code, caught.value.tool) == ("underivable", "q")


class Late(tools.BaseTool):
    """A tool with a coroutine alone, which takes the id of its call."""

    name: str = "late"
    description: str = "Look later."

    def _run(self, x: int, tool_call_id: Annotated[str, tools.InjectedToolCallId]) -> str:
        raise NotImplementedError("async only")

    async def _arun(self, x: int, tool_call_id: Annotated[str, tools.InjectedToolCallId]) -> str:
        return f"late {x} {tool_call_id}"


def test_the_id_of_a_call_is_injected():
    """tool-declarations: The arguments that LangChain injects are none of the model's."""

    def who(x: int, tool_call_id: Annotated[str, tools.InjectedToolCallId]) -> str:
        """Who."""
        return f"{x} {tool_call_id}"

    async def who_later(x: int, tool_call_id: Annotated[str, tools.InjectedToolCallId]) -> str:
        """Who."""
        return f"{x} {tool_call_id}"

    for function in (who, who_later):
        decls = ToolDecls([tools.tool(function)])
        assert [*decls[0].parameters["properties"]] == ["x"]
        calls = ToolCalls(
            [{"id": "c7", "name": function.__name__, "args": {"x": 1, "tool_call_id": "forged"}}]
        )
        assert [result.value for result in calls.run(decls)] == ["1 c7"]
    [result] = ToolCalls([{"id": "c8", "name": "late", "args": {"x": 1}}]).run([Late()])
    assert "late 1 c8" in str(result.value)


def test_another_injected_argument_is_refused():
    """tool-declarations: The arguments that LangChain injects are none of the model's."""

    def owned(x: int, user_name: Annotated[str, tools.InjectedToolArg]) -> str:
        """Owned."""
        raise AssertionError

    with pytest.raises(InvalidToolDecl, match="user_name") as caught:
        ToolDecl.of(tools.tool(owned))
    assert (caught.value.code, caught.value.tool) == ("injected_argument", "owned")


class Order(pydantic.BaseModel):
    """What a tool takes, if its author wrote a schema of its own."""

    day: dt.date
    copies: int = 2

    @pydantic.field_validator("copies")
    @classmethod
    def doubled(cls, copies: int) -> int:
        return 2 * copies


def order(day: Any, copies: Any) -> str:
    """Order."""
    return f"{type(day).__name__} {copies}"


async def order_later(day: Any, copies: Any) -> str:
    """Order."""
    return f"later {type(day).__name__} {copies}"


def fail(day: Any, copies: Any) -> str:
    """Fail."""
    raise tools.ToolException("no copies")


def configured(day: str, config: Any) -> str:
    """Take what LangChain knows of the run."""
    return f"{day} {sorted(config)[:1]}"


configured.__annotations__["config"] = langchain_runnables.RunnableConfig


def handled(error: Exception) -> str:
    return f"handled: {error}"


def missing(day: str) -> str:
    """Fail."""
    raise NotImplementedError(day)


def structured(**fields: Any) -> Any:
    return tools.StructuredTool.from_function(name="order", description="Order.", **fields)


DAY = {"day": "2026-05-01"}
THREE = {**DAY, "copies": 3}
TEXT = {"__arg1": "emma"}
RUNS: dict[str, tuple[Any, dict[str, Any], Any, bool]] = {
    "a schema of its own": (structured(func=order, args_schema=Order), DAY, "date 2", False),
    "a coroutine": (structured(coroutine=order_later, args_schema=Order), THREE, "later date 6", False),
    "a handled error": (
        structured(func=fail, args_schema=Order, handle_tool_error=handled),
        DAY,
        "handled: no copies",
        True,
    ),
    "an error": (structured(func=fail, args_schema=Order), DAY, "ToolException: no copies", True),
    "its config": (structured(func=configured), DAY, "2026-05-01 ['callbacks']", False),
    "one text": (tools.Tool("order", str.upper, "Order."), TEXT, "EMMA", False),
    "an error that says too much": (structured(func=missing), DAY, "NotImplementedError: 2026-05-01", True),
}


@pytest.mark.parametrize("how", ["run", "arun"])
@pytest.mark.parametrize("form", RUNS)
def test_a_tool_runs_as_langchain_runs_it(form: str, how: str):
    """tool-declarations: LangChain runs its tools."""
    source, args, value, is_error = RUNS[form]
    calls = ToolCalls([{"id": "c1", "name": "order", "args": args}])
    results = calls.run([source]) if how == "run" else asyncio.run(calls.arun([source]))
    assert [(result.value, result.is_error) for result in results] == [(value, is_error)]
