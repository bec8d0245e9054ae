"""List the tools of a live MCP session or server, the source of a Toolset. No tool is run here.

A server object and FastMCP's client list all tools at once. A session gives pages, and takes the next page's
cursor as `params` or as `cursor`, depending on the SDK's version.
"""

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from typing import Any, NamedTuple

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json, is_array
from sigadapt.signatures.sources.mcp import is_for_model
from sigadapt.signatures.tool_decl import ToolDecl, with_fields
from sigadapt.signatures.tool_functions.pending import TASKS
from sigadapt.signatures.tool_functions.server_questions import answers_for, needs_of
from sigadapt.signatures.tool_functions.server_tasks import claims_other_results, task_of, task_result
from sigadapt.signatures.tool_functions.tool_context import ToolContext
from sigadapt.signatures.tool_results.function_calls import CONTEXT_FIRST, HOME_LOOP, on_loop
from sigadapt.signatures.tool_results.tool_output import is_a

_MOST_PAGES = 1_000
_MOST_ROUNDS = 10
_TIMEOUTS = (-32001, 408)
"""The codes of the SDK for a request without an answer in time: of version 2, and of version 1."""


def accepts(source: object) -> bool:
    """Return whether the source has the methods of an MCP session: `list_tools` and `call_tool`."""
    if isinstance(source, type):
        return False
    return all(callable(getattr(source, name, None)) for name in ("list_tools", "call_tool"))


class Listing(NamedTuple):
    """The tools of a server: those that can be declared, and why each other one cannot."""

    decls: list[ToolDecl]
    left_out: tuple[str, ...] = ()


async def listed_tools(source: Any, *, instructions: bool = False, drops_invalid: bool = False) -> Listing:
    """Return the declarations of the tools that a session or a server lists for models, page by page.

    Args:
        source: the session or the server.
        instructions: whether each tool has the server's own instructions.
        drops_invalid: whether a tool that cannot be declared is left out, in place of an error.
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
    left_out: list[str] = []
    for tool in filter(is_for_model, tools):
        try:
            decl = ToolDecl.of(tool)
        except InvalidToolDecl as error:
            if not drops_invalid:
                raise
            left_out.append(str(error))
            continue
        decls.append(with_fields(decl, func=_call_of(source, tool.name, loop), instructions=text))
    return Listing(decls, tuple(left_out))


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
    async def call_tool(context: Any = None, /, **arguments: Any) -> Any:
        if context is None:  # called by hand
            return await on_loop(loop, lambda: source.call_tool(name, arguments), name)
        return await on_loop(loop, lambda: _call(source, name, arguments, context), name)

    async def poll_task(task_id: str) -> Any:
        return await on_loop(loop, lambda: task_result(session, task_id), name)

    setattr(call_tool, CONTEXT_FIRST, True)
    setattr(call_tool, HOME_LOOP, loop)
    setattr(call_tool, TASKS, poll_task)
    return call_tool


async def _call(source: Any, name: str, arguments: Json, context: ToolContext) -> Any:
    """Send a call; stop it if the server asks, or let it wait if the server answers with a task."""
    session = getattr(source, "session", source)
    parameters = inspect.signature(session.call_tool).parameters
    if "allow_input_required" not in parameters or claims_other_results(source):
        return await _answer_in_time(source.call_tool(name, arguments))
    options: Json = {"allow_input_required": True}
    if "progress_callback" in parameters:
        options["progress_callback"] = _progress_of(context)
    if "allow_claimed" in parameters:
        options["allow_claimed"] = True
    answers = answers_for(context)
    for _ in range(_MOST_ROUNDS):
        result = await _answer_in_time(session.call_tool(name, arguments, **options, **answers))
        if not is_a("InputRequiredResult", result):
            return task_of(result) or result
        if result.input_requests:
            context.ask_server(needs_of(result, name), result.request_state)
        answers = {"request_state": result.request_state}
    raise RuntimeError(f"the server asked for nothing {_MOST_ROUNDS} times, and gave no result")


async def _answer_in_time(answer: Awaitable[Any]) -> Any:
    """Return the answer to a call that was sent; one that does not come in time leaves open whether it ran.

    Raises:
        TimeoutError: for a call that the server did not answer in time.
    """
    try:
        return await answer
    except Exception as error:
        code = getattr(getattr(error, "error", None), "code", None)
        if code not in _TIMEOUTS and not isinstance(error, TimeoutError):
            raise
        raise TimeoutError(f"{error}. The call may have run.") from error


def _progress_of(context: ToolContext) -> Callable[[float, float | None, str | None], Awaitable[None]]:
    """Return what a session tells how far a server has come, from a task of its own."""
    around = copy_context()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        fraction = min(progress / total, 1.0) if total else None
        around.copy().run(context.progress, message or "", fraction)

    return tell
