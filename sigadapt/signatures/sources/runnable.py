"""Declarations as DSPy's agents take them: `dspy.ReActV2(tools=[decl])` makes a `dspy.Tool` of each object.

DSPy reads a function's `__name__`, its `__doc__` and the signature of its `__call__`. A declaration has all
three, and so stands for its function. Nothing is run before the agent runs the tool (nothing is executed).
"""

import asyncio
import functools
import inspect
import keyword
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, cast

from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json, compact, is_object
from sigadapt.signatures.sources import callables
from sigadapt.signatures.sources.raw_decl import RawDecl, Uncallable
from sigadapt.signatures.tool_results.content import json_of, text_of
from sigadapt.signatures.tool_results.dspy_media import MEDIA
from sigadapt.signatures.tool_results.failures import plain_failures
from sigadapt.signatures.tool_results.tool_output import for_agent, output_of, program_outputs

_CONFIRMATION = "sigadapt.signatures.confirmation"
"""The file of policies, above this one: they are of declarations. Only who runs a tool needs it."""

ASKS_FIRST = "__sigadapt_asks_first__"
"""The attribute of a function that asks a person before it runs a tool, which holds its `Asking`."""


class Asking(NamedTuple):
    """How a function asks first. A decorator copies the attribute of it, and is not that `function`."""

    function: Callable[..., Any]
    policy: Any  # the `requires_confirmation` that it asks by
    behind: Callable[..., Any]  # the function that it runs after a yes
    again: Callable[[Any], Callable[..., Any]]  # makes the function that asks by a declaration's own policy


def asking_of(function: Any) -> Asking | None:
    """Return how a function asks first; None for one that does not."""
    asking = getattr(function, ASKS_FIRST, None)
    return asking if isinstance(asking, Asking) and asking.function is function else None


def is_async(function: Any) -> bool:
    """Return whether what a tool runs is an async function, also behind a question or in a partial."""
    asking = asking_of(function)
    behind: Any = asking.behind if asking else getattr(function, "func", None) or function
    while isinstance(behind, functools.partial):
        behind = behind.func
    return any(map(inspect.iscoroutinefunction, (behind, getattr(behind, "__call__", None))))  # noqa: B004


def nobody_to_ask(tool: str) -> InvalidToolDecl:
    """Make the error of a tool that would run without the yes that it requires."""
    return InvalidToolDecl(
        "it requires confirmation, and this would run it without asking anybody",
        code="nobody_to_ask",
        tool=tool,
        fix="Give the agent `decls.confirmed_by(ask)`, where `ask(name, args, hint)` returns True to run it, "
        "or its adapter confirm='raise'; in a loop by hand, use `calls.run(decls, decisions)`.",
    )


_OTHERS = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD, annotation=Any)


class Runnable(Uncallable):
    """What a declaration shows of itself in the place of a function.

    `__call__` is a property, because DSPy reads the arguments from it.
    """

    __slots__ = ()

    @property
    def raw(self) -> RawDecl:
        """What the declaration says, with its function."""
        raw = RawDecl(**{name: getattr(self, name) for name in RawDecl._fields if name != "derived"})
        asking = None if raw.requires_confirmation is False else asking_of(raw.func)
        if asking is None or asking.policy is raw.requires_confirmation:
            return raw
        return raw._replace(func=asking.again(self))  # a policy that was set after `confirmed_by`

    @property
    def guarded(self) -> RawDecl:
        """The same, with a function that refuses a call for which somebody would have to be asked."""
        raw = self.raw
        if raw.requires_confirmation is False or asking_of(raw.function) is not None:
            return raw
        return raw._replace(func=import_module(_CONFIRMATION).refusing(self))

    @property
    def __name__(self) -> str:
        return cast("Any", self).name

    @property
    def __call__(self) -> Callable[..., Any]:
        """A function that runs the tool."""
        return function_of(self.guarded)


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


def function_of(raw: RawDecl) -> Callable[..., Any]:
    """Return a function that runs a tool and returns what an MCP result says, with the tool's arguments."""
    func = by_name(raw.function)

    async def later(result: Any) -> Any:
        with plain_failures():
            return said(await result)

    def run(**kwargs: Any) -> Any:
        with plain_failures():
            result = func(**kwargs)
            return later(result) if asyncio.iscoroutine(result) else said(result)

    types = types_to_bind(raw)
    schema: Json = raw.parameters
    args: Json = schema.get("properties") or {}
    parameters = [
        _argument(name, part, types.get(name))
        for name, part in args.items()
        if name.isidentifier() and not keyword.iskeyword(name)
    ]
    if not args or len(parameters) < len(args) or is_open(func):
        parameters.append(_OTHERS)
    function: Any = run
    function.__signature__ = inspect.Signature(parameters)
    function.__annotations__ = {each.name: each.annotation for each in parameters}
    function.__doc__ = ""
    return run


def types_to_bind(raw: RawDecl) -> dict[str, Any]:
    """Return the types that DSPy makes of JSON: none for a function that asks first, and shows that JSON."""
    return {} if asking_of(raw.function) else callables.types_of(by_name(raw.function)).named


def _argument(name: str, part: Any, kind: Any) -> inspect.Parameter:
    """Return a parameter that DSPy describes as the schema says, and whose values are of the given type."""
    schema = deepcopy(part) if is_object(part) and "$ref" not in compact(part) else {}

    class Argument:
        @classmethod
        def __get_pydantic_core_schema__(cls, _: Any, handler: Any) -> Any:
            # In a schema of its own: pydantic would write the method below into that of the type, for good.
            return core_schema.chain_schema([handler.generate_schema(Any if kind is None else kind)])

        @classmethod
        def __get_pydantic_json_schema__(cls, *_: Any) -> Any:
            return deepcopy(schema)

    default = part.get("default", inspect.Parameter.empty) if is_object(part) else inspect.Parameter.empty
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Argument)


def said(result: Any) -> Any:
    """Return what a tool's result says: the content of one of MCP or LangChain, a program's outputs."""
    output = output_of(result)
    if output is None:
        return program_outputs(result)
    if output.failed:
        raise RuntimeError(text_of(output.parts))
    has_media = any(part["type"] in MEDIA for part in output.parts)
    return for_agent(output.parts) if has_media else json_of(output.parts)


def by_name(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that takes by name also what the given one takes by position alone.

    It gives the function the value of a pydantic `Field` that is a default, where Python gives the `Field`.
    """
    try:
        signature = inspect.signature(func)
    except (ValueError, TypeError):
        return func
    every = list(signature.parameters.values())
    first = [each for each in every if each.kind is each.POSITIONAL_ONLY]
    fields = {each.name: each.default for each in every if isinstance(each.default, FieldInfo)}
    fields = {name: field for name, field in fields.items() if not field.is_required()}
    if not first and not fields:
        return func

    def run(**kwargs: Any) -> Any:
        for name, field in fields.items():
            if name not in kwargs:
                kwargs[name] = field.get_default(call_default_factory=True, validated_data=kwargs)
        values = [kwargs.pop(each.name, each.default) for each in first]
        missing = [n for n, value in enumerate(values) if value is inspect.Parameter.empty]
        return func(*values[: missing[0] if missing else None], **kwargs)

    wrapper: Any = functools.update_wrapper(run, func)
    wrapper.__signature__ = signature.replace(
        parameters=[
            each.replace(kind=each.POSITIONAL_OR_KEYWORD) if each.kind is each.POSITIONAL_ONLY else each
            for each in every
        ]
    )
    return wrapper


def is_open(func: Callable[..., Any]) -> bool:
    """Return whether a function takes arguments that it does not name, or cannot be read."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except (ValueError, TypeError):
        return True
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
