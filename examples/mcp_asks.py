"""An MCP server asks in the middle of a call, and a person answers later.

The server asks before it deletes a note. The run waits in a file, the connection is closed, and a new one
brings the answer to the server, with the state that the server sent.

    python examples/mcp_asks.py [openai/gpt-4o-mini]
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import dspy
import mcp
import mcp_types
import pydantic
from mcp.server.mcpserver import Elicit, MCPServer, Resolve
from played import language_model

import sigadapt
from sigadapt import InputNeeded, ToolDecls, Toolset
from sigadapt.testing import Answer, Call

SERVER = MCPServer("notes", log_level="WARNING")  # yours is elsewhere: give its address to the client
NOTES = {"groceries": "milk", "call": "Ada, 15:00"}
RUNS = sigadapt.WaitingRuns("mcp_asks.db")


class Sure(pydantic.BaseModel):
    """What the server asks for."""

    confirm: bool


def ask_sure(title: str) -> Elicit[Sure]:
    """Ask whether to delete a note."""
    return Elicit(f"Delete the note {title!r}?", Sure)


@SERVER.tool()
def delete(title: str, sure: Annotated[Sure, Resolve(ask_sure)]) -> str:
    """Delete a note."""
    return f"Deleted {NOTES.pop(title)!r}." if sure.confirm else "It stays."


async def decline(context: Any, params: Any) -> Any:
    """Answer servers of older protocols. A client without this says that it cannot be asked."""
    return mcp_types.ElicitResult(action="decline")


@asynccontextmanager
async def tools() -> AsyncIterator[ToolDecls]:
    """The tools of the server, while a connection is open."""
    async with mcp.Client(SERVER, elicitation_callback=decline) as client:
        yield await Toolset("notes", client).aresolve()


SCRIPT = [
    Answer(calls=[Call("delete", {"title": "groceries"})]),
    Answer(calls=[Call("submit", {"answer": "The note is gone."})]),
]


async def ask() -> str:
    """Run the agent until the server asks, and return the id of the run that waits."""
    async with tools() as decls:
        try:
            await sigadapt.ReAct("question -> answer", tools=decls).acall(question="Delete the groceries.")
        except InputNeeded as error:
            return RUNS.put(error)
    raise RuntimeError("the server did not ask")


async def answer(run_id: str) -> str:
    """Show what the server asks, answer it, and let the agent go on."""
    run = RUNS.take(run_id)
    if run is None:
        return "It was answered before."
    [request] = run.requests
    properties = (request.schema or {})["properties"]
    print(request.hint, {name: schema["type"] for name, schema in properties.items()})
    async with tools() as decls:
        history = await run.aresume(decls, {request.id: {"confirm": True}})
        out = await sigadapt.ReAct("question -> answer", tools=decls).acall(history=history)
    return out.answer


if __name__ == "__main__":
    with language_model(SCRIPT) as lm, dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
        waiting = asyncio.run(ask())
        print(asyncio.run(answer(waiting)), sorted(NOTES))
