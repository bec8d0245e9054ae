"""The fingerprint of a source, which shows that its declaration is still current (one snapshot).

A fingerprint is a list of objects, compared by identity, and data, compared by value. Of a function, the
objects are its code, names, docstring, defaults and annotations, with the classes that these name. A pydantic
model also shows when it was compiled anew (`model_rebuild`); any other class is taken to stay as it is. A
`dspy.Tool` adds its own fields; of an MCP tool and of a dict, the data is the fingerprint. A source without a
fingerprint is read each time.
"""

import functools
import pickle
import weakref
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from operator import is_
from types import CodeType, FunctionType, GenericAlias, MethodType, NoneType
from typing import Annotated, Any, ForwardRef, Generic, Literal, TypeAlias, TypeVar, get_args, get_origin
from uuid import UUID

import dspy
from pydantic.fields import FieldInfo

from sigadapt.schemas.caches import DECLARATIONS_BUDGET, BoundedCache, WeakCache
from sigadapt.signatures.sources import mcp

_V = TypeVar("_V")
Fingerprint: TypeAlias = tuple[tuple[Any, ...], bytes]
"""Objects to compare by identity, and data to compare by value."""

_FUNCTIONS: tuple[Any, ...] = (FunctionType, MethodType, functools.partial)
_UNCHANGEABLE = (
    *(str, int, float, bool, bytes, NoneType, date, datetime, time, timedelta, Decimal, UUID),
    *(Enum, FieldInfo),
)
"""The types of defaults that are compared by identity."""
_PARTIAL_ATTRIBUTES = frozenset(("__name__", "__qualname__", "__module__", "__doc__"))
_ATTRIBUTES_READ = frozenset(("__signature__", "__sigadapt_asks_first__"))
"""What a declaration may read of a function's `__dict__` and no fingerprint shows."""

_WEIGHT = 4
"""Of a byte of data: a value holds its texts, and what is compiled of them when calls are checked."""
_MOST_BYTES = DECLARATIONS_BUDGET // _WEIGHT


class DeclaredCache(Generic[_V]):
    """A value for each source, until its fingerprint changes or it is deleted.

    The value of a dict is found by its data, and deleted when newer data exceeds a budget of bytes.
    """

    def __init__(self) -> None:
        self._entries: WeakCache[tuple[Fingerprint, _V]] = WeakCache()
        self._by_data: BoundedCache[bytes, _V] = BoundedCache(DECLARATIONS_BUDGET)

    def get(self, source: object) -> _V | None:
        """Return the value of a source; None without one or if the source has changed."""
        fingerprint = fingerprint_of(source)
        if fingerprint is None:
            return None
        objects, data = fingerprint
        if type(source) is dict:
            return self._by_data.get(data)
        entry = self._entries.get(_owner(source))
        if entry is None:
            return None
        (earlier_objects, earlier_data), value = entry
        is_same = data == earlier_data and len(objects) == len(earlier_objects)
        return value if is_same and all(map(is_, objects, earlier_objects)) else None  # because 1 == True

    def put(self, source: object, value: _V, fingerprint: Fingerprint | None) -> None:
        """Keep a value, which must not refer to the source; `fingerprint` is from before it was made."""
        if fingerprint is None:
            return
        if type(source) is dict:
            self._by_data.put(fingerprint[1], value, weight=_WEIGHT * len(fingerprint[1]))
        else:
            self._entries.put(_owner(source), (fingerprint, value))

    def of(self, source: object, make: Callable[[], _V]) -> _V:
        """Return the value of a source; make it if there is none."""
        value = self.get(source)
        if value is None:
            fingerprint = fingerprint_of(source)
            value = make()
            self.put(source, value, fingerprint)
        return value


def _owner(source: Any) -> Any:
    """Return the object with which an entry is deleted: of a bound method, its function."""
    return source.__func__ if type(source) is MethodType else source


def fingerprint_of(source: Any) -> Fingerprint | None:
    """Return the fingerprint of a source, to take before a value is made of it; None without one."""
    with suppress(TypeError, KeyError, RecursionError, OverflowError):  # of what may change unseen
        kind: object = source.__class__
        objects: list[Any] = []
        data: list[Any] = []
        if kind in _FUNCTIONS:
            _add_function(source, objects, data)
            return tuple(objects), _data_of(data) if data else b""
        if kind is dict:
            return (), _data_of(source)
        if kind is dspy.Tool:
            # By a weak reference, because an agent's function may hold the agent, which holds the tool.
            objects += (weakref.ref(source.func), source.name, source.desc, source.has_kwargs)
            _add_function(source.func, objects, data)
            return tuple(objects), _data_of([source.args, source.arg_desc, data])
        fields = mcp.fields_of(source)
        return None if fields is None else ((), _data_of(fields))
    return None


def _add_function(source: Any, objects: list[Any], data: list[Any]) -> None:
    """Add what a function's declaration is made of to `objects`, and defaults that can change to `data`.

    Raises:
        TypeError: for anything but a function, a bound method or a partial, and if the declaration reads what
            no fingerprint shows.
        KeyError: for a model whose types are not all defined yet.
    """
    if isinstance(source, functools.partial):
        attributes = vars(source)
        if attributes.keys() - _PARTIAL_ATTRIBUTES:
            raise TypeError
        # The values that it sets are no part of a declaration, and may be secrets.
        objects += (len(source.args), *source.keywords, *attributes, *attributes.values())
        _add_function(source.func, objects, data)
        return
    function = _owner(source)
    is_bound = function is not source
    if type(function) is not FunctionType or not _ATTRIBUTES_READ.isdisjoint(function.__dict__):
        raise TypeError
    if is_bound and function.__doc__ is None:  # it may inherit one
        raise TypeError
    keyword_defaults: dict[str, Any] = function.__kwdefaults__ or {}
    objects += (is_bound, function.__code__, function.__name__, function.__qualname__, function.__doc__)
    objects += (len(function.__defaults__ or ()), *keyword_defaults, *function.__annotations__)
    for default in (*(function.__defaults__ or ()), *keyword_defaults.values()):
        if isinstance(default, _UNCHANGEABLE):
            objects.append(default)
        else:
            objects.append(type(default))
            data.append(default)
    for annotation in function.__annotations__.values():
        _add_annotation(annotation, function.__globals__, objects)
    if "__wrapped__" in function.__dict__:  # whose signature counts
        _add_function(function.__dict__["__wrapped__"], objects, data)


def _add_annotation(annotation: Any, names: dict[str, Any], objects: list[Any]) -> None:
    """Add the objects that an annotation is made of, also of one in quotes with the names of its module."""
    if isinstance(annotation, type) and not isinstance(annotation, GenericAlias):
        # By weak references, because the tool may be a method of the class, or of one that it holds.
        objects.append(weakref.ref(annotation))
        if "__pydantic_core_schema__" in vars(annotation):
            objects.append(weakref.ref(vars(annotation)["__signature__"]))  # replaced with the schema
        return
    if isinstance(annotation, ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        objects.append(annotation)
        for name in _names_in(annotation):
            _add_annotation(names.get(name), names, objects)
        return
    origin: Any = get_origin(annotation)
    arguments: tuple[Any, ...] = get_args(annotation)
    if origin is Literal:
        objects += (origin, *arguments)
    elif origin is Annotated:
        objects += (origin, *arguments[1:])
        _add_annotation(arguments[0], names, objects)
    elif origin is not None:
        objects += (origin, len(arguments))
        for argument in arguments:
            _add_annotation(argument, names, objects)
    else:
        objects.append(annotation)


@functools.lru_cache(maxsize=1024)
def _names_in(text: str) -> tuple[str, ...]:
    """Return the names in an annotation that is written in quotes, and in quotes inside of it."""
    try:
        code: CodeType = compile(text.strip(), "<annotation>", "eval")
    except SyntaxError:
        return ()
    inner_texts = [constant for constant in code.co_consts if isinstance(constant, str)]
    return (*code.co_names, *(name for inner in inner_texts for name in _names_in(inner)))


class _SmallFile:
    """Takes as many bytes as the cache keeps of one value."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self._size = 0

    def write(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > _MOST_BYTES:
            raise OverflowError
        self.chunks.append(chunk)


class _DataPickler(pickle.Pickler):
    """Writes data of Python's own types, with their types, and refuses all else."""

    def reducer_override(self, obj: Any) -> Any:
        raise TypeError(f"{type(obj)} is no data")


def _data_of(source: Any) -> bytes:
    """Return data as bytes, to compare.

    Raises:
        TypeError: for what is not data alone.
        OverflowError: for more than the cache keeps.
    """
    # A pickle tells a tuple from a list, and writes a value that occurs twice once: as JSON, sixty levels of
    # two references to one dict are 2**60 dicts.
    file = _SmallFile()
    _DataPickler(file, protocol=5).dump(source)
    return b"".join(file.chunks)
