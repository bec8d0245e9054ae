"""`dspy.Tool` as a source of tools.

DSPy derives `args` from the function and loses some of it on the way: constraints and descriptions in
`Annotated`, docstring sections, definitions that types share. So where `args` is what DSPy would derive, the
function is read again, by `callables.py`. Where somebody gave other `args`, those are the declaration, with
DSPy's rule that an argument without a default is required.
"""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeGuard, cast
from weakref import WeakKeyDictionary

import dspy

from sigadapt.signatures.sources import callables
from sigadapt.signatures.sources.facts import Facts
from sigadapt.signatures.subschemas import Json

_Args: TypeAlias = dict[str, dict[str, Any]]

_BY_DSPY: WeakKeyDictionary[Callable[..., Any], _Args] = WeakKeyDictionary()


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
    if parameters is not None or not _is_derived(func, args, source.arg_desc):
        schema = parameters if parameters is not None else _as_written(args)
        return [Facts(source.name, source.desc, schema, func=func)]
    [facts] = callables.read(func, None)
    for name, description in (source.arg_desc or {}).items():
        if name in facts.parameters["properties"]:
            facts.parameters["properties"][name]["description"] = description
    description = facts.description if source.desc == _desc_by_dspy(func) else source.desc
    return [facts._replace(name=source.name, description=description)]


def _as_written(args: _Args) -> Json:
    required = [name for name, schema in args.items() if "default" not in schema]
    return {"type": "object", "properties": args, "required": required}


def _is_derived(func: Callable[..., Any], args: _Args, descriptions: dict[str, str] | None) -> bool:
    described = descriptions or {}
    derived = {
        name: {**schema, "description": described[name]} if name in described else schema
        for name, schema in _args_by_dspy(func).items()
    }
    return args == derived


def _args_by_dspy(func: Callable[..., Any]) -> _Args:
    try:
        known = _BY_DSPY.get(func)
    except TypeError:  # an object that cannot be hashed or weakly referenced
        return cast("_Args", dspy.Tool(func).args)
    if known is None:
        known = _BY_DSPY[func] = cast("_Args", dspy.Tool(func).args)
    return known


def _desc_by_dspy(func: Callable[..., Any]) -> str:
    return getattr(func, "__doc__", None) or getattr(func.__call__, "__doc__", None) or ""
