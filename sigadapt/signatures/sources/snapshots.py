"""What a Python source is made of, to find out whether it differs from when it was read (one snapshot).

Sources change in place: a notebook defines a class again, `%autoreload` puts new code into an old function,
an optimizer describes a field anew. A snapshot stands for the objects that a declaration follows from. It is
cheap to take again, keeps no object alive, and is the same as another if both stand for the same objects.
"""

import builtins
import functools
import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MethodType, NoneType
from typing import Any, TypeAlias, TypeVar, cast, get_args, get_origin

from pydantic.fields import FieldInfo

from sigadapt.schemas.caches import WeakCache

Snapshot: TypeAlias = tuple[Any, ...]
"""What a declaration follows from, in order: plain values, and weak references to objects."""

_V = TypeVar("_V")

_NAMES = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
VALUES = frozenset((str, int, float, bool, bytes, NoneType))
"""The types of plain values, which nobody can change."""
FIXED = frozenset((str, int, float, bool, bytes, list, dict, set, tuple, object, NoneType, type))
"""The types that mean the same for ever."""
_NEVER: Any = object()


def same(one: Snapshot, other: Snapshot) -> bool:
    """Say whether two snapshots stand for the same objects; plain values may be equal instead."""
    return len(one) == len(other) and all(
        a is b or (type(a) in VALUES and type(a) is type(b) and a == b)
        for a, b in zip(one, other, strict=True)
    )


class SnapshotCache:
    """Values by object and by kind, weakly, each made again when the object's snapshot differs."""

    def __init__(self) -> None:
        self._kept: WeakCache[dict[str, tuple[Snapshot, Any]]] = WeakCache()

    def of(self, key: object, kind: str, snapshot: Snapshot, make: "Callable[[], _V]") -> _V:
        """Return the object's value."""
        kept = self._kept.of(key, dict)
        known = kept.get(kind)
        if known is not None and same(known[0], snapshot):
            return known[1]
        value = make()
        kept[kind] = snapshot, value
        return value


DERIVED = SnapshotCache()
"""What was derived of a source, by source."""


def of_callable(source: Callable[..., Any]) -> Snapshot:
    """Take the snapshot of a function, method or partial, with all that it wraps."""
    return tuple(map(_weak, _callable_parts(source)))


def of_annotation(annotation: Any) -> Snapshot:
    """Take the snapshot of a type that is no longer in quotes, with the classes in it."""
    return tuple(map(_weak, _annotation_parts(annotation, {}, set())))


def of_class(kind: type[Any]) -> Snapshot:
    """Take the snapshot of a class: what its fields or members are, and what is said of it."""
    return tuple(map(_weak, _class_parts(kind, set())))


def of_fields(fields: Mapping[str, FieldInfo]) -> Snapshot:
    """Take the snapshot of a signature's fields, whose descriptions can be changed in place."""
    return tuple(map(_weak, _fields_parts(fields, set())))


def _weak(part: Any) -> Any:
    """A part that keeps nothing alive: two weak references to one object are the same reference."""
    if type(part) in VALUES:
        return part
    try:
        return weakref.ref(part)
    except TypeError:
        return f"{type(part).__name__} {id(part)} {part!r}"


def _callable_parts(source: Any) -> Iterator[Any]:
    while isinstance(source, functools.partial):
        partial = cast("functools.partial[Any]", source)
        yield from (len(partial.args), *partial.keywords, vars(partial).get("__doc__"))
        source = partial.func
    if isinstance(source, MethodType):
        yield True
        source = source.__func__
    while type(source) is FunctionType:
        yield from (source.__code__, source.__doc__, source.__dict__.get("__signature__"))
        yield from _default_parts((source.__defaults__ or (), *(source.__kwdefaults__ or {}).items()))
        for name, annotation in source.__annotations__.items():
            yield name
            yield from _annotation_parts(annotation, source.__globals__, set())
        source = source.__dict__.get("__wrapped__")
    yield source


def _default_parts(defaults: tuple[Any, ...]) -> Iterator[Any]:
    for default in defaults:
        if type(default) is tuple:
            yield from _default_parts(cast("tuple[Any, ...]", default))
        elif isinstance(default, (list, dict, set)):
            yield repr(cast("Any", default))
        elif isinstance(default, FieldInfo):
            yield from _field_parts(default)
        else:
            yield default


def _annotation_parts(annotation: Any, names: Mapping[str, Any], seen: set[int]) -> Iterator[Any]:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        yield annotation
        if annotation not in FIXED:
            yield from _class_parts(annotation, seen)
    elif type(annotation) is str:
        yield annotation
        for name in _NAMES.findall(annotation):
            found = _found(name, names)
            if found is not _NEVER:
                yield from _annotation_parts(found, names, seen)
    elif isinstance(annotation, FieldInfo):
        yield from _field_parts(annotation)
    else:
        yield repr(annotation)
        for argument in get_args(annotation):
            yield from _annotation_parts(argument, names, seen)


def _found(name: str, names: Mapping[str, Any]) -> Any:
    """The object behind a dotted name in a quoted annotation, as it is now."""
    first, *rest = name.split(".")
    found = names.get(first, getattr(builtins, first, _NEVER))
    for attribute in rest:
        found = getattr(found, attribute, _NEVER)
    return found if type(found) is not str else _NEVER  # text in a Literal, or a name for itself


def _class_parts(kind: type[Any], seen: set[int]) -> Iterator[Any]:
    """What the schema of a class follows from: its fields or members, and those of the classes in them."""
    if id(kind) in seen:
        return
    seen.add(id(kind))
    held = vars(kind)
    yield from (kind.__name__, held.get("__doc__"), id(held.get("__pydantic_core_schema__")))
    yield from (repr(held.get("_member_map_")), repr(held.get("__dataclass_fields__")))
    fields: Any = held.get("__pydantic_fields__")
    if isinstance(fields, dict):
        yield from _fields_parts(cast("dict[str, FieldInfo]", fields), seen)
    else:
        for name, annotation in held.get("__annotations__", {}).items():
            yield name
            yield from _annotation_parts(annotation, {}, seen)
    for base in kind.__bases__:
        if base not in FIXED and base.__module__.partition(".")[0] not in ("pydantic", "dspy", "enum"):
            yield from _class_parts(base, seen)


def _fields_parts(fields: Mapping[str, FieldInfo], seen: set[int]) -> Iterator[Any]:
    for name, field in fields.items():
        yield name
        yield from _annotation_parts(field.annotation, {}, seen)
        yield from _field_parts(field)


def _field_parts(field: FieldInfo) -> Iterator[Any]:
    extra: Any = field.json_schema_extra
    yield from (field.description, field.title, repr(field.metadata), field.default_factory)
    yield from _default_parts((field.default,))
    if isinstance(extra, dict):
        for key, value in cast("dict[str, Any]", extra).items():
            yield from (key, value)
    else:
        yield extra
