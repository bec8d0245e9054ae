"""All kinds of sources of tools, one file each, and the table that finds the file for a source.

Each file has two functions. `accepts(source)` is cheap and imports nothing. `describe(source, parameters)`
returns the arguments of one ToolDecl for each tool. No source is called (nothing is executed).
"""

from collections.abc import Callable
from types import FunctionType
from typing import Any, Protocol, TypeGuard, get_origin

import dspy

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, cut, is_mapping, type_of
from sigadapt.signatures.sources import callables, dicts, dspy_tools, langchain, mcp, models, programs
from sigadapt.signatures.sources.dicts import Fields


class _SourceFile(Protocol):
    def accepts(self, source: object, /) -> bool: ...

    def describe(self, source: Any, parameters: Json | None) -> list[Fields]: ...


# `callables` comes last, because the tools of some libraries are callable.
_TABLE: tuple[_SourceFile, ...] = (dicts, dspy_tools, models, programs, mcp, langchain, callables)

_FIX = (
    "Give a function, a bound method, a pydantic model class, a dspy.Tool, Signature or Module, an MCP or "
    "LangChain tool, a dict in a provider's shape, a server tool such as WebSearch(), or a Toolset."
)


def _file_for(source: object) -> _SourceFile | None:
    if type(source) is FunctionType:  # the most common source, which no other file reads
        return callables
    return next((file for file in _TABLE if file.accepts(source)), None)


def is_source(value: object) -> bool:
    """Return whether a file of this folder accepts the value."""
    return _file_for(value) is not None


def is_function(value: object) -> TypeGuard[Callable[..., Any]]:
    """Return whether a value is a callable, but not a library's tool object."""
    return callable(value) and _file_for(value) is callables


def describe_source(source: object, parameters: Json | None = None) -> list[Fields] | None:
    """Describe a source as tools."""
    file = _file_for(source)
    return None if file is None else file.describe(source, parameters)


def unknown_source(value: object) -> InvalidToolDecl:
    """Return the error for a value that no file of this folder accepts."""
    fix = _FIX
    if is_mapping(value):
        keys = ", ".join(cut(repr(key)) for key in list(value)[:8])
        reason = f"expected a tool, got {type_of(value)} with the keys {keys or '(none)'}"
    elif isinstance(value, type) and get_origin(value) is None:  # Python 3.10 takes list[int] for a class
        reason = f"the class {value.__qualname__} is not a tool"
        fix = "Give an instance of it." if issubclass(value, dspy.Module) else _FIX
    else:
        reason = f"{cut(repr(value))} ({type(value).__name__}) is not a tool"
        fix = "Give its tools: Toolset(name, session)." if hasattr(value, "list_tools") else _FIX
    return InvalidToolDecl(reason, code="unknown_source", fix=fix)
