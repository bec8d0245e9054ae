"""Translate Gemini's `Schema`, the format of its field `parameters`, to JSON Schema.

Four things differ: types in capitals, `nullable`, sizes as text (64-bit numbers in protobuf's JSON), and the
SDK's snake case. Gemini's field `parametersJsonSchema` is JSON Schema already.
Source: `Schema` of the Gemini API, v1beta.
"""

from typing import Any, cast

from sigadapt.schemas.json_values import Json

_CAMEL = {
    "any_of": "anyOf",
    "additional_properties": "additionalProperties",
    "defs": "$defs",
    "max_items": "maxItems",
    "max_length": "maxLength",
    "max_properties": "maxProperties",
    "min_items": "minItems",
    "min_length": "minLength",
    "min_properties": "minProperties",
    "property_ordering": "propertyOrdering",
    "ref": "$ref",
}
_SIZES = ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")


def in_json_schema(schema: Any) -> Any:
    """Return the schema as JSON Schema: the same object if nothing differs, but always a copy for `anyOf`."""
    if not isinstance(schema, dict):
        return schema
    given = cast("Json", schema)
    words = {_CAMEL.get(key, key): _value(_CAMEL.get(key, key), value) for key, value in given.items()}
    if words.pop("nullable", None) is True:
        _allow_null(words)
    unchanged = words.keys() == given.keys() and all(words[key] is given[key] for key in given)
    return given if unchanged else words


def _value(key: str, value: Any) -> Any:
    if key == "type" and type(value) is str and value.isupper():
        return value.lower()
    if key in _SIZES and type(value) is str and value.isdecimal():
        return int(value)
    if key in ("items", "additionalProperties"):
        return in_json_schema(value)
    if key in ("properties", "$defs") and isinstance(value, dict):
        named = cast("Json", value)
        return _same_or({name: in_json_schema(schema) for name, schema in named.items()}, named)
    if key == "anyOf" and isinstance(value, list):
        return [in_json_schema(schema) for schema in cast("list[Any]", value)]
    return value


def _same_or(changed: Json, given: Json) -> Json:
    return given if all(changed[name] is given[name] for name in given) else changed


def _allow_null(schema: Json) -> None:
    if type(schema.get("type")) is str:
        schema["type"] = [schema["type"], "null"]
    if type(schema.get("anyOf")) is list:
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
    if type(schema.get("enum")) is list and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
