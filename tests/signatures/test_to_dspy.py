"""Declarations and MCP tools in DSPy's agents."""

import json
from typing import Annotated, Any, cast

import dspy
import mcp.types
import pydantic
import pytest
from support import lm_of

import sigadapt
from sigadapt import InvalidToolDecl, ToolDecl, ToolDecls, Toolset
from sigadapt.testing import Answer, Call, LoopbackProvider

TASK: Any = cast("Any", dspy.Signature)("question -> answer")
SUBMIT = Answer(calls=[Call("submit", {"answer": "4711"})])
LISTED = mcp.types.Tool.model_validate(
    {
        "name": "read_text_file",
        "description": "Read a file.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "head": {"type": "number"},
                "tail": {"type": "number"},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    }
)


class Session:
    """A server with one tool, which reads one file and denies all others."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def list_tools(self) -> list[Any]:
        return [LISTED]

    async def call_tool(self, name: str, arguments: Any = None) -> Any:
        self.calls.append((name, arguments))
        allowed = arguments["path"] == "a"
        text = "It says 4711." if allowed else "Access denied."
        content = [{"type": "text", "text": text}]
        return mcp.types.CallToolResult.model_validate({"content": content, "isError": not allowed})


class Place(pydantic.BaseModel):
    city: str


def visit(places: list[Place], days: Annotated[int, pydantic.Field(ge=1)] = 1) -> str:
    """Visit places.

    Args:
        days: For how long.
    """
    return f"{[place.city for place in places]} {days}"


async def ask(tools: Any, *calls: Call) -> tuple[Any, Any]:
    script = [*(Answer(calls=[call]) for call in calls), SUBMIT]
    with LoopbackProvider(script) as provider:
        with dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter(tool_calling="native")):
            out = await cast("Any", dspy.ReActV2(TASK, tools=tools, max_iters=5)).acall(question="?")
        return out, [received.body for received in provider.received]


def parameters_in(body: Any) -> Any:
    return body["tools"][0]["function"]["parameters"]


async def agents_tools(kind: str, session: Session) -> Any:
    if kind == "from_mcp_tool":
        return [dspy.Tool.from_mcp_tool(cast("Any", session), LISTED)]
    return (await Toolset("files", session).aresolve()).to_dspy()


@pytest.mark.parametrize("kind", ["from_mcp_tool", "Toolset"])
async def test_mcp_tools_go_into_agents(kind: str):
    """tool-declarations: MCP tools go into DSPy's agents with their own schema."""
    session = Session()
    reads = [Call("read_text_file", {"path": "b"}), Call("read_text_file", {"path": "a", "head": 3})]
    out, bodies = await ask(await agents_tools(kind, session), *reads)
    assert (out.answer, len(bodies)) == ("4711", 3)
    assert session.calls == [("read_text_file", {"path": "b"}), ("read_text_file", {"path": "a", "head": 3})]
    assert parameters_in(bodies[0]) == LISTED.model_dump(by_alias=True)["inputSchema"]
    results = [event["tool_calls"].tool_call_results.tool_call_results[0] for event in out.history.messages]
    assert [result.is_error for result in results] == [True, False, False]
    assert "Access denied." in json.dumps(bodies[1]["messages"])
    assert "It says 4711." in json.dumps(bodies[2]["messages"])


async def test_a_tool_whose_arguments_were_changed_is_described_as_written():
    tool = dspy.Tool.from_mcp_tool(cast("Any", Session()), LISTED)
    tool.args = {"path": {"type": "string"}}
    tool.arg_desc = {"path": "where (Required)"}
    assert ToolDecl.of(tool).parameters == {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    }


def test_what_dspy_made_of_another_schema_says_what_is_required():
    """tool-declarations: MCP tools go into DSPy's agents with their own schema."""

    async def run(*args: Any, **kwargs: Any) -> None: ...

    args = {"a": {"type": "string"}, "b": {"type": "string"}}
    described = {"a": "first (Required)", "b": "second"}
    assert ToolDecl.of(dspy.Tool(run, "f", "F.", args, {}, described)).parameters["required"] == ["a"]
    assert ToolDecl.of(dspy.Tool(run, "f", "F.", args, {})).parameters["required"] == ["a", "b"]


async def test_a_declaration_becomes_a_tool_that_is_declared_as_it_was():
    """tool-declarations: A declaration becomes a DSPy tool with its name, schema and function."""
    decls = ToolDecls([ToolDecl.of(visit, name="go.there", requires_confirmation=True), {"name": "x"}])
    [tool] = ToolDecls(decls["go.there"]).to_dspy()
    assert (tool.name, tool.func, tool.desc) == ("go.there", visit, "Visit places.")
    assert ToolDecl.of(tool) == decls["go.there"]
    assert ToolDecl.of(tool).requires_confirmation is True
    assert tool(places=[{"city": "Paris"}], days=2) == "['Paris'] 2"
    out, bodies = await ask(
        [tool], Call("go.there", {"places": [{"city": "Rome"}], "days": 0}), SUBMIT.calls[0]
    )
    assert out.answer == "4711"
    assert parameters_in(bodies[0]) == decls["go.there"].parameters
    assert "less than the minimum of 1" in json.dumps(bodies[1]["messages"])
    with pytest.raises(InvalidToolDecl, match="no function to run"):
        decls.to_dspy()


async def test_it_can_be_copied_and_awaited():
    tool = ToolDecl.of(visit).to_dspy()
    for each in (tool, tool.model_copy(), tool.model_copy(deep=True)):
        assert await each.acall(places=[]) == "[] 1"
        assert ToolDecl.of(each) == ToolDecl.of(visit)
