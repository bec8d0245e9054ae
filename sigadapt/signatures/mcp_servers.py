"""List the tools of a live MCP session or server, the source of a Toolset. No tool is run here.

A server object and FastMCP's client list all tools at once. A session gives pages, and takes the next page's
cursor as `params` or as `cursor`, depending on the SDK's version.
"""

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json, is_array
from sigadapt.signatures.tool_decl import ToolDecl, with_fields
from sigadapt.signatures.tool_functions.pending import TASKS
from sigadapt.signatures.tool_functions.server_questions import answers_for, needs_of
from sigadapt.signatures.tool_functions.server_tasks import claims_other_results, task_of, task_result
from sigadapt.signatures.tool_functions.tool_context import ToolContext
from sigadapt.signatures.tool_results.function_calls import HOME_LOOP, on_loop
from sigadapt.signatures.tool_results.tool_output import is_a

_MOST_PAGES = 1_000
_MOST_ROUNDS = 10


def accepts(source: object) -> bool:
    """Return whether the source has the methods of an MCP session: `list_tools` and `call_tool`."""
    if isinstance(source, type):
        return False
    return all(callable(getattr(source, name, None)) for name in ("list_tools", "call_tool"))


async def listed_tools(source: Any, *, instructions: bool = False) -> list[ToolDecl]:
    """Return the declarations of all tools that a session or a server lists, page by page.

    Args:
        source: the session or the server.
        instructions: whether each tool has the server's own instructions.
    """
    tools: list[Any] = []
    pages: set[str] = set()
    page: Any = await source.list_tools()
    while not is_array(page):
        tools += page.tools
        cursor: str | None = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
        if cursor is None:
            break
        if cursor in pages or len(pages) == _MOST_PAGES:
            raise InvalidToolDecl(
                f"its list of tools has no end ({len(pages)} pages)", code="endless_listing"
            )
        pages.add(cursor)
        following: dict[str, Any] = {"cursor": cursor}
        if "params" in inspect.signature(source.list_tools).parameters:
            # Loaded, because the session is one of the SDK's.
            following = {"params": sys.modules["mcp.types"].PaginatedRequestParams(cursor=cursor)}
        page = await source.list_tools(**following)
    else:
        tools = page
    loop = asyncio.get_running_loop()
    text = _instructions_of(source) if instructions else ""
    decls: list[ToolDecl] = []
    for tool in tools:
        func = _call_of(source, tool.name, loop)
        decls.append(with_fields(ToolDecl.of(tool), func=func, instructions=text))
    return decls


def _instructions_of(source: Any) -> str:
    """Return what a server says of itself when a client connects; empty if it says nothing."""
    initialized: Any = getattr(source, "initialize_result", None)  # FastMCP's client has it there
    for place in (source, initialized):
        text = getattr(place, "instructions", None)
        if isinstance(text, str):
            return text
    return ""


def _call_of(
    source: Any, name: str, loop: asyncio.AbstractEventLoop
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a function that sends a call under the server's name for the tool, even if it was renamed."""
    # A client answers what the server asks by callbacks of its own; its session hands the questions out.
    session = getattr(source, "session", source)

    # A session reads its answers on the loop on which it was opened and listed.
    async def call_tool(*, sigadapt_context: ToolContext | None = None, **arguments: Any) -> Any:
        if sigadapt_context is None:  # called by hand
            return await on_loop(loop, lambda: source.call_tool(name, arguments), name)
        return await on_loop(loop, lambda: _call(source, name, arguments, sigadapt_context), name)

    async def poll_task(task_id: str) -> Any:
        return await on_loop(loop, lambda: task_result(session, task_id), name)

    setattr(call_tool, HOME_LOOP, loop)
    setattr(call_tool, TASKS, poll_task)
    return call_tool


async def _call(source: Any, name: str, arguments: Json, context: ToolContext) -> Any:
    """Send a call; stop it if the server asks, or let it wait if the server answers with a task."""
    session = getattr(source, "session", source)
    parameters = inspect.signature(session.call_tool).parameters
    if "allow_input_required" not in parameters or claims_other_results(source):
        return await source.call_tool(name, arguments)
    options: Json = {"allow_input_required": True}
    if "allow_claimed" in parameters:
        options["allow_claimed"] = True
    answers = answers_for(context)
    for _ in range(_MOST_ROUNDS):
        result = await session.call_tool(name, arguments, **options, **answers)
        if not is_a("InputRequiredResult", result):
            return task_of(result) or result
        if result.input_requests:
            context.ask_server(needs_of(result, name), result.request_state)
        answers = {"request_state": result.request_state}
    raise RuntimeError(f"the server asked for nothing {_MOST_ROUNDS} times, and gave no result")
