"""The reference MCP servers, whole: their schemas reach a provider unchanged, calls and results travel back.

Each server runs as its own process and is spoken to by the MCP SDK; the provider is the loopback one.
"""

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import mcp
import mcp.types
import pytest

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolDecls, ToolResults, Toolset
from sigadapt.testing import Answer, Call, LoopbackProvider

pytestmark = pytest.mark.skipif(
    shutil.which("npx") is None, reason="npx, which runs the reference MCP servers, is not installed"
)

SERVERS: dict[str, list[str]] = {
    "everything": ["@modelcontextprotocol/server-everything"],
    "filesystem": ["@modelcontextprotocol/server-filesystem"],
    "memory": ["@modelcontextprotocol/server-memory"],
}
CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "everything": ("echo", {"message": "Zürich"}, "Zürich"),
    "filesystem": ("list_directory", {"path": "{root}"}, "notes.txt"),
    "memory": ("search_nodes", {"query": "nobody"}, "entities"),
}


class Ask(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


@asynccontextmanager
async def session_with(server: str, root: Path) -> AsyncGenerator[mcp.ClientSession]:
    (root / "notes.txt").write_text("hello", encoding="utf-8")
    arguments = [str(root)] if server == "filesystem" else []
    parameters = mcp.StdioServerParameters(
        command="npx",
        args=["--yes", *SERVERS[server], *arguments],
        env={"MEMORY_FILE_PATH": str(root / "memory.json")},
    )
    async with mcp.stdio_client(parameters) as streams, mcp.ClientSession(*streams) as session:
        await session.initialize()
        yield session


def filled(args: dict[str, Any], root: Path) -> dict[str, Any]:
    return {key: value.replace("{root}", str(root)) for key, value in args.items()}


async def schemas_of(session: mcp.ClientSession) -> dict[str, dict[str, Any]]:
    """What the server wrote, read off the protocol, not through sigadapt."""
    page = await session.send_request(mcp.types.ListToolsRequest(), mcp.types.ListToolsResult)
    return {tool.name: tool.input_schema for tool in page.tools}


@pytest.mark.parametrize("server", list(SERVERS))
async def test_a_server_s_tools_go_out_and_its_results_come_back(server: str, tmp_path: Path) -> None:
    """toolsets: A live MCP session or server gives its tools as the server wrote them.

    toolsets: An MCP call and its result travel there and back.
    """
    name, args, expected = CALLS[server]
    args = filled(args, tmp_path)
    answers = [
        Answer(calls=[Call(name, args)]),
        Answer(text="[[ ## answer ## ]]\ndone\n\n[[ ## completed ## ]]"),
    ]
    async with session_with(server, tmp_path) as session:
        written = await schemas_of(session)
        decls = await Toolset(server, session).aresolve()
        with LoopbackProvider(answers) as provider:
            lm = dspy.LM(**provider.lm_options("openai"))
            with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
                predict: Any = dspy.Predict(Ask)
                out = await predict.acall(question="?", tools=decls)
                call: ToolCall = out.calls[0]
                value = await sent(call, decls)
                results = ToolResults.of(out.calls, [value])
                done = await predict.acall(question="?", tools=decls, results=results)
    first, second = (received.body for received in provider.received)
    assert {tool["function"]["name"]: tool["function"]["parameters"] for tool in first["tools"]} == written
    assert len(written) > 3
    assert (call.name, call.args) == (name, args)
    assert expected in str(value)
    assert done.answer == "done"
    (result,) = [message for message in second["messages"] if message["role"] == "tool"]
    assert result["tool_call_id"] == call.id
    assert expected in result["content"]
    assert [tool["function"]["parameters"] for tool in second["tools"]] == list(written.values())


async def sent(call: ToolCall, decls: ToolDecls) -> dict[str, Any]:
    """What a program does with a call: bind it and run it."""
    bound = call.bind(decls)
    func = decls[call.name].func
    assert isinstance(bound, dict)
    assert func is not None
    return await func(**bound)


async def test_optional_parameters_stay_optional(tmp_path: Path) -> None:
    """toolsets: A live MCP session or server gives its tools as the server wrote them."""
    async with session_with("filesystem", tmp_path) as session:
        decls = await Toolset("fs", session).prefixed("fs_").aresolve()
    read = decls["fs_read_text_file"]
    assert read.parameters["required"] == ["path"]
    assert {"head", "tail"} <= read.parameters["properties"].keys()
    assert decls.flaw_of("fs_read_text_file", {"path": "notes.txt"}) is None


async def test_an_agent_works_with_files(tmp_path: Path) -> None:
    """tool-declarations: Toolsets and declarations go into agents as they are.

    confirmation: An agent's tool asks first.

    It lists, reads, is denied a file outside, and writes what a person agreed to, and that alone.
    """
    note, other = str(tmp_path / "new.txt"), str(tmp_path / "other.txt")
    held = tmp_path.iterdir
    script = [
        Answer(calls=[Call("list_directory", {"path": str(tmp_path)})]),
        Answer(calls=[Call("read_text_file", {"path": str(tmp_path / "notes.txt")})]),
        Answer(calls=[Call("read_text_file", {"path": str(tmp_path.parent / "outside.txt")})]),
        Answer(calls=[Call("write_file", {"path": note, "content": "hello"})]),
        Answer(calls=[Call("write_file", {"path": other, "content": "hello"})]),
        Answer(calls=[Call("submit", {"answer": "done"})]),
    ]
    task: Any = dspy.Signature("question -> answer")  # pyright: ignore[reportArgumentType, reportCallIssue]
    asked: list[str] = []

    async def ask(name: str, args: dict[str, Any], hint: str) -> bool:
        asked.append(f"{hint} {args['path']}")
        return args["path"] == note

    async with session_with("filesystem", tmp_path) as session:
        schemas = await schemas_of(session)
        files = await Toolset("files", session).aresolve()
        write = replace(files["write_file"], requires_confirmation=True)
        rest = [decl for decl in files if decl.name != "write_file"]
        with LoopbackProvider(script) as provider:
            lm = dspy.LM(**provider.lm_options("openai"))
            with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="native")):
                tools: Any = ToolDecls([*rest, write]).confirmed_by(ask)
                program: Any = dspy.ReActV2(task, tools=tools)
                out = await program.acall(question="?")
    results = [event["tool_calls"].tool_call_results.tool_call_results[0] for event in out.history.messages]
    assert [result.is_error for result in results] == [False, False, True, False, True, False]
    assert ["notes.txt" in str(results[0].value), "hello" in str(results[1].value)] == [True, True]
    assert (tmp_path / "new.txt").read_text(encoding="utf-8") == "hello"
    assert {each.name for each in held()} == {"notes.txt", "new.txt"}
    assert asked == [f"Run write_file? {note}", f"Run write_file? {other}"]
    assert "Access denied" in str(results[2].value)
    assert out.answer == "done"
    sent = provider.received[0].body["tools"]
    assert {tool["function"]["name"]: tool["function"]["parameters"] for tool in sent[:-1]} == schemas
