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
from sigadapt.schemas.json_values import is_array
from sigadapt.signatures.tool_decl import ToolDecl, with_fields
from sigadapt.signatures.tool_results.function_calls import HOME_LOOP, on_loop

_MOST_PAGES = 1_000


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

    # A session reads its answers on the loop on which it was opened and listed.
    async def call_tool(**arguments: Any) -> Any:
        return await on_loop(loop, lambda: source.call_tool(name, arguments), name)

    setattr(call_tool, HOME_LOOP, loop)
    return call_tool
