"""What a server sends of its tools, its progress, its tasks and its questions: taken, left out or refused."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import dspy
import mcp_types
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context, MCPServer
from signatures.tool_functions.served_tools import agent_of, serving, submits, turn
from support import lm_of
from tables import table

import sigadapt
from sigadapt import InputNeeded, ToolCalls, ToolDecl, ToolDecls, Toolset
from sigadapt.errors import InvalidOption, InvalidToolDecl
from sigadapt.events import Progress
from sigadapt.testing import Answer, Call, LoopbackProvider

OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
UNUSABLE: dict[str, Any] = {
    "a text for required": {"type": "object", "properties": {"a": {"type": "string"}}, "required": "a"},
    "an unknown type": {"type": "object", "properties": {"a": {"type": "strnig"}}},
    "a broken reference": {"type": "object", "properties": {"a": {"$ref": "#/$defs/None"}}},
}


def _tool(fields: dict[str, Any]) -> mcp_types.Tool:
    return mcp_types.Tool.model_validate({"description": "d", **fields})


def server_of(*tools: dict[str, Any]) -> Any:
    """A server in memory with these tools, which answers `ok` and their names."""

    async def list_tools(ctx: Any, params: Any) -> Any:
        return mcp_types.ListToolsResult(tools=[_tool(each) for each in tools])

    async def call_tool(ctx: Any, params: Any) -> Any:
        text = mcp_types.TextContent(type="text", text=f"ok {params.name}")
        return mcp_types.CallToolResult(content=[text])

    return cast("Any", Server)("s", on_list_tools=list_tools, on_call_tool=call_tool)


async def served(server: Any, call: Call, **options: Any) -> tuple[Any, Any, list[Any]]:
    """A run of an agent with a server's tools: the provider, the model, and the events of the stream."""
    client = options.pop("client", {})
    script = [Answer(calls=[call]), Answer(calls=[Call("submit", {"answer": "Done."})])]
    with LoopbackProvider(script) as provider:
        lm = lm_of(provider)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            async with Client(server, **client) as session:
                agent = sigadapt.ReAct("question -> answer", tools=[Toolset("s", session, **options)])
                events = [event async for event in sigadapt.stream(agent, question="q")]
    return provider, lm, events


def offered(provider: Any) -> list[str]:
    return [tool["function"]["name"] for tool in provider.received[0].body["tools"]]


def result_in(provider: Any) -> str:
    return provider.received[-1].body["messages"][-1]["content"]


def test_tools_that_cannot_be_declared_may_be_left_out() -> None:
    """toolsets: A server's tools that cannot be declared may be left out."""
    bad = [{"name": f"bad_{n}", "inputSchema": schema} for n, schema in enumerate(UNUSABLE.values())]
    server = server_of(*bad, {"name": "", "inputSchema": OBJECT}, {"name": "good", "inputSchema": OBJECT})
    with pytest.warns(UserWarning, match="bad_0") as told:
        provider, lm, _ = asyncio.run(served(server, Call("good", {}), on_invalid="drop"))
    assert (offered(provider), result_in(provider)) == (["good", "submit"], "ok good")
    assert all(f"bad_{n}" in str(told[0].message) for n in range(len(bad)))
    reasons = [change.why for change in lm.history[0]["changes"] if change.what == "dropped"]
    assert [any(f"bad_{n}" in reason for reason in reasons) for n in range(len(bad))] == [True] * len(bad)


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_server_is_refused_with_them(name: str) -> None:
    """toolsets: A server's tools that cannot be declared may be left out."""
    server = server_of(
        {"name": "look", "inputSchema": UNUSABLE[name]}, {"name": "good", "inputSchema": OBJECT}
    )
    with pytest.raises(BaseException) as caught:  # noqa: PT011  (a group of errors, of the SDK's task group)
        asyncio.run(served(server, Call("good", {})))
    error: Any = caught.value
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]
    assert (type(error), "look" in str(error)) == (InvalidToolDecl, True)


def test_another_word_for_it_is_refused() -> None:
    with pytest.raises(InvalidOption, match="on_invalid"):
        Toolset("s", [print], on_invalid=cast("Any", "ignore"))


VISIBLE = {("app",): False, ("model", "app"): True, ("model",): True, (): False, None: True}


@pytest.mark.parametrize("visibility", VISIBLE)
def test_a_tool_for_a_page_alone_is_not_declared(visibility: Any) -> None:
    """toolsets: A tool that is for a page alone is not declared."""
    meta = {} if visibility is None else {"_meta": {"ui": {"visibility": [*visibility]}}}
    tool: dict[str, Any] = {"name": "chart", "inputSchema": OBJECT, **meta}
    decls = ToolDecls([_tool(tool)])
    provider, _, _ = asyncio.run(
        served(server_of(tool, {"name": "good", "inputSchema": OBJECT}), Call("good", {}))
    )
    assert ["chart" in decls, "chart" in offered(provider)] == [VISIBLE[visibility]] * 2


def slow(seconds: float) -> Any:
    server = MCPServer("b")

    @server.tool()
    async def create(ctx: Context[Any, Any]) -> str:  # pyright: ignore[reportUnusedFunction]
        """Create."""
        for n in range(3):
            await ctx.report_progress(n + 1, 4, f"step {n + 1}")
        await asyncio.sleep(seconds)
        return "created"

    return server


def test_a_server_says_how_far_it_has_come() -> None:
    """toolsets: A server says how far a call has come."""
    _, _, events = asyncio.run(served(slow(0), Call("create", {})))
    steps = [(event.message, event.fraction) for event in events if isinstance(event, Progress)]
    assert steps == [("step 1", 0.25), ("step 2", 0.5), ("step 3", 0.75)]


def test_a_call_without_an_answer_in_time_may_have_run() -> None:
    """toolsets: A call that a server does not answer in time may have run."""
    provider, _, _ = asyncio.run(served(slow(3), Call("create", {}), client={"read_timeout_seconds": 0.3}))
    assert result_in(provider).startswith("ERROR: TimeoutError")
    assert "may have run" in result_in(provider)


async def test_a_live_toolset_in_a_constructor() -> None:
    """toolsets: A live toolset in a constructor gives advice that works."""
    react = cast("Any", dspy.ReActV2)
    async with Client(server_of({"name": "look", "inputSchema": OBJECT})) as session:
        toolset = Toolset("demo", session)
        made: list[Any] = [
            lambda: react("question -> answer", tools=toolset),
            lambda: react("question -> answer", tools=[*toolset]),
            lambda: ToolDecls([toolset]),
        ]
        for each in made:
            with pytest.raises(InvalidToolDecl, match=r"`await toolset\.aresolve\(\)`") as caught:
                each()
            assert caught.value.code == "async_toolset"
        # What the advice says:
        agent = react("question -> answer", tools=await toolset.aresolve())
        with serving(turn(Call("look", {})), submits("Done.")) as provider:
            assert (await agent.acall(question="q")).answer == "Done."
        assert result_in(provider) == "ok look"


async def test_a_person_is_awaited_before_a_servers_tool_runs() -> None:
    """confirmation: An agent's tool asks first."""

    async def agree(name: str, args: dict[str, Any], hint: str) -> bool:
        await asyncio.sleep(0)
        return name == "look"

    tools = [{"name": name, "inputSchema": OBJECT} for name in ("look", "pay")]
    async with Client(server_of(*tools)) as session:
        decls = [*await Toolset("s", session).aresolve()]
        asking = ToolDecls([ToolDecl.of(each, requires_confirmation=True) for each in decls])
        with serving(turn(Call("look", {}), Call("pay", {})), submits()):
            out = await agent_of("ReActV2", asking.confirmed_by(agree)).acall(question="q")
    looked, paid = sigadapt.rounds(out)[0].results
    assert (looked.value, looked.is_error) == ("ok look", False)
    assert ("rejected this call" in paid.value, paid.is_error) == (True, True)


class Session:
    """A session of the SDK's form, whose one tool answers what it is told to."""

    def __init__(self, answer: Any, task: Any = None, parameter: str = "table") -> None:
        self.answer, self.task, self.seen = answer, task, list[Any]()
        schema: Any = {"type": "object", "properties": {parameter: {"type": "string"}}}
        self.tool = mcp_types.Tool(name="delete", description="Delete.", input_schema=schema)

    async def list_tools(self, *, params: Any = None) -> Any:
        return SimpleNamespace(tools=[self.tool], next_cursor=None)

    async def call_tool(
        self, name: str, arguments: Any, *, allow_input_required: bool = False, **answers: Any
    ) -> Any:
        self.seen.append(arguments)
        return self.answer

    async def send_request(self, request: Any, kind: Any) -> Any:
        return self.task


def run_of(session: Session, args: dict[str, Any] | None = None) -> Any:
    async def turn() -> Any:
        decls = await Toolset("db", cast("Any", session)).aresolve()
        calls = ToolCalls([{"id": "c1", "name": "delete", "args": {"table": "t"} if args is None else args}])
        try:
            return [*(await calls.arun(decls))]
        except InputNeeded as error:
            if session.task is None:
                return error
            try:
                return [*(await error.aresults_of(decls))]
            except InputNeeded as again:
                return again

    return asyncio.run(turn())


DONE = mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text="done")])


@pytest.mark.parametrize("name", ["sigadapt_context", "context", "self", "name", "__proto__"])
def test_a_servers_parameter_may_have_any_name(name: str) -> None:
    """toolsets: An MCP call and its result travel there and back."""
    session = Session(DONE, parameter=name)
    [result] = run_of(session, {name: "v"})
    assert (result.value, session.seen) == ("done", [{name: "v"}])


ADDRESSES: Any = table(__file__, "ADDRESSES")


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_person_is_sent_to_web_addresses_alone(address: str) -> None:
    """tool-context: A server sends a person to web addresses alone."""
    asked = mcp_types.ElicitRequest(params=mcp_types.ElicitRequestURLParams(message="Log in.", url=address))
    question = mcp_types.InputRequiredResult(
        result_type="input_required", input_requests={"q": asked}, request_state="s"
    )
    got = run_of(Session(question))
    if ADDRESSES[address]:
        assert got.requests[0].payload == {"url": address}
    else:
        assert (got[0].is_error, address in str(got[0].value)) == (True, False)


TASKS: dict[str, tuple[dict[str, Any], str]] = table(__file__, "TASKS")


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_done_under_its_own_id(name: str) -> None:
    """tool-context: A task is done if it is completed under its own id."""
    said, expected = TASKS[name]
    task = mcp_types.Task(task_id="t1", status="working", created_at="x", last_updated_at="x", ttl=None)
    got = run_of(Session(mcp_types.CreateTaskResult(task=task), {"taskId": "t1", **said}))
    if expected == "waits":
        assert isinstance(got, InputNeeded)
        return
    assert got[0].is_error == (expected != "built")
    assert ("built" in str(got[0].value)) == (expected == "built")
    assert expected == "fails" or expected in str(got[0].value)
