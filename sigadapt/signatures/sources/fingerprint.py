"""The fingerprint of a function, which shows that its declaration is still current (one snapshot).

`%autoreload` and notebooks change functions in place. While a function's code, docstring, defaults and
annotations are the objects that they were, its declaration is too. That needs types which cannot change, so
only a function that mentions Python's own types has a fingerprint. Every other source is read each time.
"""

import builtins
import re
import typing
from operator import is_
from types import FunctionType, GenericAlias, MethodType, NoneType, UnionType
from typing import Any, Generic, Literal, Optional, TypeVar, Union, get_args, get_origin

from sigadapt.schemas.caches import WeakCache

_V = TypeVar("_V")

_VALUES = frozenset((str, int, float, bool, bytes, NoneType))
_TYPES = _VALUES | {list, dict, set, frozenset, tuple, object}
_FORMS = frozenset((None, Ellipsis, Any, Union, Optional, Literal))
_GENERICS = (GenericAlias, UnionType, type(typing.List[int]), type(Optional[int]), type(Literal[1]))  # noqa: UP006, UP045
_NAMES = re.compile(r"[^\W\d]\w*")
_QUOTED = re.compile(r"[\w\s\[\],|]*")  # names, brackets and bars alone


class FunctionCache(Generic[_V]):
    """A value for each function, until its fingerprint changes or the function is deleted."""

    def __init__(self) -> None:
        self._kept: WeakCache[tuple[tuple[Any, ...], _V]] = WeakCache()

    def get(self, source: object) -> _V | None:
        """Return the value of a function or bound method; None without one or if the function has changed."""
        function = source.__func__ if type(source) is MethodType else source
        known = self._kept.get(function)
        if known is None:
            return None
        now = _fingerprint(function, is_bound=function is not source)
        return known[1] if len(now) == len(known[0]) and all(map(is_, now, known[0])) else None

    def put(self, source: object, value: _V) -> None:
        """Keep a value, which must not refer to the function; nothing for a source without fingerprint."""
        function = source.__func__ if type(source) is MethodType else source
        if type(function) is FunctionType and _is_fixed(function, is_bound=function is not source):
            self._kept.put(function, (_fingerprint(function, is_bound=function is not source), value))


def _fingerprint(function: Any, *, is_bound: bool) -> tuple[Any, ...]:
    keywords: dict[str, Any] = function.__kwdefaults__ or {}
    annotations: dict[str, Any] = function.__annotations__
    return (
        is_bound,
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
    if type(annotation) in _GENERICS:
        origin, arguments = get_origin(annotation), get_args(annotation)
        if origin is Literal:
            return all(type(argument) in _VALUES for argument in arguments)
        return (origin in _TYPES or origin in (Union, UnionType)) and all(map(_cannot_change, arguments))
    return any(annotation is known for known in (*_TYPES, *_FORMS))
