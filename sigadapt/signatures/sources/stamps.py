"""Stamps: a cheap and exact way to find out that a source says what it said before (one snapshot).

A snapshot (`snapshots.py`) follows a source into everything it mentions. Most functions mention little: their
types are Python's own, and their defaults are plain values. Of such a function it is enough that its parts
are the very same objects. An MCP tool is plain data, so it is enough that its bytes are the same.

A source that has no stamp is read each time. A stamp holds only plain values and Python's own types, so that
it keeps no object alive.
"""

import builtins
import marshal
import re
import typing
from collections.abc import Iterable, Mapping
from operator import is_
from types import FunctionType, GenericAlias, MethodType, UnionType
from typing import Any, Literal, NamedTuple, Optional, TypeAlias, Union, get_args, get_origin

import pydantic

from sigadapt.signatures.sources import mcp
from sigadapt.signatures.sources.snapshots import FIXED, VALUES

_NAMES = re.compile(r"[^\W\d]\w*")
_QUOTED = re.compile(r"[\w\s\[\],|]*")  # a quoted annotation of names, brackets and bars alone
_MISSING: Any = object()
_VERSION = 2  # of marshal's format: the last one in which equal values always have equal bytes


class _Parts(NamedTuple):
    """The parts of a function that its declaration follows from.

    Args:
        bound: whether the function is given as a bound method.
        name: its name.
        doc: its docstring.
        code: its code.
        defaults: its defaults.
        keywords: the names of its keyword-only defaults, and these defaults.
        annotations: the names that are annotated, and their annotations.
        mentioned: the names in quoted annotations, and what they stand for.
    """

    bound: bool
    name: str
    doc: str | None
    code: Any
    defaults: tuple[Any, ...] | None
    keywords: tuple[tuple[str, ...], tuple[Any, ...]]
    annotations: tuple[tuple[str, ...], tuple[Any, ...]]
    mentioned: tuple[tuple[str, Any], ...]


Stamp: TypeAlias = _Parts | bytes


def owner_of(source: object) -> object:
    """Return the object that a source's stamp is kept for: of a bound method, its function."""
    return source.__func__ if type(source) is MethodType else source


def stamp_of(source: object) -> Stamp | None:
    """Return a source's stamp; None for a source that has to be read each time."""
    if isinstance(source, (FunctionType, MethodType)):
        function: Any = owner_of(source)
        return _parts(function, type(source) is MethodType) if type(function) is FunctionType else None
    return _bytes(source) if mcp.is_the_sdks(source) else None


def is_unchanged(source: Any, stamp: Stamp) -> bool:
    """Return whether a source still has a stamp that it had before."""
    if isinstance(stamp, bytes):
        return _bytes(source) == stamp
    bound, name, doc, code, defaults, keywords, annotations, mentioned = stamp
    if bound is not (type(source) is MethodType):
        return False
    function = source.__func__ if bound else source
    return (
        function.__code__ is code
        and function.__doc__ is doc
        and function.__name__ is name
        and function.__defaults__ is defaults
        and not function.__dict__
        and _holds(function.__annotations__, *annotations)
        and _holds(function.__kwdefaults__ or {}, *keywords)
        and (not mentioned or _mentions(function.__globals__, mentioned))
    )


def _holds(held: dict[str, Any], names: tuple[str, ...], values: tuple[Any, ...]) -> bool:
    return tuple(held) == names and all(map(is_, held.values(), values))


def _mentions(held: Mapping[str, Any], mentioned: tuple[tuple[str, Any], ...]) -> bool:
    return all(_meant(held, name) is meaning for name, meaning in mentioned)


def _meant(held: Mapping[str, Any], name: str) -> Any:
    return held.get(name, getattr(builtins, name, _MISSING))


def _parts(function: FunctionType, bound: bool) -> _Parts | None:  # noqa: FBT001
    if function.__dict__ or (bound and function.__doc__ is None):  # an unsaid docstring may be inherited
        return None
    annotations, keywords = function.__annotations__, function.__kwdefaults__ or {}
    quoted = [each for each in annotations.values() if type(each) is str]
    names = dict.fromkeys(name for each in quoted for name in _NAMES.findall(each))
    mentioned = tuple([(name, _meant(function.__globals__, name)) for name in names])
    if (
        not _are_values((*(function.__defaults__ or ()), *keywords.values()))
        or not all(map(_QUOTED.fullmatch, quoted))
        or not all(_is_fixed(meaning) for _, meaning in mentioned)
        or not all(type(each) is str or _is_fixed(each) for each in annotations.values())
    ):
        return None
    return _Parts(
        bound,
        function.__name__,
        function.__doc__,
        function.__code__,
        function.__defaults__,
        (tuple(keywords), tuple(keywords.values())),
        (tuple(annotations), tuple(annotations.values())),
        mentioned,
    )


def _are_values(values: Iterable[Any]) -> bool:
    return all(type(value) in VALUES for value in values)


_OLD: tuple[Any, ...] = (typing.List[int], Optional[int], Literal[1])  # noqa: UP006, UP045
_GENERIC = (GenericAlias, UnionType, *map(type, _OLD))
_ORIGINS = frozenset((list, dict, set, frozenset, tuple, Union, UnionType))
_MARKS = frozenset((None, Ellipsis, Any, Union, Optional, Literal))


def _is_fixed(annotation: Any) -> bool:
    """Return whether an annotation can never mean anything else, because nothing in it can be changed."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation in FIXED or annotation is Any
    if type(annotation) in _GENERIC:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Literal:
            return _are_values(arguments)
        return origin in _ORIGINS and all(map(_is_fixed, arguments))
    return any(annotation is mark for mark in _MARKS)


def _bytes(tool: Any) -> bytes | None:
    """Return an MCP tool's data as bytes; None if it holds anything that is not plain data."""
    held = tool.__dict__
    try:
        return marshal.dumps((held, tool.__pydantic_extra__), _VERSION)
    except ValueError:
        pass
    plain = [_data(value) for value in held.values()]
    try:
        return marshal.dumps((list(held), plain, tool.__pydantic_extra__), _VERSION)
    except ValueError:
        return None


def _data(value: Any) -> Any:
    if isinstance(value, pydantic.BaseModel):
        return type(value).__name__, value.__dict__, value.__pydantic_extra__
    return value
