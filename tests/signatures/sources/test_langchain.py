# pyright: reportUnknownVariableType=false, reportUnknownParameterType=false, reportMissingImports=false
# pyright: reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# (LangChain is not among the development dependencies)
"""LangChain tools, where LangChain is installed."""

from typing import Annotated, Any

import pydantic
import pytest

from sigadapt import ToolDecl
from sigadapt.errors import InvalidToolDecl

tools = pytest.importorskip("langchain_core.tools", reason="langchain-core is not installed")


class Query(pydantic.BaseModel):
    """Not the tool's description."""

    words: str = pydantic.Field(description="what for", min_length=1)


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


def test_a_model_of_arguments_is_read():
    source = tools.StructuredTool(name="q", description="Ask.", args_schema=Query, func=print)
    facts = ToolDecl.of(source)
    assert facts.description == "Ask."
    assert facts.parameters["properties"]["words"] == {
        "type": "string",
        "minLength": 1,
        "description": "what for",
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
