"""Fill what arguments leave out with the defaults of their schema, so that two calls can be compared."""

from typing import Any, cast

from sigadapt.schemas.json_values import Json
from sigadapt.schemas.references import target_of

_MOST_LEVELS = 64  # of arguments and references; deeper ones are left as they are


def with_defaults(args: Json, schema: Json) -> Json:
    """Return arguments with the default of each property that is left out, at every depth.

    `properties`, `items`, `prefixItems`, `allOf` and references within the document are followed. Nothing is
    changed in place.

    Args:
        args: decoded arguments.
        schema: a JSON Schema of them.

    Example:
        >>> schema = {"properties": {"a": {"default": 1}, "b": {"properties": {"c": {"default": []}}}}}
        >>> with_defaults({"b": {}}, schema)
        {'b': {'c': []}, 'a': 1}
    """
    return _filled(args, schema, schema, 0)


def _filled(value: Any, schema: Any, root: Json, level: int) -> Any:
    if not isinstance(schema, dict) or level > _MOST_LEVELS:
        return value
    known = cast("Json", schema)
    referred = target_of(known["$ref"], root) if isinstance(known.get("$ref"), str) else None
    for part in (referred, *_listed(known.get("allOf"))):
        if part is not None:
            value = _filled(value, part, root, level + 1)
    if isinstance(value, dict):
        properties: Any = known.get("properties")
        if isinstance(properties, dict):
            return _object(cast("Json", value), cast("Json", properties), root, level)
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        first = _listed(known.get("prefixItems"))
        schemas = [first[n] if n < len(first) else known.get("items") for n in range(len(items))]
        return [_filled(item, each, root, level + 1) for item, each in zip(items, schemas, strict=True)]
    return cast("Any", value)


def _object(value: Json, properties: Json, root: Json, level: int) -> Json:
    filled = {name: _filled(item, properties.get(name), root, level + 1) for name, item in value.items()}
    for name, schema in properties.items():
        if name not in filled and isinstance(schema, dict) and "default" in schema:
            filled[name] = schema["default"]
    return filled


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
