"""One call while its tool runs (`OpenCall`), and how it ends to wait for a person or a result (`CallStop`).

A tool whose result comes later, from somewhere else, returns a `Pending`.

Whatever runs the calls of a turn sets `open_call` right before it starts a tool. The tool's own wrapper
(`tool_function.py`) takes it out again, so that no tool inside of this one takes it for its own. The code
that runs the calls makes requests of what a call needs (`calls/input_requests.py`).
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import WRAPPER_ASSIGNMENTS
from inspect import isawaitable, signature, unwrap
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

import pydantic
from typing_extensions import Self

from sigadapt.errors import InvalidToolDecl, SigadaptError
from sigadapt.json_values import Json, is_object, short_hash
from sigadapt.schemas.checking import check_json
from sigadapt.signatures.tool_results.function_calls import HOME_LOOP
from sigadapt.signatures.tool_results.tool_output import NotedValue, first_of, is_a

Kind: TypeAlias = Literal["approval", "answer", "result"]
"""What a request asks for: a yes to a call, an answer to a question, or the result of a call."""


class Need(NamedTuple):
    """One thing that a call waits for."""

    kind: Kind
    hint: str  # the question to a person
    schema: Json | None = None  # of an answer
    payload: Any = None
    pending: Any = None  # the handle of a result
    args: Json | None = None  # the call's arguments, if a hook changed them
    question: str = ""  # the `question_key` that the answer is kept under
    position: int = 0  # of the question among those of its call
    member: str | None = None  # the name of the question among those that an MCP server asks at once
    has_handle: bool = False  # whether the tool gave one, which may be None


class QuestionReply(pydantic.BaseModel):
    """What a person answered to one question of a call."""

    model_config = pydantic.ConfigDict(frozen=True)

    question: str
    position: int = 0
    value: Any = None
    declined: str | None = None  # the reason not to answer


class CallProgress(pydantic.BaseModel):
    """What was decided about a call that waits. It is saved with the run, so nobody is asked twice."""

    model_config = pydantic.ConfigDict(frozen=True)

    approved: dict[str, Any] | None = None  # the arguments that a person said yes to
    pin: str | None = None  # `pin_of` the tool that they said yes to
    is_edited: bool = False  # whether that person changed them
    changes: tuple[dict[str, Any], ...] = ()  # arguments of a hook's that a person said yes to
    replies: tuple[QuestionReply, ...] = ()
    server_state: str | None = None  # the `request_state` of an MCP server that asked
    server_replies: dict[str, QuestionReply] | None = None  # by the server's names for its questions


NO_PROGRESS = CallProgress()


class CallStop(BaseException):
    """Ends a call that waits. It is no `Exception`: a tool's `except Exception` does not catch it.

    Args:
        needs: what it waits for.
        progress: what was decided about it so far, as far as that still holds.
    """

    def __init__(self, needs: Sequence[Need], progress: CallProgress = NO_PROGRESS) -> None:
        super().__init__("the call waits")
        self.needs = tuple(needs)
        self.progress = progress


def stop_in(error: BaseException) -> CallStop | None:
    """Return the stop that an error is, or that a task group has put into a group of errors."""
    if isinstance(error, CallStop):
        return error
    inner_errors: Sequence[BaseException] = getattr(error, "exceptions", ())
    stops = [stop for inner in inner_errors if (stop := stop_in(inner)) is not None]
    if not stops:
        return None
    needs = [need for stop in stops for need in stop.needs]
    return CallStop(needs, stops[0].progress)


class LaterCallStop(CallStop):
    """Stands for a call that did not begin, because an earlier call of a turn in sequence waits."""

    def __init__(self) -> None:
        super().__init__(())


def question_key(question: str, schema: Json) -> str:
    """Return what an answer is kept under: the question's text and the schema of its answer."""
    return short_hash(json.dumps([question, schema], sort_keys=True))


class OpenCall:
    """One call that runs.

    Args:
        call: the ToolCall.
        progress: what was decided about it earlier.
        decision: True or the edited ToolCall if a person agreed to it; None if nobody was asked.
        refusal: makes the error of a call that cannot wait, where nobody could go on with its run.
    """

    def __init__(
        self,
        call: Any,
        progress: CallProgress = NO_PROGRESS,
        decision: Any = None,
        refusal: Callable[[str], SigadaptError] | None = None,
    ) -> None:
        self.call = call
        self.progress = progress
        self.decision = decision
        self._refusal = refusal
        self.agreed_args: Any = None
        """The arguments as they were agreed to, whatever a hook does to `call`."""
        self.changed_args: Json | None = None
        """The arguments as a hook changed them; None if none did."""
        self._has_ended = False
        self._asked = 0
        self.agree: Callable[[Need], Any] | None = None
        """Asks a person at once about changed arguments; None if the call has to wait for that."""
        self.source: Callable[[], Any] | None = None
        """Gives the result of the call that comes from elsewhere, in place of the function."""

    def end(self) -> None:
        """Note that the function has run, so that the call cannot wait any more: it would run again."""
        self._has_ended = True

    def attempt(self, call: Any) -> "OpenCall":
        """Return another attempt at this call, with the answers that it has: no person is asked twice."""
        return OpenCall(call, self.progress, refusal=self._refusal)

    def next_position(self) -> int:
        """Return the position of the next question of the call."""
        position = self._asked
        self._asked += 1
        return position

    def reply_to(self, question: str, position: int) -> QuestionReply | None:
        """Return the answer to a question; None if it was not answered, or another one was.

        Args:
            question: its `question_key`.
            position: its position among the questions of the call.
        """
        for reply in self.progress.replies:
            if (reply.position, reply.question) == (position, question):
                return reply
        self.drop_replies(position)
        return None

    def drop_replies(self, position: int) -> None:
        """Forget the answers to the question at a position and to those after it."""
        replies = tuple(reply for reply in self.progress.replies if reply.position < position)
        self.progress = self.progress.model_copy(update={"replies": replies})

    def wait(self, needs: Sequence[Need]) -> NoReturn:
        """Stop the call until these needs are met.

        Raises:
            CallStop: always, unless the call cannot wait.
            SigadaptError: `nobody_to_ask`, where the call cannot wait.
        """
        if self._has_ended:
            raise InvalidToolDecl(
                "the tool has run already, so its call can no longer wait: it would run again",
                code="nobody_to_ask",
                tool=self._tool,
                fix="Ask before the tool acts: in the tool, or in `before_tool`.",
            )
        self._stop(needs)

    def wait_for_result(self, need: Need) -> NoReturn:
        """Stop a call whose tool has run, and whose result comes later.

        Raises:
            CallStop: as `wait`.
            SigadaptError: as `wait`.
        """
        self._stop([need])

    @property
    def _tool(self) -> str:
        return getattr(self.call, "name", "")

    def _stop(self, needs: Sequence[Need]) -> NoReturn:
        if self._refusal is not None:
            raise self._refusal(self._tool)
        raise CallStop(needs, self.progress)


open_call: ContextVar[OpenCall | None] = ContextVar("open_call", default=None)
"""The call whose tool is about to run here."""


hooked_call: ContextVar[OpenCall | None] = ContextVar("hooked_call", default=None)
"""The call whose hook runs here. A hook may run it again, and what that waits for the call waits for."""


def start_hook(call: OpenCall, hook: Callable[..., Any], given: tuple[Any, ...]) -> Any:
    """Ask a hook of a call; what it returns may be awaitable."""
    token = hooked_call.set(call)
    try:
        answer = hook(*given)
    finally:
        hooked_call.reset(token)
    return _finish_hook(call, answer) if isawaitable(answer) else answer


async def _finish_hook(call: OpenCall, answer: Awaitable[Any]) -> Any:
    token = hooked_call.set(call)
    try:
        return await answer
    finally:
        hooked_call.reset(token)


def attempt_of(call: Any) -> OpenCall | None:
    """Return a new attempt at the call whose hook runs here; None for any other call."""
    outer = hooked_call.get()
    if outer is None or (outer.call.id, outer.call.name) != (call.id, call.name):
        return None
    if outer.call.turn != call.turn:  # of a program that the hook runs: servers use ids again
        return None
    return outer.attempt(call)


class TakesCall:
    """What stands for a tool's function, and takes the call that runs: others leave it to the tools inside.

    Args:
        func: the function, whose name, docstring and signature it has.
        without: the parameter that is not among its own.
    """

    def __init__(self, func: Callable[..., Any], without: str | None = None) -> None:
        for name in WRAPPER_ASSIGNMENTS:
            with suppress(AttributeError):
                setattr(self, name, getattr(func, name))
        with suppress(TypeError, ValueError):
            own = signature(func)
            parameters = [part for part in own.parameters.values() if part.name != without]
            self.__signature__ = own.replace(parameters=parameters)
        if hasattr(func, HOME_LOOP):
            setattr(self, HOME_LOOP, getattr(func, HOME_LOOP))
        self._func = func

    @property
    def __globals__(self) -> dict[str, Any]:
        """The names in which quoted annotations are read."""
        function = unwrap(getattr(self._func, "__func__", self._func))
        return getattr(function, "__globals__", {})

    def __deepcopy__(self, _: Any) -> Self:
        return self  # as Python copies a function


def call_for(function: object) -> OpenCall | None:
    """Return the call whose tool begins to run here; clear the place, unless this function takes it."""
    call = open_call.get()
    if not isinstance(function, TakesCall):
        take_open_call()
    return call


def take_open_call() -> OpenCall | None:
    """Return the call whose tool begins to run here, and clear the place for the tools inside of it."""
    call = open_call.get()
    if call is not None:
        open_call.set(None)
    return call


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
