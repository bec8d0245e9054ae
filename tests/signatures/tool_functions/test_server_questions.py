"""MCP servers that ask in the middle of a call, and servers that run calls as tasks."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import mcp
import pydantic
import pytest
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from signatures.tool_functions.served_tools import Hook, one, saved
from tables import table

import sigadapt
from sigadapt import Declined, InputNeeded, ToolCalls, ToolDecls, Toolset
from sigadapt.errors import InvalidOption

types: Any = pytest.importorskip("mcp_types")
extension: Any = pytest.importorskip("mcp.client.extension")
Client: Any = mcp.Client


async def decline(context: Any, params: Any) -> Any:
    """Say that this client can be asked: the SDK declares that for a client with a callback."""
    return types.ElicitResult(action="decline")


def run_with(server: Any, steps: Any) -> Any:
    async def main() -> Any:
        async with Client(server, elicitation_callback=decline) as client:
            return await steps(await Toolset("db", client).aresolve())

    return asyncio.run(main())


DELETE = ToolCalls([{"id": "c1", "name": "delete", "args": {"table": "users"}}])


class Sure(pydantic.BaseModel):
    confirm: bool


class Reason(pydantic.BaseModel):
    reason: str = pydantic.Field(min_length=3)


def ask_sure(table: str) -> Elicit[Sure]:
    return Elicit(f"Delete {table}?", Sure)


def ask_reason(table: str) -> Elicit[Reason]:
    return Elicit("Why?", Reason)


@pytest.mark.parametrize("declines", [False, True], ids=["accepted", "declined"])
def test_a_real_server_asks_and_its_client_is_another_one_by_then(declines: bool) -> None:
    """tool-context: An MCP server that asks is asked on."""
    server, done = MCPServer("db"), list[Any]()

    @server.tool()
    async def delete(  # pyright: ignore[reportUnusedFunction]
        table: str, sure: Annotated[Sure, Resolve(ask_sure)], why: Annotated[Reason, Resolve(ask_reason)]
    ) -> str:
        """Delete a table."""
        done.append((table, sure.confirm, why.reason))
        return "deleted"

    async def begin(tools: ToolDecls) -> InputNeeded:
        with pytest.raises(InputNeeded) as waiting:
            await DELETE.arun(tools)
        return saved(waiting.value)

    error = run_with(server, begin)
    by_hint = {request.hint: request for request in error.requests}
    assert sorted(by_hint) == ["Delete users?", "Why?"]
    assert by_hint["Why?"].schema["properties"]["reason"]["minLength"] == 3
    sure = by_hint["Delete users?"].id

    async def go_on(tools: ToolDecls) -> Any:
        for unfit in ({"confirm": "perhaps"}, True, None):
            with pytest.raises(InvalidOption):
                await error.aresults_of(tools, {sure: unfit}, partial=True)
        with pytest.raises(InputNeeded) as waiting:
            await error.aresults_of(tools, {sure: {"confirm": True}}, partial=True)
        rest = saved(waiting.value)
        answer = Declined("No reason.") if declines else {"reason": "It is old."}
        return await rest.aresults_of(tools, {one(rest).id: answer})

    [result] = run_with(server, go_on)
    assert (result.is_error, "deleted" in str(result.value)) == (declines, not declines)
    assert done == ([] if declines else [("users", True, "It is old.")])


def asking_server(request: Any, log: list[Any]) -> Any:
    server = MCPServer("db")

    @server.tool()
    async def delete(table: str, ctx: Context[Any, Any]) -> Any:  # pyright: ignore[reportUnusedFunction]
        """Delete."""
        if not ctx.input_responses:
            return types.InputRequiredResult(
                result_type="input_required", input_requests={"q": request}, request_state="s1"
            )
        log.append((ctx.input_responses["q"], ctx.request_state))
        return "deleted"

    return server


def test_what_a_person_cannot_answer_is_refused() -> None:
    """tool-context: An MCP server that asks is asked on."""
    sampling = types.ListRootsRequest(method="roots/list")
    log: list[Any] = []
    [result] = run_with(asking_server(sampling, log), DELETE.arun)
    assert result.is_error
    assert "roots/list, which a person cannot answer" in result.value
    assert log == []


@pytest.mark.parametrize(("answer", "action"), [(True, "accept"), (False, "cancel")])
def test_a_server_that_sends_the_person_to_an_address(answer: bool, action: str) -> None:
    """tool-context: An MCP server that asks is asked on."""
    params = types.ElicitRequestURLParams(message="Log in.", url="https://example.com/login")
    log: list[Any] = []

    async def steps(tools: ToolDecls) -> Any:
        with pytest.raises(InputNeeded) as waiting:
            await DELETE.arun(tools)
        request = one(waiting.value)
        assert (request.hint, request.payload) == ("Log in.", {"url": "https://example.com/login"})
        return await waiting.value.aresults_of(tools, {request.id: answer})

    [result] = run_with(asking_server(types.ElicitRequest(params=params), log), steps)
    assert not result.is_error
    assert [(each.action, each.content, state) for each, state in log] == [(action, None, "s1")]


TASKS: Any = table(__file__, "TASKS")
"""A server that runs its tool as a task, as SEP-2663 has it. The SDK's servers have no tasks."""


class TaskHandle(types.Result):
    result_type: Literal["task"] = pydantic.Field(alias="resultType")
    task_id: str = pydantic.Field(alias="taskId")


class TasksExtension(extension.ClientExtension):
    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Any:
        async def resolve(handle: Any, context: Any) -> Any:
            raise NotImplementedError

        return [extension.ResultClaim(result_type="task", model=TaskHandle, resolve=resolve)]


class Ci:
    """Such a server, in a new process for each connection, with its tasks in a file."""

    def __init__(self, folder: Path, *states: str) -> None:
        self._log = folder / "log"
        (folder / "states").write_text(" ".join(states), encoding="utf-8")
        (folder / "server.py").write_text(TASKS, encoding="utf-8")
        args = [str(folder / name) for name in ("server.py", "states", "log")]
        self.parameters = mcp.StdioServerParameters(command=sys.executable, args=args)

    @property
    def methods(self) -> list[str]:
        lines = self._log.read_text(encoding="utf-8").split()
        return [line for line in lines if line.startswith(("tools/call", "tasks/"))]

    def run(self, steps: Any) -> Any:
        async def main() -> Any:
            async with Client(self.parameters, mode="2026-07-28", extensions=[TasksExtension()]) as client:
                return await steps(await Toolset("ci", client).aresolve())

        return asyncio.run(main())


async def build(tools: ToolDecls) -> InputNeeded:
    with pytest.raises(InputNeeded) as waiting:
        await BUILD.arun(tools)
    return saved(waiting.value)


BUILD = ToolCalls([{"id": "c1", "name": "build", "args": {}}])


def test_a_task_is_asked_for_its_result(tmp_path: Path) -> None:
    """tool-context: An MCP task is asked for its result."""
    ci = Ci(tmp_path, "working", "completed")
    error = ci.run(build)
    assert one(error).pending == {"mcp_task": "t1"}

    async def poll(tools: ToolDecls) -> Any:
        by_hand = await error.aresults_of(tools, {one(error).id: "by a webhook"})
        assert ([result.value for result in by_hand], ci.methods) == (["by a webhook"], ["tools/call"])
        with pytest.raises(InvalidOption) as caught:
            error.results_of(tools)
        assert caught.value.code == "blocked_loop"
        with pytest.raises(InputNeeded) as waiting:
            await error.aresume(tools)
        again = saved(waiting.value)
        assert (again.id, one(again).id) == (error.id, one(error).id)
        return await again.aresults_of(tools)

    [result] = ci.run(poll)
    assert (result.value, result.is_error) == ("built", False)
    assert ci.methods == ["tools/call", "tasks/get", "tasks/get"]


BREAKS = {
    "dies": "raise SystemExit",
    "hangs": "import time; time.sleep(60)",
    "fails": "raise_error(-32603, 'the disk is full')",
    "forgot": "raise_error(-32602, 'no such task')",
}
RAISE_ERROR = """
def raise_error(code, message):
    error = {"code": code, "message": message}
    print(json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}), flush=True)
    raise LookupError
"""


@pytest.mark.parametrize("how", BREAKS)
def test_a_server_that_cannot_be_reached_loses_no_task(tmp_path: Path, how: str) -> None:
    """tool-context: A server that cannot be reached loses no task."""
    ci = Ci(tmp_path, "completed")
    error = ci.run(build)
    server = tmp_path / "server.py"
    whole = server.read_text(encoding="utf-8")
    broken = whole.replace("    state, *others", f"    {BREAKS[how]}\n    state, *others")
    broken = broken.replace("for line in", f"{RAISE_ERROR}\nfor line in")
    broken = broken.replace("        result =", '        request_id = message["id"]\n        result =')
    server.write_text(broken, encoding="utf-8")

    async def poll(tools: ToolDecls) -> Any:
        try:
            return await error.aresults_of(tools, timeout=2)
        except InputNeeded as again:
            return saved(again)

    outcome = ci.run(poll)
    if how == "forgot":
        assert [result.value for result in outcome] == ["MCPError: no such task"]
        return
    assert (outcome.id, one(outcome).pending) == (error.id, {"mcp_task": "t1"})
    assert one(outcome).id == one(error).id
    server.write_text(whole, encoding="utf-8")
    [result] = ci.run(outcome.aresults_of)
    assert (result.value, ci.methods.count("tools/call")) == ("built", 1)


def test_a_task_counts_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    """tool-context: A result from elsewhere counts once."""
    ci = Ci(tmp_path, "working", "working", "completed")
    seen: list[str] = []
    sees = Hook(
        before_tool=lambda call, context: seen.append("before"),
        after_tool=lambda call, result, context: seen.append("after"),
    )

    async def begin(tools: ToolDecls) -> InputNeeded:
        return await build(tools.with_hooks(sees))

    error = ci.run(begin)

    async def poll(tools: ToolDecls) -> int:
        waiting = error
        with sigadapt.Run(sigadapt.Limits(tool_calls=1)) as run:
            for _ in range(2):
                with pytest.raises(InputNeeded) as caught:
                    await waiting.aresume(tools.with_hooks(sees))
                waiting = saved(caught.value)
            await waiting.aresume(tools.with_hooks(sees))
        return run.usage.tool_calls

    assert ci.run(poll) == 1
    assert seen == ["before", "after"]
