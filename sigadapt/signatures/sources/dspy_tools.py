"""`dspy.Tool` as a tool.

DSPy derives `args` from the function and loses details: constraints and descriptions in `Annotated`,
docstring sections, definitions that types share. So if `args` are those that DSPy derives, `callables.py`
describes the function instead. Other `args` are the author's; as in DSPy, an argument without a default is
then required. `dspy.Tool.from_mcp_tool` and `from_langchain` forget which arguments are required, but the
descriptions that they write still say `(Required)`.
"""

import asyncio
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, TypeAlias, TypeGuard

import dspy

from sigadapt.dspy_boundary.current_run import current_ledger
from sigadapt.dspy_boundary.internals import (
    acall_in_turn,
    call_in_turn,
    make_tools_of,
    with_callbacks,
)
from sigadapt.errors import InputNeeded, InvalidToolDecl
from sigadapt.schemas.definitions import object_schema
from sigadapt.schemas.json_values import Json, compact, is_object
from sigadapt.signatures.sources import callables, docstrings, runnable
from sigadapt.signatures.sources.fingerprint import DeclaredCache
from sigadapt.signatures.sources.raw_decl import RawDecl
from sigadapt.signatures.sources.runnable import (
    RefusedRun,
    Runnable,
    asking_of,
    is_open,
    is_written_into_prompt,
    readable,
    refuse_forgotten_adapter,
    told_to_developer,
    types_to_bind,
)
from sigadapt.signatures.tool_functions.open_call import OpenCall, call_for
from sigadapt.signatures.tool_functions.pending import need_of
from sigadapt.signatures.tool_functions.tool_context import cannot_wait
from sigadapt.signatures.tool_results.failures import plain_failures
from sigadapt.signatures.tool_results.function_calls import (
    arun_function,
    least,
    read_outcome,
    refuse_blocked,
    run_function,
)
from sigadapt.signatures.tool_results.result_check import unfit_error
from sigadapt.signatures.tool_results.tool_output import NotedValue

_Args: TypeAlias = dict[str, dict[str, Any]]
_REQUIRED = " (Required)"
_BY_DSPY: DeclaredCache[tuple[_Args, str]] = DeclaredCache()
"""The arguments and the description that DSPy derives from a function."""


class DeclaredTool(dspy.Tool):
    """A `dspy.Tool` of a declaration, which runs in sync and async programs alike.

    `ToolDecl.to_dspy` makes it, and so does `dspy.Tool(decl)`, which DSPy's agents call for each tool.
    """

    _decl: Runnable

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
        raw = func.guarded
        function = raw.function
        types = types_to_bind(func.raw)
        arguments = _arguments(raw.parameters)
        types_of_arguments = {key: types.get(key, Any) for key in arguments}
        description = str(raw.description or "") if desc is None else desc
        super().__init__(function, name or str(raw.name), description, arguments, types_of_arguments)
        self._decl = func

    def _parse_function(self, func: Any, arg_desc: Any = None) -> None:
        # DSPy would derive a schema here, and fail for functions that it cannot read.
        self.has_kwargs = not self.args or is_open(func)

    @property
    def raw(self) -> RawDecl:
        """What the declaration says, under the name and the description of this tool."""
        return self._decl.raw._replace(name=self.name, description=self.desc)

    @property
    def declaration(self) -> Runnable | None:
        """The declaration, if this tool was not changed since it was made of it."""
        decl: Any = self._decl
        asking = asking_of(decl.func)
        if asking is not None and not asking.is_of(decl):
            return None
        is_same = self.name == decl.name and self.desc == decl.description
        return decl if is_same else None

    def format(self) -> str:
        """Return the text that DSPy's own adapter writes into a prompt; refuse what it cannot ask about."""
        refuse_forgotten_adapter(self._decl)
        return super().format()

    def format_as_litellm_function_call(self) -> dict[str, Any]:
        """Return the declaration that DSPy's own adapter sends; refuse what it cannot ask about."""
        refuse_forgotten_adapter(self._decl)
        return super().format_as_litellm_function_call()

    def __repr__(self) -> str:
        if is_written_into_prompt():
            refuse_forgotten_adapter(self._decl)
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
                read_outcome(error, self._readable)
                raise
            return self._readable(value)
        return refusal[0]

    def _readable(self, result: Any) -> Any:
        """Return what an agent's model reads of a result, or raise why it does not fit what was declared."""
        decl: Any = self._decl
        value = readable(result, str(self.name))
        if decl.check_result:
            plain_value = readable(result.value, str(self.name)) if isinstance(result, NotedValue) else value
            error = None if isinstance(value, RefusedRun) else unfit_error(decl, plain_value)
            if error is not None:
                raise error
        return value

    # Callbacks get the arguments under the name `kwargs`, as those of DSPy's own tools.

    @with_callbacks
    def _run(self, kwargs: Json) -> Any:
        refuse_blocked(self._function, str(self.name))
        call = call_for(self._function)
        with self._inside():
            value = run_function(self._function, self._parse_arguments(kwargs), self._timeout())
            return self._ready(call, value)

    @with_callbacks
    async def _arun(self, kwargs: Json) -> Any:
        call = call_for(self._function)
        with self._inside():
            value = await arun_function(self._function, self._parse_arguments(kwargs), self._timeout())
            return self._ready(call, value)

    @contextmanager
    def _inside(self) -> Generator[None]:
        """Refuse a program inside of the tool that has to wait: the outer run continues."""
        try:
            yield
        except InputNeeded:
            raise runnable.guards.waits_inside(str(self.name)) from None

    def _ready(self, call: OpenCall | None, value: Any) -> Any:
        """Return what the function returned, unless the result comes later: then the call waits."""
        need = need_of(value, str(self.name))
        if need is not None and call is not None:
            call.wait_for_result(need)
        if need is not None:
            raise cannot_wait("whatever runs it cannot go on with its call later", str(self.name))
        return value

    @property
    def is_sequential(self) -> bool:
        """Whether the calls of a turn with this tool run one by one."""
        decl: Any = self._decl
        return decl.sequential

    def _timeout(self) -> float | None:
        """Return how long a call is waited for at most."""
        decl: Any = self._decl
        ledger = current_ledger()
        # A function that asks first keeps the limit itself, once a person has answered.
        own = None if asking_of(self._function) else decl.timeout
        return least(own, None if ledger is None else ledger.seconds_left())

    @property
    def _function(self) -> Callable[..., Any]:
        tool: Any = self
        return tool.func

    def _parse_arguments(self, arguments: Json) -> Json:
        parse: Callable[..., Json] = getattr(self, "_validate_and_parse_args")  # noqa: B009  (DSPy's, untyped)
        return parse(**arguments)


make_tools_of(Runnable, DeclaredTool)


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


def accepts(source: object) -> TypeGuard[dspy.Tool]:
    """Return whether the source is a `dspy.Tool`."""
    return isinstance(source, dspy.Tool)


def describe(source: dspy.Tool, parameters: Json | None) -> list[RawDecl]:
    """Describe a `dspy.Tool`. Neither it nor its function is called (nothing is executed)."""
    tool: Any = source
    func = tool.func
    args: _Args = source.args or {}
    own_name = None if source.name == "<lambda>" else source.name  # which nobody gave it
    if parameters is not None:
        return [RawDecl(own_name, source.desc, parameters, func=func)]
    if isinstance(source, DeclaredTool):
        return [source.raw]
    if isinstance(func, Runnable):
        raw_decl = func.raw
        description = raw_decl.description if source.desc == func.__doc__ else source.desc
        return [raw_decl._replace(name=own_name, description=description)]
    descriptions = source.arg_desc or {}
    derived_args, doc = _read_by_dspy(func)
    for name in descriptions.keys() & derived_args.keys():
        derived_args = {**derived_args, name: {**derived_args[name], "description": descriptions[name]}}
    if args != derived_args:
        return [RawDecl(own_name, source.desc, _schema_of(source, args), func=func)]
    [raw] = callables.describe(func, None)
    for name in descriptions.keys() & raw.parameters["properties"].keys():
        raw.parameters["properties"][name]["description"] = descriptions[name]
    description = source.desc
    if description == doc:  # the raw docstring, sections and all
        description = docstrings.parse(inspect.cleandoc(doc)).description
    return [raw._replace(name=own_name, description=description)]


def _read_by_dspy(func: Callable[..., Any]) -> tuple[_Args, str]:
    """Return the arguments and the docstring that `dspy.Tool` reads of a function, to notice changed ones."""
    args_and_doc = _BY_DSPY.get(func)
    if args_and_doc is None:
        before = _BY_DSPY.fingerprint(func)
        by_dspy = dspy.Tool(func)
        args_and_doc = by_dspy.args or {}, by_dspy.desc or ""
        _BY_DSPY.put(func, args_and_doc, before)
    return args_and_doc


def _schema_of(source: dspy.Tool, args: _Args) -> Json:
    """Return the schema of arguments that are not those of the tool's function."""
    # DSPy's agents make `submit` so, of the types of their outputs.
    descriptions = source.arg_desc or {}
    required = [name for name, schema in args.items() if "default" not in schema]
    # DSPy says in the description alone which arguments of such a schema are required.
    if source.has_kwargs and args and args.keys() == descriptions.keys():  # made of a JSON Schema by DSPy
        required = [name for name in args if descriptions[name].endswith(_REQUIRED)]
    return {**object_schema(args), "required": required}
