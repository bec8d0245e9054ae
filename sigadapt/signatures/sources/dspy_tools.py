"""`dspy.Tool` as a source of tools.

DSPy derives `args` from the function and loses some of it on the way: constraints and descriptions in
`Annotated`, docstring sections, definitions that types share. So where `args` is what DSPy would derive, the
function is read again, by `callables.py`. Where somebody gave other `args`, those are the declaration, with
DSPy's rule that an argument without a default is required.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast
from weakref import WeakKeyDictionary

import dspy

from sigadapt.signatures.sources import callables, docstrings
from sigadapt.signatures.sources.facts import Facts
from sigadapt.signatures.subschemas import Json

_Args: TypeAlias = dict[str, dict[str, Any]]


class _Default(NamedTuple):
    args: _Args
    desc: str


_BY_DSPY: WeakKeyDictionary[Callable[..., Any], _Default] = WeakKeyDictionary()


def reads(source: object) -> TypeGuard[dspy.Tool]:
    """Whether the source is a `dspy.Tool`."""
    return isinstance(source, dspy.Tool)


def read(source: dspy.Tool, parameters: Json | None) -> list[Facts]:
    """Say what a `dspy.Tool` is as a tool. Neither it nor its function is called.

    Args:
        source: the tool.
        parameters: a schema to use in place of its own.

    Raises:
        InvalidToolDecl: `underivable`, with all problems of the function's signature.

    Example:
        >>> def book(room: int) -> bool:
        ...     '''Book a room.'''
        >>> read(dspy.Tool(book, name="reserve"), None)[0].name
        'reserve'
    """
    func = cast("Callable[..., Any]", source.func)
    args = cast("_Args", source.args or {})
    if parameters is not None:
        return [Facts(source.name, source.desc, parameters, func=func)]
    default, described = _by_dspy(func), source.arg_desc or {}
    if not is_derived(source):
        return [Facts(source.name, source.desc, _as_written(args), func=func)]
    [facts] = callables.read(func, None)
    for name in described.keys() & facts.parameters["properties"].keys():
        facts.parameters["properties"][name]["description"] = described[name]
    description = source.desc
    if description == default.desc:  # the raw docstring, sections and all
        description = docstrings.parse(inspect.cleandoc(default.desc)).description
    return [facts._replace(name=source.name, description=description)]


def is_derived(source: dspy.Tool) -> bool:
    """Whether the tool's arguments are those that DSPy derives from its function, descriptions aside."""
    default = _by_dspy(cast("Callable[..., Any]", source.func))
    return (source.args or {}) == _described(default.args, source.arg_desc or {})


def _as_written(args: _Args) -> Json:
    required = [name for name, schema in args.items() if "default" not in schema]
    return {"type": "object", "properties": args, "required": required}


def _described(args: _Args, described: dict[str, str]) -> _Args:
    return {
        name: {**schema, "description": described[name]} if name in described else schema
        for name, schema in args.items()
    }


def _by_dspy(func: Callable[..., Any]) -> _Default:
    try:
        known = _BY_DSPY.get(func)
    except TypeError:  # an object that cannot be hashed or weakly referenced
        return _derived_by_dspy(func)
    if known is None:
        known = _BY_DSPY[func] = _derived_by_dspy(func)
    return known


def _derived_by_dspy(func: Callable[..., Any]) -> _Default:
    tool = dspy.Tool(func)
    return _Default(cast("_Args", tool.args), tool.desc or "")
