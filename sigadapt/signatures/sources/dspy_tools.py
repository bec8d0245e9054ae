"""`dspy.Tool` as a tool.

DSPy derives `args` from the function and loses details: constraints and descriptions in `Annotated`,
docstring sections, definitions that types share. So if `args` are those that DSPy derives, `callables.py`
describes the function instead. If the author gave other `args`, those are used; as in DSPy, an argument
without a default is then required.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast

import dspy

from sigadapt.schemas.json_values import Json
from sigadapt.signatures.sources import callables, docstrings
from sigadapt.signatures.sources.raw_decl import RawDecl
from sigadapt.signatures.sources.snapshots import DERIVED, of_callable

_Args: TypeAlias = dict[str, dict[str, Any]]


class _Default(NamedTuple):
    args: _Args
    desc: str


def accepts(source: object) -> TypeGuard[dspy.Tool]:
    """Return whether the source is a `dspy.Tool`."""
    return isinstance(source, dspy.Tool)


def describe(source: dspy.Tool, parameters: Json | None) -> list[RawDecl]:
    """Describe a `dspy.Tool`. Neither it nor its function is called (rule 1).

    Args:
        source: the tool.
        parameters: a schema to use in place of the tool's own.

    Raises:
        InvalidToolDecl: `underivable`, with all problems of the function's signature.

    Example:
        >>> def book(room: int) -> bool:
        ...     '''Book a room.'''
        >>> describe(dspy.Tool(book, name="reserve"), None)[0].name
        'reserve'
    """
    func = cast("Callable[..., Any]", source.func)
    args = cast("_Args", source.args or {})
    if parameters is not None:
        return [RawDecl(source.name, source.desc, parameters, func=func)]
    default, described = _by_dspy(func), source.arg_desc or {}
    if not _is_derived(source):
        return [RawDecl(source.name, source.desc, _as_written(args), func=func)]
    [raw] = callables.describe(func, None)
    for name in described.keys() & raw.parameters["properties"].keys():
        raw.parameters["properties"][name]["description"] = described[name]
    description = source.desc
    if description == default.desc:  # the raw docstring, sections and all
        description = docstrings.parse(inspect.cleandoc(default.desc)).description
    return [raw._replace(name=source.name, description=description)]


def _is_derived(source: dspy.Tool) -> bool:
    """Return whether the tool's arguments, apart from descriptions, are those that DSPy derives."""
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
    return DERIVED.of(func, "by DSPy", of_callable(func), lambda: _derived_by_dspy(func))


def _derived_by_dspy(func: Callable[..., Any]) -> _Default:
    tool = dspy.Tool(func)
    return _Default(cast("_Args", tool.args), tool.desc or "")
