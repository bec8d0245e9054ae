"""Tasks of MCP servers: a call that a server answers with a task, which it is asked for later.

A server of protocol 2026-07-28 may do so if the client claims the result type `task` of the extension
`io.modelcontextprotocol/tasks`. The MCP SDK is not imported here: a session has imported it.
"""

import logging
from typing import Any

import pydantic

from sigadapt.schemas.json_values import Json, cut, is_object
from sigadapt.signatures.tool_functions.pending import Pending, task_handle
from sigadapt.signatures.tool_results.failures import message_of
from sigadapt.signatures.tool_results.tool_output import is_a, loaded_mcp_types

_OPEN = ("working", "input_required")
_DONE = "completed"
_REFUSALS = (-32600, -32601, -32602)
"""Codes of JSON-RPC by which a server says that there is no such task, or no such request."""
_LOG = logging.getLogger("sigadapt")
_ANY = pydantic.TypeAdapter(dict[str, Any])


def claims_other_results(client: Any) -> bool:
    """Return whether a client has extensions that finish results of a kind that is no task."""
    extensions = getattr(client, "extensions", None) or ()
    return any(claim.result_type != "task" for extension in extensions for claim in extension.claims())


def task_of(result: Any) -> Pending | None:
    """Return the task that a server answered a call with; None for anything else.

    Args:
        result: what a session of the SDK gives for a call.
    """
    if is_a("CallToolResult", result) or is_a("InputRequiredResult", result):
        return None
    handle = task_handle(result)
    return None if handle is None else Pending(handle)


# {"resultType": "complete", "taskId": "t1", "status": "completed", "result": {"content": [...]}, ...}
# https://modelcontextprotocol.io/seps/2663-tasks-extension
async def task_result(session: Any, task_id: str) -> Any:
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
