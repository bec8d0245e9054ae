"""Join the definitions that each argument brings into those of one schema.

DSPy keeps a schema for each argument, with the argument's own `$defs`. Its references count from there
(`#/$defs/Item`). In the schema of all arguments they count from the root, so the definitions move there.
"""

from copy import deepcopy
from typing import Any

from sigadapt.schemas.json_values import Json, compact, is_object
from sigadapt.schemas.subschemas import subschemas

_KEYWORDS = ("$defs", "definitions")


def object_schema(arguments: Json) -> Json:
    """Return the schema of an object with these members, whose definitions are those of its members."""
    schema: Json = {"type": "object", "properties": {}}
    for name, argument in arguments.items():
        schema["properties"][name] = _with_definitions_moved(argument, schema)
    return schema


def _with_definitions_moved(argument: Any, schema: Json) -> Any:
    """Return an argument's schema without its definitions, which it adds to the schema of all."""
    if not is_object(argument) or "$id" in argument:  # with an `$id`, references count from the argument
        return argument
    for keyword in _KEYWORDS:
        if is_object(argument.get(keyword)) and f'"#/{keyword}/' in compact(argument):
            argument = deepcopy(argument)
            definitions = argument[keyword]
            suffix = _free_suffix(definitions, schema.get(keyword, {}))
            _add_to_references(suffix, argument, keyword)
            del argument[keyword]
            new_definitions = {f"{name}{suffix}": value for name, value in definitions.items()}
            schema[keyword] = {**schema.get(keyword, {}), **new_definitions}
    return argument


def _free_suffix(definitions: Json, others: Json) -> str:
    """Return what tells definitions from others of the same names; nothing if these are equal."""
    if all(compact(others.get(name, value)) == compact(value) for name, value in definitions.items()):
        return ""
    number = 2
    while any(f"{name}_{number}" in others for name in definitions):
        number += 1
    return f"_{number}"


def _add_to_references(suffix: str, argument: Json, keyword: str) -> None:
    start = f"#/{keyword}/"
    for place in subschemas(argument):
        reference = place.schema.get("$ref")
        if isinstance(reference, str) and reference.startswith(start):
            name, slash, rest = reference.removeprefix(start).partition("/")
            place.schema["$ref"] = f"{start}{name}{suffix}{slash}{rest}"
