"""What a derived JSON Schema depends on: the objects that annotations and defaults are made of.

While each of them is the same object, the schema is the same. Therefore whatever can change in place is taken
apart, until only objects are left that cannot change: strings, numbers, and classes, each with what pydantic
reads of it when it writes a schema. Anything else is unknowable: a hook may return another schema each time.
"""

import dataclasses
import sys
import weakref
from collections import abc
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from types import CodeType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NewType,
    NoReturn,
    Optional,
    Union,
    get_args,
    get_origin,
)
from uuid import UUID

import pydantic
import typing_extensions
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

ATOMS: frozenset[Any] = frozenset(
    (str, int, float, bool, bytes, NoneType, date, datetime, time, timedelta, Decimal, UUID)
)
"""The types of values that cannot change in place."""
FIXED_TYPES: frozenset[Any] = ATOMS | {
    *(list, dict, set, frozenset, tuple, object, Path),
    *(None, Ellipsis, Any, Union, Optional, Literal),
}
"""Annotations of Python itself, whose schemas never change."""
_ORIGINS: frozenset[Any] = frozenset((list, dict, set, frozenset, tuple, Union, UnionType)) | {
    *(abc.Sequence, abc.Iterable, abc.Collection, abc.Mapping, abc.Set),
    *(typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.ReadOnly),
}
_SCHEMA_HOOKS = ("__get_pydantic_core_schema__", "__get_pydantic_json_schema__")
_MODEL_HOOKS = {hook: getattr(pydantic.BaseModel, hook).__func__ for hook in _SCHEMA_HOOKS}
_SERIALIZERS = ("computed_fields", "field_serializers", "model_serializers")
_UNSET: tuple[Any, ...] = (PydanticUndefined, dataclasses.MISSING)
_field_parts = attrgetter(
    *("title", "description", "examples", "default", "alias", "validation_alias", "serialization_alias"),
    *("discriminator", "deprecated", "exclude", "json_schema_extra", "field_title_generator"),
)
_LIVE_CONFIG = frozenset(("json_schema_extra", "model_title_generator", "field_title_generator"))


class UnknowableSchemaError(Exception):
    """A schema may change although no object that could be compared does."""


class SchemaInputs:
    """Collect the objects that the schemas of annotations and defaults depend on.

    Its methods raise UnknowableSchemaError for what may change unseen. `names` are the globals of the module
    in which the annotations are written, some of them in quotes.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.objects: list[Any] = []
        self._classes: set[Any] = set()
        self._names = names

    def add_annotation(self, annotation: Any) -> None:
        """Add what the schema of an annotation depends on."""
        if type(annotation) is ForwardRef:
            annotation = annotation.__forward_arg__
        if type(annotation) is str:
            annotation = self._annotation_of(annotation)
        origin = get_origin(annotation)
        if origin is not None:
            self._add_generic(origin, annotation)
        elif _is_fixed_type(annotation):
            self.objects.append(annotation)
        elif type(annotation) is NewType:
            self.add_annotation(annotation.__supertype__)
        elif isinstance(annotation, type):
            self._add_class(annotation)
        else:
            _give_up(annotation)

    def add_value(self, value: Any) -> None:
        """Add a default, or another value that a schema shows."""
        kind = _class_of(value)
        if kind in ATOMS or any(value is unset for unset in _UNSET):
            self.objects.append(value)
            return
        self.objects.append(weakref.ref(kind))
        if isinstance(value, Enum):
            self.objects.append(value.name)
            self.add_value(value.value)
        elif isinstance(value, FieldInfo):
            self._add_field(value)
        elif kind in (list, tuple):
            self.add_values(value)
        elif kind is dict:
            self.add_values(value.keys())
            self.add_values(value.values())
        else:
            _give_up(value)

    def add_values(self, values: Iterable[Any]) -> None:
        """Add several values, and a mark where they end: [[1], 2] is not [[1, 2]]."""
        for value in values:
            if type(value) in ATOMS:
                self.objects.append(value)
            else:
                self.add_value(value)
        self.objects.append(...)

    def _add_generic(self, origin: Any, annotation: Any) -> None:
        self.objects.append(origin)
        arguments = get_args(annotation)
        if origin is Literal:
            self.add_values(arguments)
        elif origin is Annotated:
            self.add_annotation(arguments[0])
            for metadata in arguments[1:]:
                self._add_metadata(metadata)
        elif origin in _ORIGINS:
            for argument in arguments:
                self.add_annotation(argument)
        else:
            _give_up(annotation)
        self.objects.append(...)

    def _add_metadata(self, metadata: Any) -> None:
        """Add what stands beside a type in `Annotated`: a constraint, a `Field`, a description."""
        kind = _class_of(metadata)
        if kind in ATOMS or isinstance(metadata, FieldInfo):
            self.add_value(metadata)
            return
        if any(hasattr(kind, hook) for hook in _SCHEMA_HOOKS):
            _give_up(metadata)
        self.objects.append(kind)
        if kind.__module__ == "annotated_types" and dataclasses.is_dataclass(kind):
            for field in dataclasses.fields(kind):
                self.add_value(getattr(metadata, field.name))
        elif kind.__module__.startswith("pydantic."):  # such as `Strict` and what holds a `pattern`
            self.add_value(vars(metadata))
        else:
            _give_up(metadata)

    def _add_field(self, field: FieldInfo) -> None:
        self.add_values(_field_parts(field))
        self.objects.append(field.default_factory is None)  # or the field is not required
        for metadata in field.metadata:
            self._add_metadata(metadata)
        if field.annotation is not None:
            self.add_annotation(field.annotation)

    def _add_class(self, kind: Any) -> None:
        self.objects.append(weakref.ref(kind))
        # A class may hold itself, as a tree's node does.
        if kind in self._classes:
            return
        self._classes.add(kind)
        # Pydantic makes descriptions and the keys of `$defs` of these when it writes a schema.
        self.objects += (kind.__doc__, kind.__name__, kind.__qualname__, kind.__module__)
        if issubclass(kind, Enum):
            self._add_enum(kind)
        elif issubclass(kind, pydantic.BaseModel):
            self._add_model(kind)
        elif dataclasses.is_dataclass(kind):
            self._add_dataclass(kind)
        elif typing_extensions.is_typeddict(kind):
            self._add_typed_dict(kind)
        else:
            _give_up(kind)

    def _add_enum(self, kind: Any) -> None:
        if any(hasattr(kind, hook) for hook in _SCHEMA_HOOKS):
            _give_up(kind)
        for member in kind.__members__.values():
            self.add_value(member)

    def _add_model(self, kind: Any) -> None:
        # A hook of the author's may return another schema each time.
        for hook in _SCHEMA_HOOKS:
            if getattr(getattr(kind, hook), "__func__", None) is not _MODEL_HOOKS[hook]:
                _give_up(kind)
        self._add_core_schema(kind)
        self._add_config(kind.model_config, is_compiled=True)
        # The core schema holds the rest of a field as it was when the class was made. These are live.
        for field in kind.model_fields.values():
            self.add_values((field.default, field.json_schema_extra))
            for metadata in field.metadata:
                self._add_metadata(metadata)
            self.add_annotation(field.annotation)

    def _add_core_schema(self, kind: Any) -> None:
        """Add what shows that pydantic has not compiled a class again, as `model_rebuild` does."""
        # A mock stands there until all types of a model are defined. What a serializer returns, and of which
        # type, is not a part of the fields.
        schema: object = kind.__dict__.get("__pydantic_core_schema__")
        decorators = kind.__pydantic_decorators__
        if type(schema) is not dict or any(getattr(decorators, name) for name in _SERIALIZERS):
            _give_up(kind)
        # Its signature is replaced with it. The schema itself holds the class: if a method of the class calls
        # the tool, neither would be deleted.
        signature: object = kind.__dict__.get("__signature__")
        try:
            self.objects.append(weakref.ref(signature))
        except TypeError:
            _give_up(kind)

    def _add_config(self, config: Mapping[str, Any], *, is_compiled: bool) -> None:
        for name, value in config.items():
            self.objects.append(name)
            # The core schema holds the rest of the configuration as it was when the class was made.
            if not is_compiled or name in _LIVE_CONFIG or type(value) in ATOMS:
                self.add_value(value)

    def _add_dataclass(self, kind: Any) -> None:
        # Pydantic's own dataclasses are compiled, as models are; of Python's, it reads the fields each time.
        is_compiled = "__pydantic_fields__" in kind.__dict__
        if is_compiled:
            self._add_core_schema(kind)
        elif any(hasattr(kind, hook) for hook in _SCHEMA_HOOKS):
            _give_up(kind)
        self._add_config(getattr(kind, "__pydantic_config__", {}), is_compiled=is_compiled)
        outer_names = self._names
        for name, field in kind.__dataclass_fields__.items():
            # A field in quotes has the names of the module in which its own class is written.
            self._names = _globals_of(_class_with(name, kind))
            self.objects += (name, field.init, field.default_factory is dataclasses.MISSING)
            self.add_annotation(field.type)
            self.add_value(field.default)
            self.add_value(dict(field.metadata))
        self._names = outer_names

    def _add_typed_dict(self, kind: Any) -> None:
        self._add_config(getattr(kind, "__pydantic_config__", {}), is_compiled=False)
        if any(map(typing_extensions.is_typeddict, getattr(kind, "__orig_bases__", ()))):
            _give_up(kind)  # the names of an inherited key in quotes are those of another module
        self.objects += (kind.__required_keys__, kind.__total__)
        # `from __future__ import annotations` leaves them as text, whose names are those of its own module.
        outer_names = self._names
        self._names = _globals_of(kind)
        for name, annotation in kind.__annotations__.items():
            self.objects.append(name)
            self.add_annotation(annotation)
        self._names = outer_names

    def _annotation_of(self, text: str) -> Any:
        try:
            return eval(_code_of(text), self._names)  # noqa: S307  (the author's own annotation)
        except Exception:  # noqa: BLE001  (an annotation in quotes is an expression and may raise anything)
            _give_up(text)


def _is_fixed_type(annotation: Any) -> bool:
    try:
        return annotation in FIXED_TYPES
    except TypeError:  # it is not hashable
        return False


def _class_with(field: str, kind: Any) -> Any:
    """Return the class that declares a field of a dataclass: itself or one that it inherits from."""
    return next((base for base in kind.__mro__ if field in vars(base).get("__annotations__", ())), kind)


def _globals_of(kind: type) -> dict[str, Any]:
    module = sys.modules.get(kind.__module__)
    return {} if module is None else module.__dict__


@lru_cache(maxsize=1024)
def _code_of(text: str) -> CodeType:
    return compile(text.strip(), "<annotation>", "eval")


def _class_of(value: object) -> Any:
    return type(value)  # as `Any`, which a type checker does not make narrower


def _give_up(value: object) -> NoReturn:
    raise UnknowableSchemaError(type(value).__name__)
