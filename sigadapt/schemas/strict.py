"""A schema for strict mode: made compatible where that changes no meaning, else refused (rule 9).

Source: OpenAI's structured outputs guide, "Supported schemas". Every object must be closed and require all of
its properties. An object that says nothing of other properties is closed here; an optional property cannot be
made required without changing what the tool takes, so it is refused, as is what strict mode does not know.
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
    """A canonical tool with a strict-compatible schema; the given one is not changed.

    Raises:
        InvalidToolDecl: `not_strict`, with the path of what strict mode cannot take.

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
    # As deep as a declared schema may be (schema.MAX_DEPTH), so recursion is safe.
    if isinstance(schema, list):
        items = cast("list[Any]", schema)
        return [_closed(item, [*path, number], tool) for number, item in enumerate(items)]
    if not isinstance(schema, dict):
        return schema
    schema = cast("Json", schema)
    for word in _UNKNOWN:
        if word in schema:
            _refuse(f"strict mode does not know {word!r}", [*path, word], tool)
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
        _refuse("strict mode takes closed objects only", [*path, "additionalProperties"], tool)
    required = schema.get("required", [])
    for name in schema.setdefault("properties", {}):
        if name not in required:
            _refuse(
                f"{name!r} is optional, and strict mode requires every property",
                [*path, "properties", name],
                tool,
                fix="Require it, with null among its types if it may be left out.",
            )
    schema["required"] = list(required)


def _refuse(reason: str, path: list[str | int], tool: str, fix: str | None = None) -> None:
    raise InvalidToolDecl(reason, code="not_strict", tool=tool, path=pointer(path), fix=fix)
