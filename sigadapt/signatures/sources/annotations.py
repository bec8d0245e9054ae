"""Derive JSON Schemas from Python types: with a table for the plain ones, with pydantic for all others.

The table gives the same schemas, faster. The titles that pydantic generates from names are left out: they
cost tokens in every request and only repeat the name.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import pydantic
import pydantic_core
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, is_iterable
from sigadapt.schemas.checking import check_json

UNDERIVABLE = (
    pydantic.errors.PydanticUserError,
    pydantic.errors.PydanticUndefinedAnnotation,
    pydantic_core.SchemaError,
    NameError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What pydantic raises for a type without a JSON Schema. The general ones come from a type's own hooks."""

_PLAIN: dict[Any, Json] = {
    Any: {},
    object: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    NoneType: {"type": "null"},
    list: {"type": "array", "items": {}},
    dict: {"type": "object", "additionalProperties": True},
}
_NO_KEY = re.compile(r"[^a-zA-Z0-9.\-_]")  # characters that pydantic replaces in the keys of `$defs`


class Schemas(NamedTuple):
    """The JSON Schemas of several named types, with the `$defs` that they share and why a type has none."""

    properties: dict[str, Json]  # by name
    defs: Json  # the `$defs` that they share
    problems: list[str]  # why a type has none
    used_pydantic: bool

    def as_object(self, required: list[str], *, is_open: bool) -> Json:
        """Return the schema of an object with these properties."""
        schema: Json = {"type": "object", "properties": self.properties}
        if required:
            schema["required"] = required
        if not is_open:
            schema["additionalProperties"] = False
        if self.defs:
            schema["$defs"] = self.defs
        return schema


def schemas_of(types: Mapping[str, Any]) -> Schemas:
    """Derive the JSON Schemas of named types, with at most one run of pydantic."""
    schemas: dict[str, Json] = {}
    complex_types: dict[str, Any] = {}
    for name, annotation in types.items():
        schema = plain_schema(annotation)
        if schema is None:
            complex_types[name] = annotation
        else:
            schemas[name] = schema
    if not complex_types:
        return Schemas(schemas, {}, [], used_pydantic=False)
    try:
        by_pydantic, defs = _by_pydantic(complex_types)
    except UNDERIVABLE as error:
        reasons = [
            f"'{name}' has no JSON Schema ({problem})"
            for name, problem in _problems(complex_types, error).items()
        ]
        return Schemas(schemas, {}, reasons, used_pydantic=True)
    schemas |= by_pydantic
    return Schemas({name: schemas[name] for name in types}, defs, [], used_pydantic=True)


def _problems(types: Mapping[str, Any], error: Exception) -> dict[str, str]:
    """Return why types have no schema, each alone; if each has one, the error of all together."""
    problems: dict[str, str] = {}
    for name, annotation in types.items():
        if problem := _problem(annotation):
            problems[name] = problem
    return problems or dict.fromkeys(types, first_line(error))


def schema_of(annotation: Any, mode: JsonSchemaMode) -> Json:
    """Derive the JSON Schema of one type, definitions included."""
    plain = plain_schema(annotation)
    if plain is not None:
        return plain
    schema = pydantic.TypeAdapter(annotation).json_schema(mode=mode, schema_generator=PlainSchemaGenerator)
    without_titles(schema.get("$defs", {}))
    return schema


def plain_schema(annotation: Any) -> Json | None:
    """Return the JSON Schema of a type if pydantic is not needed for it, else None."""
    # These are the types in the table; lists, dicts with string keys and optionals of them; and `Literal` of
    # strings.
    try:
        simple = _PLAIN.get(annotation)
    except TypeError:  # an unhashable annotation
        return None
    if simple is not None:
        return dict(simple)
    origin = get_origin(annotation)
    args = get_args(annotation)
    schema: Json | None = None
    if origin is Literal and all(type(value) is str for value in args):
        schema = {"const": args[0]} if len(args) == 1 else {"enum": list(args)}
        schema["type"] = "string"
    elif origin in (Union, UnionType) and len(args) == 2 and NoneType in args:
        alternative = args[0] if args[1] is NoneType else args[1]
        member = plain_schema(alternative)
        schema = {"anyOf": [member, {"type": "null"}]} if member else None
    elif origin is list and (items := plain_schema(args[0])) is not None:
        schema = {"type": "array", "items": items}
    elif origin is dict and args[0] is str and (values := plain_schema(args[1])) is not None:
        schema = {"type": "object", "additionalProperties": values or True}
    return schema


def jsonable(value: Any) -> Any:
    """Return a default as JSON, sets sorted, or raise ValueError for one that has no JSON form."""
    if is_iterable(value) and isinstance(value, AbstractSet):
        value = sorted(value, key=repr)
    try:
        json_value = pydantic_core.to_jsonable_python(value, by_alias=True)
        check_json(json_value, tool=None)
    except (pydantic_core.PydanticSerializationError, InvalidToolDecl) as error:
        raise ValueError(str(error)) from error
    return json_value


class PlainSchemaGenerator(GenerateJsonSchema):
    """Pydantic's schema generator, without the titles that it makes from field names.

    Nor does it offer a model the fields of a dataclass that its constructor does not take (`init=False`).
    """

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Return False. Pydantic sets an author's own title elsewhere."""
        return False

    def literal_schema(self, schema: Any) -> Json:
        """Return the schema of a Literal, unless pydantic makes its values from no JSON."""
        for value in schema["expected"]:
            if (
                self.mode == "validation"
                and isinstance(value, (Enum, bytes))
                and not isinstance(value, (str, int))
            ):
                reason = f"no JSON is {value!r}: write the enum itself, or a Literal of texts"
                raise pydantic.errors.PydanticUserError(reason, code=None)
        return super().literal_schema(schema)

    def field_is_present(self, field: Any) -> bool:
        """Whether an input may have the field; an output has each."""
        is_taken = self.mode == "serialization" or field.get("init", True) is not False
        return is_taken and super().field_is_present(field)


def without_titles(defs: Json) -> Json:
    """Remove the titles that pydantic made from class names, in place, and return the definitions."""
    for key, definition in defs.items():
        name = _NO_KEY.sub("_", str(definition.get("title")))
        if key == name or key.endswith(f"__{name}"):
            del definition["title"]
    return defs


def _by_pydantic(types: dict[str, Any]) -> tuple[dict[str, Json], Json]:
    inputs: list[tuple[str, JsonSchemaMode, pydantic.TypeAdapter[Any]]]
    inputs = [(name, "validation", pydantic.TypeAdapter(types[name])) for name in types]
    schemas, definitions = pydantic.TypeAdapter[Any].json_schemas(
        inputs, schema_generator=PlainSchemaGenerator
    )
    return {name: schemas[name, "validation"] for name in types}, without_titles(definitions.get("$defs", {}))


def _problem(annotation: Any) -> str | None:
    try:
        _by_pydantic({"": annotation})
    except UNDERIVABLE as error:
        return first_line(error)
    return None


def first_line(error: Exception) -> str:
    """Return the first line of an error's message: pydantic adds advice on further lines."""
    return str(error).partition("\n")[0] or type(error).__name__
