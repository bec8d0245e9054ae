"""MCP tools pass through as the server wrote them."""

from typing import Any

import mcp.types
import pydantic
import pytest
from processes import run_python

from sigadapt import ToolDecl
from sigadapt.errors import InvalidToolDecl

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "head": {"type": "number"}, "n": {"$ref": "#/$defs/N"}},
    "required": ["path"],
    "additionalProperties": False,
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$defs": {"N": {"type": "object", "properties": {"k": {"$ref": "#/$defs/N"}}}},
}


def tool(**fields: Any) -> mcp.types.Tool:
    return mcp.types.Tool.model_validate({"name": "read_file", "inputSchema": SCHEMA, **fields})


def test_schemas_pass_through():
    """tool-declarations: A dict schema passes through unchanged."""
    source = tool(description="Read a file.", outputSchema={"type": "object"})
    facts = ToolDecl.of(source)
    assert (facts.name, facts.description, facts.returns) == ("read_file", "Read a file.", {"type": "object"})
    assert facts.parameters == SCHEMA
    assert facts.func is None
    assert facts.extras == {"outputSchema": {"type": "object"}}, "it leaves where a provider takes it"


def test_what_stands_beside_the_function_is_kept():
    facts = ToolDecl.of(tool(title="Read", annotations={"readOnlyHint": True}, _meta={"a": 1}))
    assert facts.extras == {"title": "Read", "annotations": {"readOnlyHint": True}, "_meta": {"a": 1}}
    assert facts.description == ""


class OlderTool(pydantic.BaseModel):
    """The fields as version 1 of the SDK names them."""

    name: str
    description: str | None = None
    inputSchema: dict[str, Any]  # noqa: N815
    outputSchema: dict[str, Any] | None = None  # noqa: N815
    title: str | None = None


def test_version_one_of_the_sdk_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mcp.types, "Tool", OlderTool)
    source = OlderTool(name="f", inputSchema=SCHEMA, outputSchema={"type": "object"}, title="F")
    facts = ToolDecl.of(source)
    assert facts.parameters == SCHEMA
    assert (facts.returns, facts.extras) == (
        {"type": "object"},
        {"outputSchema": {"type": "object"}, "title": "F"},
    )


def test_a_given_schema_replaces_the_server_s():
    given = {"type": "object"}
    assert ToolDecl.of(tool(), parameters=given).parameters == given


@pytest.mark.parametrize("value", [{}, 5, mcp.types.ListToolsResult(tools=[])])
def test_nothing_else_is_read(value: object):
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(value)
    assert caught.value.code == "unknown_source"


@pytest.mark.slow
def test_reading_other_sources_imports_no_optional_library():
    code = (
        "import sys\n"
        "from sigadapt.signatures.tool_decls import ToolDecls\n"
        "def f(a: int): ...\n"
        "ToolDecls([f, {'name': 'g'}]).to_openai()\n"
        "print([name for name in ('mcp', 'mcp_types', 'langchain_core') if name in sys.modules])\n"
    )
    done = run_python("-c", code, check=True)
    assert done.stdout.strip() == "[]"
