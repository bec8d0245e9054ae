"""A real MCP server of the installed SDK, in a process of its own, behind an agent and a loop by hand."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import dspy
import mcp
import pytest
from support import lm_of

import sigadapt
from sigadapt import ToolDecls, Toolset
from sigadapt.errors import InvalidToolDecl
from sigadapt.testing import Answer, Call, LoopbackProvider

SERVER = r"""
try:
    from mcp.server.mcpserver import Image, MCPServer
except ImportError:  # version 1 of the SDK
    from mcp.server.fastmcp import FastMCP as MCPServer, Image

server = MCPServer("demo")

@server.tool()
def add(a: int, b: int = 2) -> int:
    "Add."
    return a + b

@server.tool()
def rows(n: int) -> list[dict[str, int]]:
    "Rows."
    return [{"n": each} for each in range(n)]

@server.tool()
def picture() -> Image:
    "A picture."
    return Image(data=b"\x89PNG", format="png")

@server.tool()
def fail() -> str:
    "Fail."
    raise ValueError("the disk is full")

server.run()
"""


@asynccontextmanager
async def live(tmp_path: Path) -> AsyncGenerator[mcp.ClientSession]:
    path = tmp_path / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    parameters = mcp.StdioServerParameters(command=sys.executable, args=[str(path)])
    with (tmp_path / "log").open("w") as log:
        async with (
            mcp.stdio_client(parameters, errlog=log) as streams,
            mcp.ClientSession(*streams) as session,
        ):
            await session.initialize()
            yield session


async def test_a_live_toolset_in_a_constructor(tmp_path: Path) -> None:
    """toolsets: A live toolset in a constructor gives advice that works."""
    async with live(tmp_path) as session:
        toolset = Toolset("demo", session)
        agent_of = cast("Any", dspy.ReActV2)
        made: list[Any] = [
            lambda: agent_of("question -> answer", tools=toolset),
            lambda: agent_of("question -> answer", tools=[*toolset]),
            lambda: ToolDecls([toolset]),
        ]
        for each in made:
            with pytest.raises(InvalidToolDecl, match=r"constructor `await toolset\.aresolve\(\)`") as caught:
                each()
            assert caught.value.code == "async_toolset"
        # What the advice says:
        agent = agent_of("question -> answer", tools=await toolset.aresolve())
        answers = [Answer(calls=[Call("add", {"a": 1})]), Answer(calls=[Call("submit", {"answer": "3"})])]
        with (
            LoopbackProvider(answers) as provider,
            dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter()),
        ):
            out = await agent.acall(question="1+2?")
        assert out.answer == "3"
        assert provider.received[1].body["messages"][-1]["content"] == "3"
