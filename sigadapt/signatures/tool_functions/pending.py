"""Pending: what a tool returns if its result comes later, from somewhere else."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from sigadapt.schemas.checking import check_json
from sigadapt.schemas.json_values import is_object
from sigadapt.signatures.tool_functions.open_call import Need
from sigadapt.signatures.tool_results.function_calls import HOME_LOOP
from sigadapt.signatures.tool_results.tool_output import NotedValue, first_of, is_a

_TASK = "mcp_task"


@dataclass(frozen=True)
class Pending:
    """The result of a call that is not there yet: the run waits for it (`InputNeeded`).

    Args:
        handle: a JSON value by which the program finds the work again, such as the id of a job.

    Raises:
        InvalidToolDecl: for a handle that is no JSON value.

    Example:
        >>> import sigadapt
        >>> def train(model: str) -> str:
        ...     return Pending({"job": 17})
        >>> calls = sigadapt.ToolCalls([{"name": "train", "args": {"model": "m"}}])
        >>> try:
        ...     calls.run([train])
        ... except sigadapt.InputNeeded as error:
        ...     [request] = error.requests
        ...     [result] = error.results_of([train], {request.id: "It is ready."})
        >>> request.kind, request.pending, result.value
        ('result', {'job': 17}, 'It is ready.')
    """

    handle: Any = None

    def __post_init__(self) -> None:
        check_json(self.handle, tool=None)


def is_pending(value: object) -> bool:
    """Return whether a value stands for a result that comes later."""
    if isinstance(value, NotedValue):
        value = value.value
    return isinstance(value, Pending) or is_a("CreateTaskResult", value)


def need_of(value: object, tool: str) -> Need | None:
    """Return what a call waits for that returned this value; None for a value that is a result."""
    if isinstance(value, NotedValue):
        value = value.value
    if isinstance(value, Pending):
        return Need("result", result_hint(tool), pending=value.handle, has_handle=True)
    if is_a("CreateTaskResult", value):
        return Need("result", result_hint(tool), pending=task_handle(value))
    return None


def task_handle(task: Any) -> dict[str, str] | None:
    """Return the handle of an MCP server's task: of its id, or of a result that has it; None without one."""
    if isinstance(task, str):
        return {_TASK: task}
    for place in (task, getattr(task, "task", None)):
        task_id = first_of(place, "task_id", "taskId")
        if isinstance(task_id, str):
            return {_TASK: task_id}
    return None


TASKS = "__sigadapt_tasks__"
"""The attribute of a function of an MCP tool that holds a function of a task's id, which asks the server."""


class TaskPoll:
    """Asks an MCP server for the result of a task, once, in place of the tool's function.

    Args:
        function: the function of the tool, with the loop that its session is on.
        tool: the name of the tool.
        task_id: the id of the task.
    """

    def __init__(self, function: object, tool: str, task_id: str) -> None:
        self.need = Need("result", result_hint(tool), pending=task_handle(task_id))
        self._poll: Callable[[str], Awaitable[Any]] = getattr(function, TASKS)
        self._task_id = task_id
        setattr(self, HOME_LOOP, getattr(function, HOME_LOOP, None))

    async def __call__(self) -> Any:
        """Return the result, or a Pending if there is none yet."""
        return await self._poll(self._task_id)


def task_poll(function: object, tool: str, handle: Any) -> TaskPoll | None:
    """Return what asks an MCP server for the result of a task; None for any other handle."""
    if not hasattr(function, TASKS) or not is_object(handle) or handle.keys() != {_TASK}:
        return None
    return TaskPoll(function, tool, handle[_TASK])


def result_hint(tool: str) -> str:
    """Return the hint of a request for a result."""
    return f"Give the result of {tool}."
