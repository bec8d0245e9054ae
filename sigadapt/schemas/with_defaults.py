"""Fill what arguments leave out with the defaults of their schema, and write what means the same alike."""

from collections.abc import Callable
from datetime import timezone
from typing import Any

import jsonschema_rs
import pydantic

from sigadapt.schemas.json_values import Json, is_array, is_object
from sigadapt.schemas.subschemas import applications, target_of

_MOST_LEVELS = 64  # of arguments and references; deeper ones are left as they are
_WHOLE = ("$ref", "allOf", "anyOf", "oneOf")
_PARTS = ("properties", "patternProperties", "additionalProperties", "items")


def with_defaults(args: Json, schema: Json) -> Json:
    """Return a copy of arguments with the default of each property that is left out, at every depth."""
    # Of alternatives, the first that the value fits counts; of their defaults, the first.
    return _fill(args, schema, schema, 0, lambda value, _: value)


def comparable(args: Json, schema: Json) -> Json:
    """Return arguments with their defaults, and with each `date-time` in UTC, so that two calls compare."""
    return _fill(args, schema, schema, 0, _in_utc)


_TIME: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(pydantic.AwareDatetime)


def _in_utc(value: Any, schema: Json) -> Any:
    """Return a time with its offset in UTC; any other value unchanged."""
    if not isinstance(value, str) or schema.get("format") != "date-time" or "-" not in value:
        return value
    try:
        return _TIME.validate_python(value).astimezone(timezone.utc).isoformat()
    except (ValueError, OverflowError):  # no time with an offset, or one at the end of the calendar
        return value


def _fill(value: Any, schema: Any, root: Json, level: int, alike: Callable[[Any, Json], Any]) -> Any:
    if not is_object(schema) or level > _MOST_LEVELS:
        return value
    value = alike(value, schema)
    whole: Any = value.copy() if is_object(value) or is_array(value) else value
    unions: set[str] = set()
    for keyword, inner, key, part in applications(schema, value, root):
        if keyword in _PARTS:
            whole[key] = _fill(whole[key], inner, root, level + 1, alike)
        elif keyword in _WHOLE and keyword not in unions:
            if keyword in ("anyOf", "oneOf"):
                if not _fits(part, inner, root):
                    continue
                unions.add(keyword)
            whole = _fill(whole, inner, root, level + 1, alike)
    if is_object(whole) and is_object(properties := schema.get("properties")):
        for name, inner in properties.items():
            if name not in whole and (default := _default_in(inner, root, level)) is not None:
                whole[name] = _fill(default[0], inner, root, level + 1, alike)
    return whole


def _default_in(schema: Any, root: Json, level: int) -> list[Any] | None:
    """Return the default of a schema in a list: its own, or of what it refers to, or of its first part."""
    if not is_object(schema) or level > _MOST_LEVELS:
        return None
    if "default" in schema:
        return [schema["default"]]
    parts: list[Any] = [target_of(schema.get("$ref"), root)]
    for keyword in ("allOf", "anyOf", "oneOf"):
        parts += schema[keyword] if is_array(schema.get(keyword)) else ()
    defaults = (_default_in(part, root, level + 1) for part in parts)
    return next((default for default in defaults if default is not None), None)


def _fits(value: Any, schema: Any, root: Json) -> bool:
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    try:
        return jsonschema_rs.is_valid({**schema, **definitions} if is_object(schema) else schema, value)
    except (jsonschema_rs.ValidationError, ValueError):  # a part that does not compile alone
        return False
