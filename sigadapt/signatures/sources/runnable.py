"""Declarations as DSPy's agents take them: `dspy.ReActV2(tools=[decl])` makes a `dspy.Tool` of each object.

DSPy reads a function's `__name__`, its `__doc__` and the signature of its `__call__`. A declaration has all
three, and so stands for its function. Nothing is run before the agent runs the tool (nothing is executed).
"""

import dataclasses
import functools
import inspect
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn, cast

import dspy
from pydantic.fields import FieldInfo

from sigadapt.dspy_boundary.contract import DEFAULT_ADAPTER
from sigadapt.dspy_boundary.current_run import is_run_by_agent
from sigadapt.dspy_boundary.internals import innermost_module, settings
from sigadapt.errors import InvalidOption, InvalidSignature, InvalidToolDecl
from sigadapt.signatures.sources.dicts import Fields
from sigadapt.signatures.tool_results.plain_values import plain_value, snapshot_of
from sigadapt.signatures.tool_results.tool_output import (
    NotedValue,
    output_of,
    program_outputs,
)
from sigadapt.signatures.tool_results.tool_result import (
    FailedResult,
    ToolResult,
    reason_of,
    type_of_error,
    value_for_agent,
    with_note,
)

_OUR_ADAPTERS = {
    "JSONAdapter": "JSONAdapter",
    "XMLAdapter": "adapters.XMLAdapter",
    "BAMLAdapter": "adapters.BAMLAdapter",
}
"""Where sigadapt has the adapter that replaces DSPy's of this name; any other is replaced by ChatAdapter."""

_LOG = logging.getLogger("sigadapt")

ASKS_FIRST = "__sigadapt_asks_first__"
"""The attribute of a function that asks a person before it runs a tool, which holds its `Asking`."""


class Asking(NamedTuple):
    """How a function asks first. A decorator copies the attribute of it, and is not that `function`."""

    function: Callable[..., Any]
    policy: Any  # the `requires_confirmation` that it asks by
    hooks: tuple[object, ...]  # around the function
    behind: Callable[..., Any]  # the function that it runs after a yes
    again: Callable[[Any], Callable[..., Any]]  # makes the function that asks by a declaration's own policy

    def is_of(self, decl: Any) -> bool:
        """Return whether a declaration has this policy and these hooks."""
        return self.policy is decl.requires_confirmation and self.hooks == decl.hooks


def asking_of(function: Any) -> Asking | None:
    """Return how a function asks first; None for one that does not."""
    asking = getattr(function, ASKS_FIRST, None)
    return asking if isinstance(asking, Asking) and asking.function is function else None


def own_limit(func: Any, timeout: float | None) -> float | None:
    """Return how long whatever runs a tool's function waits for it, of the timeout that is declared.

    A function that asks first keeps the limit itself, once a person has answered.
    """
    return None if asking_of(func) else timeout


def nobody_to_ask(tool: str) -> InvalidToolDecl:
    """Make the error of a tool that would run without the yes that it requires."""
    return InvalidToolDecl(
        "it requires confirmation, and this would run it without asking anybody",
        code="nobody_to_ask",
        tool=tool,
        fix="Give the agent `decls.confirmed_by(ask)`, where `ask(name, args, hint)` returns True to run it, "
        "or its adapter confirm='raise'; in a loop by hand, use `calls.run(decls, decisions)`.",
    )


def forgotten_adapter(reason: str, tool: str | None = None) -> InvalidSignature | None:
    """Make the error of what runs under DSPy's own adapter, `{adapter}` in the reason; else return None."""
    adapter: Any = settings.adapter
    if hasattr(adapter, "fills_tool_fields"):
        return None
    name = DEFAULT_ADAPTER if adapter is None else type(adapter).__name__
    ours = _OUR_ADAPTERS.get(name, "ChatAdapter")
    fix = f"Add `dspy.configure(adapter=sigadapt.{ours}())`."
    if adapter is None and ours != "ChatAdapter":
        fix = "Add `dspy.configure(adapter=sigadapt.ChatAdapter())`. "
        fix += f"`sigadapt.{ours}()` is the one that asks for texts as DSPy's default does."
    return InvalidSignature(
        reason.format(adapter=f"DSPy's own {name}"),
        code="forgotten_adapter",
        tool=tool,
        fix=fix,
    )


FORGOTTEN = "it requires confirmation, and {adapter} runs it without asking"


def refuse_forgotten_adapter(decl: Any) -> None:
    """Refuse a tool that requires confirmation and asks nobody, under an adapter that cannot stop for it."""
    if decl.requires_confirmation is False or decl.func is None or asking_of(decl.func) is not None:
        return
    error = forgotten_adapter(FORGOTTEN, decl.name)
    if error is not None:
        raise error


class Uncallable:
    """An object that DSPy's agents may take for a function, although no file of this folder should."""

    __slots__ = ()


class Runnable(Uncallable):
    """What a declaration shows of itself in the place of a function.

    `__call__` is a property, because DSPy reads the arguments from it.
    """

    __slots__ = ()

    @property
    def fields(self) -> Fields:
        """The arguments of the declaration, with its function."""
        decl: Any = self
        fields = {each.name: getattr(decl, each.name) for each in dataclasses.fields(decl)}
        asking = None if decl.requires_confirmation is False else asking_of(decl.func)
        if asking is not None and not asking.is_of(decl):
            fields["func"] = asking.again(decl)  # a policy or hooks that were set after `confirmed_by`
        return fields

    @property
    def function(self) -> Callable[..., Any]:
        """The function behind a tool that is to be run."""
        function = self.fields["func"]
        if function is not None:
            return function
        raise InvalidToolDecl(
            "it has no function to run",
            code="no_function",
            tool=self.__name__,
            fix="Declare it with one: dataclasses.replace(decl, func=...). For tools of an MCP server, pass "
            "Toolset(name, session) instead of what it lists.",
        )

    @property
    def __name__(self) -> str:
        return cast("Any", self).name

    @property
    def __call__(self) -> Callable[..., Any]:
        """A `dspy.Tool`, which runs the tool."""
        return cast("Any", self).to_dspy()


class SeveralTools(Uncallable):
    """What a collection shows of itself in the place of a function: an error with the line to write."""

    __slots__ = ()

    @property
    def __call__(self) -> NoReturn:
        """Raise the error."""
        kind = type(self).__name__
        raise InvalidToolDecl(
            f"a {kind} holds several tools, and an agent's list takes one for each item",
            code="unknown_source",
            fix="Spread it, as in `tools=[*decls]`, or give it alone, as in `tools=decls`.",
        )


class Description:
    """The docstring of a class; of its instances, the description of the tool."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    def __get__(self, decl: Any, owner: Any = None) -> str | None:
        return self._text if decl is None else decl.model_description


def is_written_into_prompt() -> bool:
    """Return whether a predictor of DSPy's runs: it writes a tool's repr if the tool's `format` raises."""
    return isinstance(innermost_module(), dspy.Predict)


class RefusedRun:
    """What a refused tool returns in an agent, which swallows every error of a tool: its text raises.

    So the error leaves the agent when it writes its next request.
    """

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __str__(self) -> str:
        raise self.error

    __repr__ = __str__


@contextmanager
def told_to_developer() -> Generator[list[RefusedRun]]:
    """In an agent, catch an error that only the developer can mend, and hand over what raises it later."""
    refusals: list[RefusedRun] = []
    try:
        yield refusals
    except InvalidOption as error:
        if error.code != "blocked_loop" or not is_run_by_agent():
            raise
        _LOG.error("%s", error)
        refusals.append(RefusedRun(error))


def readable(result: Any, tool: str) -> Any:
    """Return what an agent's model reads of a result: the content of MCP's, the outputs of a program's.

    Raises:
        RuntimeError: if the result of an MCP server, or a ToolResult, says that it failed, or if it is an
            exception.
        InvalidHistory: `unsendable_content`, for what cannot be a result.
    """
    if isinstance(result, RefusedRun):
        return result
    if isinstance(result, NotedValue):
        value = readable(result.value, tool)
        return with_note(value, result.note) if is_run_by_agent() else value
    if isinstance(result, BaseException):
        raise FailedResult(reason_of(result), type_of_error(result))
    if not isinstance(result, ToolResult):
        value, _ = plain_value(program_outputs(result), tool)
        if output_of(value) is None:
            return snapshot_of(value)
        result = ToolResult(call_id="", name=tool, value=value)
    value = snapshot_of(value_for_agent(result))
    if result.is_error:
        raise FailedResult(value, result.error_type)
    return value


def by_name(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes by name also what the given one takes by position alone.

    It gives the function the value of a pydantic `Field` that is a default, where Python gives the `Field`.
    """
    try:
        signature = inspect.signature(func)
    except (ValueError, TypeError):
        return func
    parameters = list(signature.parameters.values())
    positional = [parameter for parameter in parameters if parameter.kind is parameter.POSITIONAL_ONLY]
    fields: dict[str, FieldInfo] = {}
    for parameter in parameters:
        if isinstance(parameter.default, FieldInfo) and not parameter.default.is_required():
            fields[parameter.name] = parameter.default
    if not positional and not fields:
        return func

    def run(**kwargs: Any) -> Any:
        for name, field in fields.items():
            if name not in kwargs:
                kwargs[name] = field.get_default(call_default_factory=True, validated_data=kwargs)
        values = [kwargs.pop(parameter.name, parameter.default) for parameter in positional]
        missing = [n for n, value in enumerate(values) if value is inspect.Parameter.empty]
        if missing:  # the function says itself what it lacks
            del values[missing[0] :]
        return func(*values, **kwargs)

    for n, parameter in enumerate(parameters):
        if parameter.kind is parameter.POSITIONAL_ONLY:
            parameters[n] = parameter.replace(kind=parameter.POSITIONAL_OR_KEYWORD)
    wrapper: Any = functools.update_wrapper(run, func)
    wrapper.__signature__ = signature.replace(parameters=parameters)
    return wrapper


def is_open(func: Callable[..., Any]) -> bool:
    """Return whether a function takes arguments that it does not name, or cannot be read."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except (ValueError, TypeError):
        return True
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
