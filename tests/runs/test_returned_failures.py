"""A tool or a hook that returns a ToolResult or an exception: the agents read it as `ToolCalls.run` does."""

from typing import Any, cast

import dspy
import pytest
from agents import AGENTS, serving, submits, turn
from support import start

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolContext, ToolDecl, ToolDecls, ToolResult
from sigadapt.testing import Answer, Call, LoopbackProvider

mcp_types = pytest.importorskip("mcp.types")

LOOK = Call("look", {"title": "Emma"})
CALLS = ToolCalls([{"id": "c1", "name": "look", "args": {"title": "Emma"}}])


class _Methods:
    """A hook of the functions that it is given."""

    def __init__(self, **methods: Any) -> None:
        self.__dict__.update(methods)


Hook: Any = _Methods  # whatever methods it is given


def refusing(call: ToolCall, *_: Any) -> ToolResult:
    return ToolResult.failed(call, "Not for you.")


def good(title: str) -> str:
    """Look a book up."""
    return "7"


def broken(title: str) -> str:
    """Look a book up."""
    raise LookupError("password=hunter2")


def failed(title: str, context: ToolContext) -> ToolResult:
    """Look a book up."""
    return ToolResult.failed(context.call, "Not for you.")


async def failed_later(title: str, context: ToolContext) -> ToolResult:
    """Look a book up."""
    return ToolResult.failed(context.call, "Not for you.")


def declared(function: Any, **hooks: Any) -> ToolDecls:
    decls = ToolDecls([ToolDecl.of(function, name="look")])
    return decls.with_hooks(Hook(**hooks)) if hooks else decls


FAILED: dict[str, ToolDecls] = {
    "the tool": declared(failed),
    "an async tool": declared(failed_later),
    "before_tool": declared(good, before_tool=refusing),
    "after_tool": declared(good, after_tool=refusing),
    "on_tool_error": declared(broken, on_tool_error=refusing),
}


def read_by_model(net: LoopbackProvider) -> Any:
    [row] = [row for row in net.received[-1].body["messages"] if row["role"] == "tool"]
    return row["content"]


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("tools", FAILED.values(), ids=FAILED)
def test_a_failed_result_is_failed_in_the_agent(tools: ToolDecls, agent: Any, way: str) -> None:
    """agent-runs: A tool returns its result as a failed one."""
    [expected] = CALLS.run(tools)
    assert (expected.value, expected.is_error) == ("Not for you.", True)
    with serving([turn(LOOK), submits()]) as net, sigadapt.Run() as run:
        out = start(agent("question -> answer", tools=[*tools]), way, question="q")
    assert read_by_model(net) == "ERROR: Not for you."
    if agent is sigadapt.ReAct:
        for history in (out.history, run.history):
            [result, *_] = sigadapt.rounds(history)[0].results
            assert (result.value, result.is_error) == ("Not for you.", True)
    [result, *_] = sigadapt.rounds(out)[0].results
    assert (result.value, result.is_error) == ("Not for you.", True)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_good_result_is_its_value(agent: Any) -> None:
    """agent-runs: A tool returns its result as a failed one."""

    def look(title: str, context: ToolContext) -> ToolResult:
        """Look a book up."""
        return ToolResult(call_id=context.call.id, name="look", value={"copies": 7})

    with serving([turn(LOOK), submits()]) as net:
        out = agent("question -> answer", tools=[*ToolDecls([look])])(question="q")
    [result, *_] = sigadapt.rounds(out)[0].results
    assert (result.value, result.is_error) == ({"copies": 7}, False)
    assert read_by_model(net) == '{"copies":7}'


PIXEL = "iVBORw0KGgo="


def server_failure(text: str) -> Any:
    content = [mcp_types.TextContent(type="text", text=text)]
    return mcp_types.CallToolResult(content=content, isError=True)


RETURNED: dict[str, Any] = {
    "an exception": ValueError("no such book"),
    "an exception of a key": KeyError("Emma"),
    "an exception that says nothing": RuntimeError(),
    "an exception of two lines": ValueError("no such book:\nEmma"),
    "a failed result": ToolResult(call_id="", name="", value="no such book", is_error=True),
    "an error that a server reports": server_failure("Error executing tool look: no such book"),
    "a server's error with a type": server_failure("LookupError: no such book"),
    "a server's error of two lines": server_failure("no such book\nValueError: Emma"),
}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("name", RETURNED)
def test_a_returned_failure_is_one_message_everywhere(name: str, agent: Any) -> None:
    """agent-runs: A returned failure is one message everywhere."""

    def look(title: str) -> Any:
        """Look a book up."""
        return RETURNED[name]

    [expected] = CALLS.run([look])
    with serving([turn(LOOK), submits()]) as net:
        events = [*sigadapt.stream_sync(agent("question -> answer", tools=[ToolDecl.of(look)]), question="q")]
    last: Any = events[-1]
    [event] = [event.result for event in events if isinstance(event, sigadapt.events.ResultReady)]
    for result in (event, sigadapt.rounds(last.prediction)[0].results[0]):
        assert (result.value, result.is_error) == (expected.value, True)
    assert event.error_type == expected.error_type
    assert read_by_model(net) == f"ERROR: {expected.value}"


@pytest.mark.parametrize("agent", AGENTS)
def test_an_image_of_a_failure_is_named_where_only_text_is_kept(agent: Any) -> None:
    """agent-runs: A returned failure is one message everywhere."""
    image = mcp_types.ImageContent.model_validate({"type": "image", "data": PIXEL, "mimeType": "image/png"})
    failure = server_failure("no room")
    failure.content.append(image)

    def look(title: str) -> Any:
        """Look a book up."""
        return failure

    [expected] = CALLS.run([look])
    assert expected.is_error
    assert expected.is_content
    with serving([turn(LOOK), submits()]) as net:
        agent("question -> answer", tools=[ToolDecl.of(look)])(question="q")
    [row] = [row for row in net.received[-1].body["messages"] if row["role"] == "tool"]
    assert "no room" in str(row["content"])
    assert "Image(" not in str(row["content"])
    if agent is not sigadapt.ReAct:
        assert row["content"] == "ERROR: no room\n[image 1]"


@pytest.mark.parametrize("value", RETURNED.values(), ids=RETURNED)
def test_dspy_react_observes_the_same_message(value: Any) -> None:
    """agent-runs: A returned failure is one message everywhere."""

    def look(title: str) -> Any:
        """Look a book up."""
        return value

    [expected] = CALLS.run([look])
    form = "[[ ## next_thought ## ]]\nx\n\n[[ ## next_tool_name ## ]]\n{}\n\n[[ ## next_tool_args ## ]]\n{}\n"
    steps = [form.format("look", '{"title": "Emma"}'), form.format("finish", "{}")]
    answers = [Answer(text=text) for text in (*steps, "[[ ## reasoning ## ]]\nx\n\n[[ ## answer ## ]]\ny\n")]
    react = cast("Any", dspy.ReAct)
    with serving(answers):
        out = react("question -> answer", tools=[ToolDecl.of(look).to_dspy()])(question="q")
    assert out.trajectory["observation_0"] == f"Execution error in look: \n{expected.value}"


@pytest.mark.parametrize(
    "error", [ValueError("no such book"), KeyError("Emma"), RuntimeError()], ids=["text", "key", "nothing"]
)
def test_a_returned_exception_fails_everywhere(error: Exception) -> None:
    """agent-runs: A tool returns its result as a failed one."""

    def look(title: str) -> Any:
        """Look a book up."""
        return error

    def pay(eur: int) -> str:
        """Pay."""
        return "Paid."

    [expected] = CALLS.run([look])
    assert expected.is_error
    tools = [look, ToolDecl.of(pay, requires_confirmation=True)]
    script = [turn(LOOK), submits(), turn(LOOK, Call("pay", {"eur": 1}))]
    with serving(script, confirm="raise"):
        agent: Any = sigadapt.ReAct("question -> answer", tools)
        out = agent(question="q")
        with pytest.raises(sigadapt.InputNeeded) as caught:
            agent(question="q")
    resumed = caught.value.resume(tools, {caught.value.requests[0].id: True})
    histories: list[Any] = [out.history, resumed]
    for history in histories:
        result = sigadapt.rounds(history)[0].results[0]
        assert (result.value, result.is_error) == (expected.value, True)
