"""Make a tool's schema compatible with strict mode, or refuse it (rule 9).

In strict mode, every object has `"additionalProperties": false` and requires all of its properties. An object
without `additionalProperties` gets it here. An optional property is refused: to require it would change the
arguments that the tool accepts. So is a keyword that strict mode does not support.
Source: OpenAI's structured outputs guide, "Supported schemas".
"""

from typing import Any, cast

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json, pointer

_UNKNOWN = (
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "dependentRequired",
    "dependentSchemas",
)


def strict_tool(tool: Json) -> Json:
    """Return the tool with a schema that strict mode accepts.

    Args:
        tool: a tool in the shape of OpenAI's chat completions. It is not changed.

    Raises:
        InvalidToolDecl: `not_strict`, with the path of the keyword or property that strict mode refuses.

    Example:
        >>> schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
        >>> tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        >>> strict_tool(tool)["function"]["parameters"]["additionalProperties"]
        False
    """
    function = tool["function"]
    parameters = _closed(function["parameters"], [], function["name"])
    return {**tool, "function": {**function, "parameters": parameters}}


def _closed(schema: Any, path: list[str | int], tool: str) -> Any:
    # Recursion is safe: a declared schema has at most SCHEMA_LEVELS levels.
    if isinstance(schema, list):
        items = cast("list[Any]", schema)
        return [_closed(item, [*path, number], tool) for number, item in enumerate(items)]
    if not isinstance(schema, dict):
        return schema
    schema = cast("Json", schema)
    for word in _UNKNOWN:
        if word in schema:
            _refuse(f"strict mode does not support {word!r}", [*path, word], tool)
    closed: Json = dict(schema)
    for word in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(word), dict):
            named = cast("Json", schema[word])
            closed[word] = {key: _closed(value, [*path, word, key], tool) for key, value in named.items()}
    for word in ("items", "prefixItems", "anyOf"):
        if word in schema:
            closed[word] = _closed(schema[word], [*path, word], tool)
    if "properties" in schema or schema.get("type") == "object":
        _close(closed, path, tool)
    return closed


def _close(schema: Json, path: list[str | int], tool: str) -> None:
    if schema.setdefault("additionalProperties", False) is not False:
        _refuse("strict mode accepts only false here", [*path, "additionalProperties"], tool)
    required = schema.get("required", [])
    for name in schema.setdefault("properties", {}):
        if name not in required:
            _refuse(
                f"{name!r} is optional, and strict mode requires every property",
                [*path, "properties", name],
                tool,
                fix="Require it; if it may be left out, let it be null as well.",
            )
    schema["required"] = list(required)


def _refuse(reason: str, path: list[str | int], tool: str, fix: str | None = None) -> None:
    raise InvalidToolDecl(reason, code="not_strict", tool=tool, path=pointer(path), fix=fix)
