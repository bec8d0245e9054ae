"""The fingerprint of a source, which shows that its declaration is still current (one snapshot).

A fingerprint is a list of objects. While a function's code, docstring, defaults, annotations and what these
are made of (`schema_inputs.py`) are the objects that they were, its declaration is current, too. A
`dspy.Tool` adds its own fields; of an MCP tool and of a dict, the data is the fingerprint. A source without a
fingerprint is read each time.
"""

import functools
import pickle
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from operator import is_
from types import FunctionType, MethodType
from typing import Any, Generic, TypeAlias, TypeVar

import dspy

from sigadapt.schemas.caches import DECLARATIONS_BUDGET, BoundedCache, WeakCache
from sigadapt.signatures.sources import mcp
from sigadapt.signatures.sources.schema_inputs import (
    ATOMS,
    FIXED_TYPES,
    SchemaInputs,
    UnknowableSchemaError,
)

_V = TypeVar("_V")
_Fingerprint: TypeAlias = tuple[tuple[Any, ...], bytes]
"""Objects to compare by identity, and data to compare by value."""

_PARTIAL_ATTRIBUTES = frozenset(("__name__", "__qualname__", "__module__", "__doc__"))
_ATTRIBUTES_READ = frozenset(("__signature__", "__sigadapt_asks_first__"))
"""What a declaration may read of a function's `__dict__` and no fingerprint shows."""


_WEIGHT = 4
"""Of a byte of data: a value holds its texts, and what is compiled of them when calls are checked."""
_MOST_BYTES = DECLARATIONS_BUDGET // _WEIGHT


@dataclass(frozen=True, slots=True)
class _Entry(Generic[_V]):
    fingerprint: _Fingerprint
    value: _V


class DeclaredCache(Generic[_V]):
    """A value for each source, until its fingerprint changes or it is deleted.

    The value of a dict is found by its data, and deleted when newer data exceeds a budget of bytes.
    """

    def __init__(self) -> None:
        self._entries: WeakCache[_Entry[_V]] = WeakCache()
        self._by_data: BoundedCache[bytes, _V] = BoundedCache(DECLARATIONS_BUDGET)

    def get(self, source: object) -> _V | None:
        """Return the value of a source; None without one or if the source has changed."""
        if type(source) is dict:
            data = _data_of(source)
            return None if data is None else self._by_data.get(data)
        entry = self._entries.get(_owner(source))
        if entry is None or not _are_same(_fingerprint(source), entry.fingerprint):
            return None
        return entry.value

    def get_all(self, sources: Iterable[object]) -> list[_V] | None:
        """Return the values of several sources; None if one of them has none."""
        values: list[_V] = []
        for source in sources:
            value = self.get(source)
            if value is None:
                return None
            values.append(value)
        return values

    def fingerprint(self, source: object) -> _Fingerprint | None:
        """Return the fingerprint of a source, to take before a value is made of it; None without one."""
        return _fingerprint(source)

    def put(self, source: object, value: _V, before: _Fingerprint | None) -> None:
        """Keep a value, which must not refer to the source, if the source is what it was `before`.

        Another thread may have changed it while the value was made, and then it is of neither.
        """
        if before is None or not _are_same(_fingerprint(source), before):
            return
        if type(source) is dict:
            self._by_data.put(before[1], value, weight=_WEIGHT * len(before[1]))
        else:
            self._entries.put(_owner(source), _Entry(before, value))

    def __len__(self) -> int:
        return len(self._entries)


def _owner(source: Any) -> Any:
    """Return the object with which an entry is deleted: of a bound method, its function."""
    return source.__func__ if type(source) is MethodType else source


def _are_same(fingerprint: _Fingerprint | None, before: _Fingerprint) -> bool:
    if fingerprint is None or fingerprint[1] != before[1] or len(fingerprint[0]) != len(before[0]):
        return False
    return all(map(is_, fingerprint[0], before[0]))  # by identity, because 1 == True


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


def _data_of(source: Any) -> bytes | None:
    """Return data as bytes, to compare; None for what is not data alone."""
    # A pickle tells a tuple from a list, and writes a value that occurs twice once: as JSON, sixty levels of
    # two references to one dict are 2**60 dicts.
    file = _SmallFile()
    try:
        _DataPickler(file, protocol=5).dump(source)
    except (TypeError, RecursionError, OverflowError):
        return None
    return b"".join(file.chunks)


def _fingerprint(source: Any) -> _Fingerprint | None:
    if type(source) is FunctionType and (parts := _plain_parts(source)) is not None:  # most tools are
        return parts, b""
    if type(source) is dict:
        data = _data_of(source)
        return None if data is None else ((), data)
    try:
        if type(source) is dspy.Tool:
            return _tool_parts(source)
        if _is_function(source):
            return _function_parts(source), b""
    except (UnknowableSchemaError, RecursionError, NameError):
        return None
    data = mcp.data_of(source)
    return None if data is None else ((), data)


def _is_function(source: Any) -> bool:
    return type(source) in (FunctionType, MethodType, functools.partial)


def _plain_parts(function: FunctionType) -> tuple[Any, ...] | None:
    """Return what a function is made of; None if something that its parts refer to can change."""
    if function.__dict__:
        return None
    keyword_defaults: dict[str, Any] = function.__kwdefaults__ or {}
    defaults = (*(function.__defaults__ or ()), *keyword_defaults.values())
    annotations = function.__annotations__.values()
    try:
        has_fixed_types = FIXED_TYPES.issuperset(annotations)
    except TypeError:  # one is not hashable
        return None
    if not has_fixed_types or not ATOMS.issuperset(map(type, defaults)):
        return None
    return (*_heads(function), *defaults, *annotations)


def _heads(function: FunctionType) -> tuple[Any, ...]:
    """Return what says which values a function has, without any of them: a class among them may hold it."""
    return (
        function.__code__,
        function.__name__,
        function.__qualname__,
        function.__doc__,
        len(function.__defaults__ or ()),
        *(function.__kwdefaults__ or ()),
        *function.__annotations__,
    )


def _tool_parts(tool: Any) -> _Fingerprint:
    """Return what a `dspy.Tool` is made of, with its arguments as data."""
    data = _data_of([tool.args, tool.arg_desc])
    if data is None or not _is_function(tool.func):
        raise UnknowableSchemaError
    # By a weak reference, because an agent's function may hold the agent, which holds the tool.
    own_parts = (weakref.ref(tool.func), tool.name, tool.desc, tool.has_kwargs)
    return (*own_parts, *_function_parts(tool.func)), data


def _function_parts(source: Any) -> tuple[Any, ...]:
    """Return what the declaration of a function, a bound method or a partial is made of."""
    if type(source) is functools.partial:
        return _partial_parts(source)  # pyright: ignore[reportUnknownArgumentType]
    function = _owner(source)
    is_bound = function is not source
    if type(function) is not FunctionType or (is_bound and function.__doc__ is None):
        raise UnknowableSchemaError  # a method without a docstring may inherit one
    plain_parts = _plain_parts(function)
    if plain_parts is not None:
        return (is_bound, *plain_parts)
    inputs = SchemaInputs(function.__globals__)
    for annotation in function.__annotations__.values():
        inputs.add_annotation(annotation)
    inputs.add_values(function.__defaults__ or ())
    inputs.add_values((function.__kwdefaults__ or {}).values())
    return (is_bound, *_heads(function), *inputs.objects, *_wrapped_parts(function.__dict__))


def _wrapped_parts(attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Return the parts of the function that a decorator wraps, whose signature counts."""
    if not _ATTRIBUTES_READ.isdisjoint(attributes):
        raise UnknowableSchemaError
    if "__wrapped__" not in attributes:
        return ()
    wrapped = attributes["__wrapped__"]
    if not _is_function(wrapped):
        raise UnknowableSchemaError
    return ("__wrapped__", *_function_parts(wrapped))


def _partial_parts(source: "functools.partial[Any]") -> tuple[Any, ...]:
    attributes = vars(source)
    if not _is_function(source.func) or attributes.keys() - _PARTIAL_ATTRIBUTES:
        raise UnknowableSchemaError
    # The values that it sets are no part of a declaration, and may be secrets.
    own_parts = (len(source.args), *source.keywords, *attributes, *attributes.values())
    return (*own_parts, *_function_parts(source.func))
