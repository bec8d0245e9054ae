"""Every source of tools, and the one table that says which file reads what.

A source's file has two functions: `reads(source)`, a cheap look that imports nothing, and `read(source,
parameters)`, which says what the source is as one or more tools. Nothing is ever called or run (rule 1).
"""

from collections.abc import Mapping
from types import FunctionType
from typing import Any, Protocol, cast

import dspy

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.arguments import shown
from sigadapt.signatures.sources import (
    callables,
    dspy_tools,
    langchain_tools,
    mcp_tools,
    models,
    programs,
    wire_shapes,
)
from sigadapt.signatures.sources.facts import Facts
from sigadapt.signatures.subschemas import Json


class _Reader(Protocol):
    def reads(self, source: object, /) -> bool: ...

    def read(self, source: Any, parameters: Json | None) -> list[Facts]: ...


# In order: some tools of the libraries can be called, so `callables` comes last.
_TABLE: tuple[_Reader, ...] = (
    wire_shapes,
    dspy_tools,
    models,
    programs,
    mcp_tools,
    langchain_tools,
    callables,
)

_FIX = (
    "Give a function, a bound method, a pydantic model class, a dspy.Tool, Signature or Module, an MCP or "
    "LangChain tool, or a dict in a provider's shape."
)


def _reader_of(source: object) -> _Reader | None:
    if type(source) is FunctionType:  # the commonest source, which no other file reads
        return callables
    return next((reader for reader in _TABLE if reader.reads(source)), None)


def is_source(value: object) -> bool:
    """Whether some file here reads the value.

    Example:
        >>> is_source(len), is_source({"name": "f"}), is_source("f")
        (True, True, False)
    """
    return _reader_of(value) is not None


def is_function(value: object) -> bool:
    """Whether a value is a callable that is no tool of some library.

    Example:
        >>> is_function(len), is_function(dspy.Tool(len, name="len", args={}))
        (True, False)
    """
    return _reader_of(value) is callables


def read_source(source: object, parameters: Json | None = None) -> list[Facts] | None:
    """Say what a source is as tools; None where no file here reads it.

    Args:
        source: anything.
        parameters: a schema to use in place of the source's own.

    Raises:
        InvalidToolDecl: it is a source, and not one that can be declared.
    """
    reader = _reader_of(source)
    return None if reader is None else reader.read(source, parameters)


def unknown_source(value: object) -> InvalidToolDecl:
    """The error for a value that no file here reads, saying what was seen."""
    if isinstance(value, Mapping):
        known = cast("Mapping[Any, Any]", value)
        keys = ", ".join(shown(repr(key)) for key in list(known)[:8])
        return _error(f"a {type(known).__name__} with the keys {keys or '(none)'} declares no tool")
    if issubclass(type(value), type):
        kind = cast("type", value)
        program = issubclass(kind, dspy.Module)
        reason = f"the class {kind.__qualname__} is no tool"
        return _error(reason, "Give an instance of it." if program else _FIX)
    return _error(f"{shown(repr(value))} ({type(value).__name__}) is no tool")


def _error(reason: str, fix: str = _FIX) -> InvalidToolDecl:
    return InvalidToolDecl(reason, code="unknown_source", fix=fix)
