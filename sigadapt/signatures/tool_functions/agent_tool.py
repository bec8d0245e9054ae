"""AgentTool: a declaration as DSPy's agents run it, in sync and async programs alike."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, TypeAlias

import dspy

from sigadapt.dspy_boundary.current_run import acall_in_turn, call_in_turn, current_ledger, running_call
from sigadapt.dspy_boundary.internals import with_callbacks
from sigadapt.errors import InputNeeded, InvalidToolDecl
from sigadapt.json_values import Json, compact, equal_json, is_object
from sigadapt.schemas.arguments import Flaw
from sigadapt.signatures.binding import bound_arguments, without_own_defaults
from sigadapt.signatures.sources.annotations import jsonable
from sigadapt.signatures.sources.dspy_tools import DeclaredTool
from sigadapt.signatures.sources.runnable import (
    RefusedRun,
    Runnable,
    asking_of,
    is_open,
    is_written_into_prompt,
    own_limit,
    readable,
    refuse_forgotten_adapter,
    told_to_developer,
)
from sigadapt.signatures.tool_functions.guards import agent_function, waits_inside
from sigadapt.signatures.tool_functions.open_call import OpenCall, call_for, need_of
from sigadapt.signatures.tool_functions.tool_context import cannot_wait
from sigadapt.signatures.tool_results.function_calls import (
    arun_function,
    least,
    read_outcome,
    refuse_blocked,
    run_function,
)
from sigadapt.signatures.tool_results.plain_values import unfit_error
from sigadapt.signatures.tool_results.tool_output import NotedValue
from sigadapt.signatures.tool_results.tool_result import plain_failures

_Args: TypeAlias = dict[str, dict[str, Any]]


class AgentTool(DeclaredTool):
    """A `dspy.Tool` of a declaration, which runs in sync and async programs alike.

    `ToolDecl.to_dspy` makes it, and so does `dspy.Tool(decl)`, which DSPy's agents call for each tool.
    """

    def __init__(  # noqa: PLR0917  (DSPy's own parameters)
        self,
        func: Runnable,
        name: str | None = None,
        desc: str | None = None,
        args: _Args | None = None,
        arg_types: dict[str, Any] | None = None,
        arg_desc: dict[str, str] | None = None,
    ) -> None:
        if args is not None or arg_types is not None or arg_desc is not None:
            raise InvalidToolDecl(
                "its arguments are those of its declaration",
                code="invalid_field",
                tool=getattr(func, "name", None),
                fix="Declare them there: ToolDecl.of(decl, parameters=...).",
            )
        decl: Any = func
        asks_first = asking_of(func.fields["func"]) is not None
        function = func.function if asks_first else agent_function(decl)
        arguments = _arguments(decl.parameters)
        types_of_arguments = dict.fromkeys(arguments, Any)
        description = decl.description if desc is None else desc
        own_name = name or decl.name
        dspy.Tool.__init__(self, function, own_name, description, arguments, types_of_arguments)
        self._decl = func

    def _parse_function(self, func: Any, arg_desc: Any = None) -> None:
        # DSPy would derive a schema here, and fail for functions that it cannot read.
        self.has_kwargs = not self.args or is_open(func)

    def refuse(self) -> None:
        """Refuse one of DSPy's own adapters, which cannot ask about the tool's calls."""
        refuse_forgotten_adapter(self._decl)

    def __repr__(self) -> str:
        if is_written_into_prompt():
            self.refuse()
        return super().__repr__()

    def __call__(self, /, **kwargs: Any) -> Any:
        """Run the function, and return what an MCP result says."""
        return call_in_turn(str(self.name), kwargs, partial(self._call, kwargs))

    async def acall(self, /, **kwargs: Any) -> Any:
        """Run the function without blocking the event loop, and return what an MCP result says."""
        return await acall_in_turn(str(self.name), kwargs, partial(self._acall, kwargs))

    def _call(self, kwargs: Json) -> Any:
        with plain_failures(), told_to_developer() as refusal:
            return self._readable(self._run(kwargs))
        return refusal[0]

    async def _acall(self, kwargs: Json) -> Any:
        with plain_failures(), told_to_developer() as refusal:
            try:
                value = await self._arun(kwargs)
            except asyncio.CancelledError as error:
                read_outcome(error, lambda value: self._readable(self._checked(value)))
                raise
            return self._readable(value)
        return refusal[0]

    def _readable(self, result: Any) -> Any:
        """Return what an agent's model reads of a result."""
        return readable(result, str(self.name))

    # Callbacks get the arguments under the name `kwargs`, as those of DSPy's own tools.

    @with_callbacks
    def _run(self, kwargs: Json) -> Any:
        refuse_blocked(self._function, str(self.name))
        call = call_for(self._function)
        with self._inside():
            value = run_function(self._function, self._arguments(kwargs), self._timeout())
            return self._ready(call, value)

    @with_callbacks
    async def _arun(self, kwargs: Json) -> Any:
        call = call_for(self._function)
        with self._inside():
            value = await arun_function(self._function, self._arguments(kwargs), self._timeout())
            return self._ready(call, value)

    @contextmanager
    def _inside(self) -> Generator[None]:
        """Refuse a program inside of the tool that has to wait: the outer run continues."""
        running_call.set(None)
        try:
            yield
        except InputNeeded:
            raise waits_inside(str(self.name)) from None

    def _ready(self, call: OpenCall | None, value: Any) -> Any:
        """Return what the function returned, unless the result comes later: then the call waits."""
        need = need_of(value, str(self.name))
        if need is not None and call is not None:
            call.wait_for_result(need)
        if need is not None:
            raise cannot_wait("whatever runs it cannot go on with its call later", str(self.name))
        return self._checked(value)

    def _checked(self, result: Any) -> Any:
        """Return what the function returned, or raise why it does not fit what was declared."""
        if not self._decl.check_result:
            return result
        noted_value = result.value if isinstance(result, NotedValue) else result
        value = readable(noted_value, str(self.name))
        error = None if isinstance(value, RefusedRun) else unfit_error(self._decl, value, noted_value)
        if error is not None:
            raise error
        return result

    @property
    def is_sequential(self) -> bool:
        """Whether the calls of a turn with this tool run one by one."""
        return self._decl.sequential

    def _timeout(self) -> float | None:
        """Return how long a call is waited for at most."""
        ledger = current_ledger()
        own = own_limit(self._function, self._decl.timeout)
        return least(own, None if ledger is None else ledger.seconds_left())

    @property
    def _function(self) -> Callable[..., Any]:
        tool: Any = self
        return tool.func

    def _arguments(self, kwargs: Json) -> Json:
        """Return arguments as the function takes them, checked as `ToolCalls.run` checks them.

        DSPy's own check has another validator, which refuses 19.99 as a multiple of 0.01.

        Raises:
            ValueError: for what does not fit, as DSPy's tools do.
        """
        if asking_of(self._function) is not None:  # it shows a person the JSON first, and checks that
            return kwargs
        args = {name: jsonable(value) for name, value in kwargs.items()}
        arguments = without_own_defaults(self._decl, args)
        flaw = self._decl.flaw_of(arguments)
        if flaw is None and not equal_json(kwargs, args):  # Python values, given by hand
            return kwargs
        values = bound_arguments(self._decl, arguments) if flaw is None else flaw
        if not isinstance(values, Flaw):
            return values
        raise ValueError(values.message)


def _arguments(schema: Json) -> _Args:
    """Return the arguments of a schema as `dspy.Tool` has them, each with the definitions that it may use."""
    definitions: Json = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    properties: dict[str, Any] = schema.get("properties") or {}
    args: _Args = {}
    for name, part in properties.items():
        plain_part: Json = part if is_object(part) else {}
        has_reference = "$ref" in compact(plain_part)
        if has_reference:
            plain_part = {**plain_part, **definitions}
        args[name] = deepcopy(plain_part)
    return args
