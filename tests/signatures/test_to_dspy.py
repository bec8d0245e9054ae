"""Declarations and MCP tools in DSPy's agents."""

import json
from typing import Annotated, Any, cast

import dspy
import pydantic
import pytest
from signatures.tool_functions.served_tools import serving

from sigadapt import ToolDecl, ToolDecls, Toolset
from sigadapt.errors import InvalidToolDecl
from sigadapt.testing import Answer, Call

TASK: Any = cast("Any", dspy.Signature)("question -> answer")
SUBMIT = Answer(calls=[Call("submit", {"answer": "4711"})])


class Place(pydantic.BaseModel):
    city: str


def visit(places: list[Place], days: Annotated[int, pydantic.Field(ge=1)] = 1) -> str:
    """Visit places.

    Args:
        days: For how long.
    """
    return f"{[place.city for place in places]} {days}"


async def ask(tools: Any, *calls: Call) -> tuple[Any, Any]:
    script = (*(Answer(calls=[call]) for call in calls), SUBMIT)
    with serving(*script, tool_calling="native") as provider:
        out = await cast("Any", dspy.ReActV2(TASK, tools=tools, max_iters=5)).acall(question="?")
        return out, [received.body for received in provider.received]


def parameters_in(body: Any) -> Any:
    return body["tools"][0]["function"]["parameters"]


def test_what_dspy_made_of_another_schema_says_what_is_required():
    """tool-declarations: MCP tools go into DSPy's agents with their own schema."""

    async def run(*args: Any, **kwargs: Any) -> None: ...

    args = {"a": {"type": "string"}, "b": {"type": "string"}}
    described = {"a": "first (Required)", "b": "second"}
    assert ToolDecl.of(dspy.Tool(run, "f", "F.", args, {}, described)).parameters["required"] == ["a"]
    assert ToolDecl.of(dspy.Tool(run, "f", "F.", args, {})).parameters["required"] == ["a", "b"]


async def test_a_declaration_becomes_a_tool_that_is_declared_as_it_was():
    """tool-declarations: A declaration becomes a DSPy tool with its name, schema and function."""
    decls = ToolDecls([ToolDecl.of(visit, name="go.there", long_running=True), {"name": "x"}])
    [tool] = ToolDecls(decls["go.there"]).to_dspy()
    assert (tool.name, tool.func) == ("go.there", visit)
    assert ToolDecl.of(tool) == decls["go.there"]
    assert ToolDecl.of(tool).long_running is True
    assert tool(places=[{"city": "Paris"}], days=2) == "['Paris'] 2"
    out, bodies = await ask(
        [tool], Call("go.there", {"places": [{"city": "Rome"}], "days": 0}), SUBMIT.calls[0]
    )
    assert out.answer == "4711"
    assert parameters_in(bodies[0]) == decls["go.there"].parameters
    assert "less than the minimum of 1" in json.dumps(bodies[1]["messages"])
    with pytest.raises(InvalidToolDecl, match="no function to run"):
        decls.to_dspy()


def agents_lists(decl: ToolDecl) -> dict[str, Any]:
    """What a user may write after `tools=`."""
    return {
        "a ToolDecls": ToolDecls([decl]),
        "a Toolset": Toolset("places", [decl]),
        "a list of declarations": [decl],
        "a ToolDecls, spread": [*ToolDecls([decl])],
        "a Toolset, spread": [*Toolset("places", [decl])],
    }


@pytest.mark.parametrize("given", agents_lists(ToolDecl("x")))
@pytest.mark.parametrize("agent", cast("list[Any]", [dspy.ReActV2, dspy.ReAct]))
async def test_an_agent_takes_declarations_as_they_are(given: str, agent: Any):
    """tool-declarations: Toolsets and declarations go into agents as they are."""
    decl = ToolDecl.of(visit, name="go.there", description="Go.")
    tool = agent(TASK, tools=agents_lists(decl)[given]).tools["go.there"]
    assert ToolDecl.of(tool) == decl
    assert (tool.name, tool.desc) == ("go.there", "Go.")
    assert tool.args["days"] == {
        "description": "For how long.", "type": "integer", "minimum": 1, "default": 1,
    }  # fmt: skip
    assert tool(places=[{"city": "Paris"}], days=2) == "['Paris'] 2"
    with pytest.raises(ValueError, match="/days: 0 is less than the minimum of 1"):
        tool(places=[], days=0)
    if agent is dspy.ReActV2:
        call = Call("go.there", {"places": [{"city": "Rome"}]})
        out, bodies = await ask(agents_lists(decl)[given], call)
        assert (
            out.history.messages[0]["tool_calls"].tool_call_results.tool_call_results[0].value == "['Rome'] 1"
        )
        assert parameters_in(bodies[0]) == decl.parameters


@pytest.mark.parametrize("many", [ToolDecls([visit]), Toolset("places", [visit])])
def test_a_collection_in_a_list_is_refused_with_the_line_to_write(many: Any):
    """tool-declarations: What cannot go into an agent is refused with the line to write."""
    with pytest.raises(InvalidToolDecl, match=r"tools=\[\*decls\]"):
        dspy.ReActV2(TASK, tools=[many, visit])


BOTH: Any = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}, "c": {}}}


def subtract(a: int, b: int = 10, /, *, c: int = 0) -> str:
    """Subtract."""
    return f"{a - b - c}"


def agree(*_: Any) -> bool:
    return True


@pytest.mark.parametrize("confirmed", [False, True])
@pytest.mark.parametrize(
    ("args", "result"), [({"a": 3, "b": 1}, "2"), ({"a": 3, "c": 1}, "-8"), ({"a": 3}, "-7")]
)
def test_a_function_that_takes_by_position_is_run(args: Any, result: str, confirmed: bool):
    """tool-declarations: A function that takes arguments by position alone is run."""
    decls = ToolDecls([ToolDecl.of(subtract, parameters=BOTH, requires_confirmation=confirmed)])
    decls = decls.confirmed_by(agree)
    assert decls.to_dspy()[0](**args) == result
    assert dspy.Tool(cast("Any", decls["subtract"]))(**args) == result
    with serving(Answer(calls=[Call("subtract", args)]), SUBMIT) as provider:
        dspy.ReActV2(TASK, tools=cast("Any", [*decls]))(question="?")
        assert provider.received[1].body["messages"][-1]["content"] == result


def test_what_a_function_that_takes_by_position_lacks_is_pythons_error():
    """tool-declarations: A function that takes arguments by position alone is run."""
    tool = ToolDecl.of(subtract, parameters=BOTH).to_dspy()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        tool(c=1)
    assert ToolDecl.of(divmod, parameters={"properties": {"x": {}, "y": {}}}).to_dspy()(x=7, y=2) == (3, 1)
