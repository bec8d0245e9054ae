"""Fill what arguments leave out with the defaults of their schema, and write what means the same alike."""

from collections.abc import Callable
from datetime import timezone
from typing import Any, NamedTuple

import jsonschema_rs
import pydantic

from sigadapt.schemas.json_values import Json, is_array, is_object
from sigadapt.schemas.subschemas import applications, subschemas, target_of

_MOST_LEVELS = 64  # of arguments and references; deeper ones are left as they are
_CONDITIONS = frozenset(("if", "dependentSchemas", "dependencies"))
_WHOLE = ("$ref", "allOf", "anyOf", "oneOf")
_PARTS = ("properties", "patternProperties", "additionalProperties", "items")


class _Filling(NamedTuple):
    """How values are filled: by the references of which root, and whether conditions are judged."""

    root: Json
    alike: Callable[[Any, Json], Any]  # writes what means the same alike
    conditions: bool = False


def with_defaults(args: Json, schema: Json) -> Json:
    """Return a copy of arguments with the default of each property that is left out, at every depth."""
    return _filled(args, _Filling(schema, _unchanged))


def comparable(args: Json, schema: Json) -> Json:
    """Return arguments with their defaults, and with each `date-time` in UTC, so that two calls compare."""
    return _filled(args, _Filling(schema, _in_utc))


def _unchanged(value: Any, schema: Json) -> Any:
    return value


def _filled(args: Json, filling: _Filling) -> Json:
    # Of alternatives, the first that the value fits counts; of their defaults, the first. A condition (`if`,
    # `dependentSchemas`) is judged when the defaults that need none are filled in.
    whole = _fill(args, filling.root, filling, 0)
    if any(not _CONDITIONS.isdisjoint(place.schema) for place in subschemas(filling.root)):
        whole = _fill(whole, filling.root, filling._replace(conditions=True), 0)
    return whole


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
    value = filling.alike(value, schema)
    whole: Any = value.copy() if is_object(value) or is_array(value) else value
    unions: set[str] = set()
    for keyword, inner, key, part in applications(schema, value, filling.root):
        if keyword in _PARTS:
            whole[key] = _fill(whole[key], inner, filling, level + 1)
        elif keyword in _WHOLE and keyword not in unions:
            if keyword in ("anyOf", "oneOf"):
                if not _fits(part, inner, filling.root):
                    continue
                unions.add(keyword)
            whole = _fill(whole, inner, filling, level + 1)
    if is_object(whole) and is_object(properties := schema.get("properties")):
        for name, inner in properties.items():
            if name not in whole and (default := _default_in(inner, filling.root, level)) is not None:
                whole[name] = _fill(default[0], inner, filling, level + 1)
    return _fill_conditional(whole, schema, filling, level) if filling.conditions else whole


def _fill_conditional(whole: Any, schema: Json, filling: _Filling, level: int) -> Any:
    """Return a value with the defaults that a schema has for it because of what it holds."""
    if "if" in schema:
        branch = "then" if _fits(whole, schema["if"], filling.root) else "else"
        whole = _fill(whole, schema.get(branch), filling, level + 1)
    pending = {
        key: inner
        for keyword in ("dependentSchemas", "dependencies")
        if is_object(named := schema.get(keyword))
        for key, inner in named.items()
    }
    while is_object(whole):  # a default may be the member that another one depends on
        key = next((key for key in pending if key in whole), None)
        if key is None:
            break
        whole = _fill(whole, pending.pop(key), filling, level + 1)
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
