"""An agent uses the tools of an MCP server.

The model gets the server's own schemas, and the calls run on the server. If a call fails there, or doesn't
fit its schema, the model reads a failed result and can correct itself.

    python examples/mcp_agent.py [openai/gpt-4o-mini]
"""

import asyncio
import sys
from pathlib import Path

import dspy
import mcp
from played import language_model

import sigadapt
from sigadapt import Toolset
from sigadapt.testing import Answer, Call

SERVER = mcp.StdioServerParameters(
    command=sys.executable, args=[str(Path(__file__).with_name("notes_server.py"))]
)

SCRIPT = [
    Answer(calls=[Call("list_notes"), Call("read_note", {"note": "call"})]),  # read_note takes a title
    Answer(calls=[Call("read_note", {"title": "calls"})]),  # there is no such note
    Answer(text="It is named `call`.", calls=[Call("read_note", {"title": "call"})]),
    Answer(calls=[Call("submit", {"answer": "Call Ada at 15:00."})]),
]


async def main() -> None:
    """Connect to the server, let the agent answer a question, and print what it did."""
    async with mcp.stdio_client(SERVER) as streams, mcp.ClientSession(*streams) as session:
        await session.initialize()
        agent = sigadapt.ReAct("question -> answer", tools=Toolset("notes", session))
        with language_model(SCRIPT) as lm, dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            out = await agent.acall(question="Whom do I have to call, and when?")
        for event in out.history.messages:
            calls = event["tool_calls"]
            for call, result in zip(calls.tool_calls, calls.tool_call_results.tool_call_results, strict=True):
                print(call, "->", "failed" if result.is_error else result.value)
        print(out.answer)


if __name__ == "__main__":
    asyncio.run(main())
