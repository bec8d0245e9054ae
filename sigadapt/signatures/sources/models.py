"""Pydantic model classes as tools: the fields are the parameters, and the docstring is the description."""

import inspect
from typing import Any, TypeGuard, cast

import dspy
import pydantic

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json
from sigadapt.schemas.checking import check
from sigadapt.signatures.sources.annotations import (
    UNDERIVABLE,
    PlainSchemaGenerator,
    first_line,
    without_titles,
)
from sigadapt.signatures.sources.dicts import Fields


def accepts(source: object) -> TypeGuard[type[pydantic.BaseModel]]:
    """Return whether the source is a pydantic model class, but not a DSPy signature (`programs.py`)."""
    if not issubclass(type(source), type):  # not isinstance: Python 3.10 says that list[int] is a type
        return False
    kind = cast("type", source)
    return issubclass(kind, pydantic.BaseModel) and not issubclass(kind, dspy.Signature)


def describe(source: type[pydantic.BaseModel], parameters: Json | None) -> list[Fields]:
    """Describe a pydantic model class as a tool. The declaration's `func` is the class."""
    schema = schema_of_model(source) if parameters is None else parameters
    return [{"name": source.__name__, "description": _doc(source), "parameters": schema, "func": source}]


def schema_of_model(model: type[pydantic.BaseModel]) -> Json:
    """Return the JSON Schema of a model, without generated titles and without the model's docstring."""
    try:
        schema = model.model_json_schema(schema_generator=PlainSchemaGenerator)
    except UNDERIVABLE as error:
        raise InvalidToolDecl(
            f"its fields have no JSON Schema ({first_line(error)})",
            code="underivable",
            tool=f"{model.__module__}.{model.__qualname__}",
        ) from error
    defs = without_titles(schema.get("$defs", {}))
    head, _, name = str(schema.get("$ref", "")).rpartition("/")
    if head == "#/$defs":  # a recursive model, which providers refuse: its schema stands at the root instead
        schema = {**defs[name], "$defs": defs}
    for key, text in (("description", _doc(model)), ("title", model.__name__)):
        if schema.get(key) == text:
            del schema[key]  # the tool's name and description say it already
    check(schema, tool=model.__name__)
    return schema


def _doc(model: type[Any]) -> str:
    return inspect.cleandoc(model.__doc__ or "")
