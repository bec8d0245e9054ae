"""Translate Gemini's `Schema`, the format of its field `parameters`, to JSON Schema.

Four things differ: types in capitals, `nullable`, sizes as text (64-bit numbers in protobuf's JSON), and the
SDK's snake case. Gemini's field `parametersJsonSchema` is JSON Schema already.
Source: `Schema` of the Gemini API, v1beta.
"""

from typing import Any

from sigadapt.schemas.json_values import Json, is_array, is_object
from sigadapt.schemas.subschemas import rebuilt

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
    """Return the schema as JSON Schema: the same object if nothing differs."""
    if not is_object(schema):
        return schema
    words: Json = {_CAMEL.get(key, key): value for key, value in schema.items()}
    declared = words.get("type")
    if isinstance(declared, str) and declared.isupper():
        words["type"] = declared.lower()
    for key in _SIZES:
        if isinstance(size := words.get(key), str) and size.isdecimal():
            words[key] = int(size)
    if words.pop("nullable", None) is True:
        _allow_null(words)
    words = rebuilt(words, lambda subschema, _: in_json_schema(subschema))
    return schema if words == schema else words


def _allow_null(schema: Json) -> None:
    if type(schema.get("type")) is str:
        schema["type"] = [schema["type"], "null"]
    if is_array(alternatives := schema.get("anyOf")):
        schema["anyOf"] = [*alternatives, {"type": "null"}]
    if is_array(allowed := schema.get("enum")) and None not in allowed:
        schema["enum"] = [*allowed, None]
