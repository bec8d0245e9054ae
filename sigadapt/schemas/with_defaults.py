"""Fill what arguments leave out with the defaults of their schema, and write what means the same alike."""

from collections.abc import Callable
from datetime import timezone
from typing import Any, NamedTuple

import jsonschema_rs
import pydantic

from sigadapt.json_values import Json, is_array, is_object
from sigadapt.schemas.subschemas import applications, subschemas, target_of

_MOST_LEVELS = 64  # of arguments and references; deeper ones are left as they are
_CONDITIONS = frozenset(("if", "dependentSchemas", "dependencies"))
_OF_SAME_VALUE = ("$ref", "allOf", "anyOf", "oneOf")
_OF_MEMBERS = ("properties", "patternProperties", "additionalProperties", "items")


class _Filling(NamedTuple):
    """How values are filled: by the references of which root, and whether conditions are judged."""

    root: Json
    alike: Callable[[Any, Json], Any] | None = None  # writes what means the same alike
    conditions: bool = False


def with_defaults(args: Json, schema: Json) -> Json:
    """Return a copy of arguments with the default of each property that is left out, at every depth."""
    return _with_defaults(args, _Filling(schema))


def comparable(args: Json, schema: Json) -> Json:
    """Return arguments with their defaults, and with each `date-time` in UTC, so that two calls compare."""
    return _with_defaults(args, _Filling(schema, _in_utc))


def _with_defaults(args: Json, filling: _Filling) -> Json:
    # Of alternatives, the first that the value fits counts; of their defaults, the first. A condition (`if`,
    # `dependentSchemas`) is judged when the defaults that need none are filled in.
    filled = _fill(args, filling.root, filling, 0)
    if any(not _CONDITIONS.isdisjoint(place.schema) for place in subschemas(filling.root)):
        filled = _fill(filled, filling.root, filling._replace(conditions=True), 0)
    return filled


_TIME: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(pydantic.AwareDatetime)


def _in_utc(value: Any, schema: Json) -> Any:
    """Return a time with its offset in UTC; any other value unchanged."""
    if not isinstance(value, str) or schema.get("format") != "date-time" or "-" not in value:
        return value
    try:
        return _TIME.validate_python(value).astimezone(timezone.utc).isoformat()
    except (ValueError, OverflowError):  # no time with an offset, or one at the end of the calendar
        return value


def _fill(value: Any, schema: Any, filling: _Filling, level: int) -> Any:
    if not is_object(schema) or level > _MOST_LEVELS:
        return value
    if filling.alike is not None:
        value = filling.alike(value, schema)
    filled: Any = value.copy() if is_object(value) or is_array(value) else value
    unions: set[str] = set()
    for keyword, subschema, key, judged in applications(schema, value, filling.root):
        if keyword in _OF_MEMBERS:
            filled[key] = _fill(filled[key], subschema, filling, level + 1)
            continue
        if keyword not in _OF_SAME_VALUE or keyword in unions:
            continue
        if keyword in ("anyOf", "oneOf"):
            if not _fits(judged, subschema, filling.root):
                continue
            unions.add(keyword)
        filled = _fill(filled, subschema, filling, level + 1)
    if is_object(filled):
        _fill_missing(filled, schema, filling, level)
    return _fill_conditional(filled, schema, filling, level) if filling.conditions else filled


def _fill_missing(args: Json, schema: Json, filling: _Filling, level: int) -> None:
    """Set the default of each property that an object lacks."""
    properties = schema.get("properties")
    if not is_object(properties):
        return
    for name, subschema in properties.items():
        if name in args:
            continue
        default = _default_in(subschema, filling.root, level)
        if default is not None:
            args[name] = _fill(default[0], subschema, filling, level + 1)


def _fill_conditional(filled: Any, schema: Json, filling: _Filling, level: int) -> Any:
    """Return a value with the defaults that a schema has for it because of what it holds."""
    if "if" in schema:
        branch = "then" if _fits(filled, schema["if"], filling.root) else "else"
        filled = _fill(filled, schema.get(branch), filling, level + 1)
    pending: Json = {}
    for keyword in ("dependentSchemas", "dependencies"):
        if is_object(by_key := schema.get(keyword)):
            pending.update(by_key)
    while is_object(filled):  # a default may be the member that another one depends on
        key = next((key for key in pending if key in filled), None)
        if key is None:
            break
        filled = _fill(filled, pending.pop(key), filling, level + 1)
    return filled


def _default_in(schema: Any, root: Json, level: int) -> list[Any] | None:
    """Return the default of a schema in a list: its own, or of what it refers to, or of its first part."""
    if not is_object(schema) or level > _MOST_LEVELS:
        return None
    if "default" in schema:
        return [schema["default"]]
    sources: list[Any] = [target_of(schema.get("$ref"), root)]
    for keyword in ("allOf", "anyOf", "oneOf"):
        if is_array(schema.get(keyword)):
            sources += schema[keyword]
    for source in sources:
        default = _default_in(source, root, level + 1)
        if default is not None:
            return default
    return None


def _fits(value: Any, schema: Any, root: Json) -> bool:
    if is_object(schema):
        schema = {**schema, **{key: root[key] for key in ("$defs", "definitions") if key in root}}
    try:
        return jsonschema_rs.is_valid(schema, value)
    except (jsonschema_rs.ValidationError, ValueError):  # a part that does not compile alone
        return False
