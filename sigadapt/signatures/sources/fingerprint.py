"""The fingerprint of a source, which shows that its declaration is still current (one snapshot).

While a function's code, docstring, defaults and annotations are the objects that they were, its declaration
is too, if no type in it can change: so only a function that mentions Python's own types has a fingerprint. An
MCP tool has its data for one. Every other source is read each time.
"""

import builtins
import re
from operator import is_
from types import FunctionType, MethodType, NoneType, UnionType
from typing import Any, Generic, Literal, Optional, TypeVar, Union, get_args, get_origin

from sigadapt.schemas.caches import WeakCache
from sigadapt.signatures.sources import mcp

_V = TypeVar("_V")

_VALUES = frozenset((str, int, float, bool, bytes, NoneType))
_TYPES = _VALUES | {list, dict, set, frozenset, tuple, object}
_FORMS = frozenset((None, Ellipsis, Any, Union, Optional, Literal))
_NAMES = re.compile(r"[^\W\d]\w*")
_QUOTED = re.compile(r"[\w\s\[\],|]*")  # names, brackets and bars alone


class DeclaredCache(Generic[_V]):
    """A value for each function or MCP tool, until its fingerprint changes or it is deleted."""

    def __init__(self) -> None:
        self._entries: WeakCache[tuple[Any, _V]] = WeakCache()

    def get(self, source: object) -> _V | None:
        """Return the value of a source; None without one or if the source has changed."""
        now = _fingerprint(source)
        entry = self._entries.get(source.__func__ if type(source) is MethodType else source)
        if entry is None:
            return None
        before, value = entry
        if now is None or type(before) is bytes:
            return value if before == now else None
        is_same = len(before) == len(now) and all(map(is_, before, now))  # 1 is not True
        return value if is_same else None

    def put(self, source: object, value: _V) -> None:
        """Keep a value, which must not refer to the source. Do nothing for a source without fingerprint."""
        function = source.__func__ if type(source) is MethodType else source
        if type(function) is not FunctionType or _is_fixed(function, is_bound=function is not source):
            fingerprint = _fingerprint(source)
            if fingerprint is not None:
                self._entries.put(function, (fingerprint, value))

    def __len__(self) -> int:
        return len(self._entries)


def _fingerprint(source: object) -> tuple[Any, ...] | bytes | None:
    function: Any = source.__func__ if type(source) is MethodType else source
    if type(function) is not FunctionType:
        return mcp.data_of(source)
    keywords: dict[str, Any] = function.__kwdefaults__ or {}
    annotations: dict[str, Any] = function.__annotations__
    return (
        function is source,
        function.__code__,
        function.__name__,
        function.__doc__,
        function.__defaults__,
        not function.__dict__,  # such as `__signature__`, which `functools.wraps` and authors set
        *keywords,
        *keywords.values(),
        *annotations,
        *annotations.values(),
    )


def _is_fixed(function: FunctionType, *, is_bound: bool) -> bool:
    if function.__dict__ or (is_bound and function.__doc__ is None):  # a method may inherit its docstring
        return False
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    if not all(type(default) in _VALUES for default in defaults):
        return False
    for annotation in function.__annotations__.values():
        if type(annotation) is not str:
            meanings: list[Any] = [annotation]
        elif _QUOTED.fullmatch(annotation):  # `from __future__ import annotations` quotes all of them
            names = _NAMES.findall(annotation)
            meanings = [function.__globals__.get(name, getattr(builtins, name, ...)) for name in names]
        else:
            return False
        if not all(map(_cannot_change, meanings)):
            return False
    return True


def _cannot_change(annotation: Any) -> bool:
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is Literal:
        return all(type(argument) in _VALUES for argument in arguments)
    if origin is not None:
        return (origin in _TYPES or origin in (Union, UnionType)) and all(map(_cannot_change, arguments))
    return any(annotation is plain for plain in (*_TYPES, *_FORMS))
