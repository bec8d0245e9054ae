"""Live MCP sessions and servers as a Toolset's source: whatever lists its tools.

`list_tools` differs between the SDK's objects and versions: a server object and FastMCP's client give a list,
a session gives pages, and the next page is asked for with `params` or with `cursor`. Listing is awaited by
whoever resolves the toolset; nothing here runs a tool. Each declaration's `func` is there for the caller: it
sends the call to the session under the server's own name, whatever the tool is called by then.
"""

import inspect
import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.tool_decl import ToolDecl, altered

_MOST_PAGES = 1_000


def accepts(source: object) -> bool:
    """Whether the source is an object that lists tools as MCP's do."""
    if isinstance(source, type):
        return False
    return all(callable(getattr(source, name, None)) for name in ("list_tools", "call_tool"))


async def listed_tools(source: Any) -> list[ToolDecl]:
    """All tools that a session or a server has, page after page.

    Args:
        source: a `ClientSession` or `Client` that is connected, an `MCPServer`, or FastMCP's counterparts.

    Raises:
        InvalidToolDecl: `endless_listing`, for a server that gives the same page again and again.
    """
    tools: list[Any] = []
    seen: set[str] = set()
    page: Any = await source.list_tools()
    while type(page) is not list:
        tools += page.tools
        cursor: str | None = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
        if cursor is None:
            break
        if cursor in seen or len(seen) == _MOST_PAGES:
            raise InvalidToolDecl(f"its list of tools has no end ({len(seen)} pages)", code="endless_listing")
        seen.add(cursor)
        page = await source.list_tools(**_next(source.list_tools, cursor))
    else:
        tools = cast("list[Any]", page)
    return [_declared(source, tool) for tool in tools]


def _next(list_tools: Callable[..., Any], cursor: str) -> dict[str, Any]:
    if "params" not in inspect.signature(list_tools).parameters:
        return {"cursor": cursor}
    return {"params": sys.modules["mcp.types"].PaginatedRequestParams(cursor=cursor)}


def _declared(source: Any, tool: Any) -> ToolDecl:
    name: str = tool.name

    def call_tool(**arguments: Any) -> Awaitable[Any]:
        return source.call_tool(name, arguments)

    return altered(ToolDecl.of(tool), func=call_tool)
