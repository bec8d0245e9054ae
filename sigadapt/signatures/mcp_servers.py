"""A live MCP session or server, the source of a Toolset: its tools, what it asks in a call, and its tasks.

A server object and FastMCP's client list all tools at once. A session gives pages, and takes the next page's
cursor as `params` or as `cursor`, depending on the SDK's version. The SDK is not imported here: a session has
imported it. A server of protocol 2026-07-28 may answer a call with a task if the client claims the result
type `task` of the extension `io.modelcontextprotocol/tasks`.
"""

import asyncio
import inspect
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from typing import Any, NamedTuple

import pydantic

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, cut, is_array, is_object, short_hash
from sigadapt.signatures.server_tools import is_web_address
from sigadapt.signatures.sources.mcp import is_for_model
from sigadapt.signatures.tool_decl import ToolDecl, with_fields
from sigadapt.signatures.tool_functions.open_call import TASKS, Need, Pending, QuestionReply, task_handle
from sigadapt.signatures.tool_functions.tool_context import ToolContext
from sigadapt.signatures.tool_results.function_calls import CONTEXT_FIRST, HOME_LOOP, on_loop
from sigadapt.signatures.tool_results.tool_output import is_a, loaded_mcp_types
from sigadapt.signatures.tool_results.tool_result import message_of

_MOST_PAGES = 1_000
_MOST_ROUNDS = 10
_TIMEOUTS = (-32001, 408)
"""The codes of the SDK for a request without an answer in time: of version 2, and of version 1."""


_ELICITATION = "elicitation/create"
_VISITED = {"type": "boolean"}
"""The answer to a server that sends the person to an address: whether they have been there."""

_OPEN = ("working", "input_required")
_DONE = "completed"
_REFUSALS = (-32600, -32601, -32602)
"""Codes of JSON-RPC by which a server says that there is no such task, or no such request."""
_LOG = logging.getLogger("sigadapt")
_ANY = pydantic.TypeAdapter(dict[str, Any])


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
        return await on_loop(loop, lambda: _task_result(session, task_id), name)

    setattr(call_tool, CONTEXT_FIRST, True)
    setattr(call_tool, HOME_LOOP, loop)
    setattr(call_tool, TASKS, poll_task)
    return call_tool


async def _call(source: Any, name: str, arguments: Json, context: ToolContext) -> Any:
    """Send a call; stop it if the server asks, or let it wait if the server answers with a task."""
    session = getattr(source, "session", source)
    parameters = inspect.signature(session.call_tool).parameters
    if "allow_input_required" not in parameters or _claims_other_results(source):
        return await _answer_in_time(source.call_tool(name, arguments))
    options: Json = {"allow_input_required": True}
    if "progress_callback" in parameters:
        options["progress_callback"] = _progress_of(context)
    if "allow_claimed" in parameters:
        options["allow_claimed"] = True
    answers = _answers_for(context)
    for _ in range(_MOST_ROUNDS):
        result = await _answer_in_time(session.call_tool(name, arguments, **options, **answers))
        if not is_a("InputRequiredResult", result):
            handle = None if is_a("CallToolResult", result) else task_handle(result)
            return result if handle is None else Pending(handle)
        if result.input_requests:
            context.ask_server(_needs_of(result, name), result.request_state)
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


def _claims_other_results(client: Any) -> bool:
    """Return whether a client has extensions that finish results of a kind that is no task."""
    extensions = getattr(client, "extensions", None) or ()
    return any(claim.result_type != "task" for extension in extensions for claim in extension.claims())


# {"resultType": "complete", "taskId": "t1", "status": "completed", "result": {"content": [...]}, ...}
# https://modelcontextprotocol.io/seps/2663-tasks-extension
async def _task_result(session: Any, task_id: str) -> Any:
    """Ask a server once for the result of a task: a `CallToolResult`, or a Pending if it goes on.

    A server that cannot be reached has said nothing about the task, so the call waits on.

    Raises:
        RuntimeError: for a task that failed or was cancelled, and for an answer about another task.
        pydantic.ValidationError: for a result that is none.
        MCPError: the SDK's, for a task that the server does not know.
    """
    sdk = loaded_mcp_types()
    params = sdk.GetTaskRequestParams(task_id=task_id)
    try:
        task: Json = await session.send_request(sdk.GetTaskRequest(params=params), _ANY)
    except Exception as error:
        if getattr(error, "code", None) in _REFUSALS:
            raise
        _LOG.warning("the state of the task %s is unknown: %s", cut(task_id), message_of(error))
        return Pending(task_handle(task_id))
    if task.get("taskId") != task_id:
        raise RuntimeError(
            f"the server was asked for the task {cut(task_id)}, and answered about another one"
        )
    status = task.get("status")
    if status in _OPEN:
        return Pending(task_handle(task_id))
    if status == _DONE:
        return sdk.CallToolResult.model_validate(task.get("result"))
    error = task.get("error")
    reason = error.get("message") if is_object(error) else task.get("statusMessage")
    raise RuntimeError(
        f"the server's task {cut(task_id)} is {cut(str(status))}: {cut(str(reason or 'no reason'))}"
    )


# {"resultType": "input_required", "inputRequests": {"sure": {"method": "elicitation/create", "params":
#  {"mode": "form", "message": "Delete 3 rows?", "requestedSchema": {"type": "object", ...}}}},
#  "requestState": "..."}
# https://modelcontextprotocol.io/specification/draft/basic/utilities/mrtr
def _needs_of(result: Any, tool: str) -> list[Need]:
    """Return what a server asks, each under the server's name for it.

    Raises:
        InvalidToolDecl: `nobody_to_ask`, for what a person cannot answer, such as a sample of a model, and
            for an address that no page may open.
    """
    needs: list[Need] = []
    for member, request in result.input_requests.items():
        if request.method != _ELICITATION:
            raise InvalidToolDecl(
                f"its server asks for {cut(request.method)}, which a person cannot answer",
                code="nobody_to_ask",
                tool=tool,
            )
        params: Json = request.params.model_dump(mode="json", by_alias=True, exclude_none=True)
        question = short_hash(json.dumps([result.request_state, member, params], sort_keys=True))
        address = params.get("url")
        if address is not None and not is_web_address(address):
            raise InvalidToolDecl(
                "its server asks a person to open what is no web address",
                code="nobody_to_ask",
                tool=tool,
                fix="Only `http` and `https` addresses are shown to a person.",
            )
        schema = _VISITED if address is not None else params.get("requestedSchema") or {}
        payload = None if address is None else {"url": address}
        needs.append(Need("answer", params["message"], schema, payload, question=question, member=member))
    return needs


def _answers_for(context: ToolContext) -> Json:
    """Return what a server is sent with a call to go on with it; nothing if it did not ask yet."""
    server_round = context.server_round
    if server_round is None:
        return {}
    state, replies = server_round
    responses = {member: _elicit_result(reply) for member, reply in replies.items()}
    return {"input_responses": responses, "request_state": state}


def _elicit_result(reply: QuestionReply) -> Any:
    """Return an answer as the server reads it."""
    sdk = loaded_mcp_types()
    if reply.declined is not None:
        return sdk.ElicitResult(action="decline")
    if isinstance(reply.value, dict):
        return sdk.ElicitResult(action="accept", content=reply.value)
    action = "accept" if reply.value is True else "cancel"
    return sdk.ElicitResult(action=action)
