# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false, reportMissingImports=false
# pyright: reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# (LangChain is not among the development dependencies)
"""LangChain tools, where LangChain is installed."""

from typing import Annotated, Any

import pytest

from sigadapt import ToolCalls, ToolDecl, ToolDecls
from sigadapt.errors import InvalidToolDecl

tools = pytest.importorskip("langchain_core.tools", reason="langchain-core is not installed")


def make() -> Any:
    def search(words: str, limit: int = 3, key: Annotated[str, tools.InjectedToolArg] = "secret") -> str:
        """Search the index."""
        raise AssertionError

    return tools.tool(search)


def test_a_tool_is_shown_as_langchain_shows_it():
    """tool-declarations: A function's parameters become a schema."""
    source = make()
    facts = ToolDecl.of(source)
    assert (facts.name, facts.description, facts.func) == ("search", "Search the index.", source.func)
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
