"""MCP's types: a tool as a source, its schemas as the server wrote them; a result, as what it says.

The SDK is not imported here: a tool or a result of it exists only if it was.
"""

import sys
from typing import Any, cast

from sigadapt.schemas.json_values import Json
from sigadapt.signatures.sources.raw_decl import RawDecl

# The SDK moved its types from the one module to the other in version 2.
_MODULES = ("mcp_types", "mcp.types")
_FUNCTION = {"name", "description", "input_schema", "output_schema", "inputSchema", "outputSchema"}


def accepts(source: object) -> bool:
    """Whether the source is an MCP tool."""
    return _is_a("Tool", source)


def describe(source: Any, parameters: Json | None) -> list[RawDecl]:
    """Say what an MCP tool is as a tool.

    Args:
        source: the tool, as `list_tools` of any SDK version gives it.
        parameters: a schema to use in place of the server's.

    Returns:
        Its description; `title`, `annotations` and the like are in `extras`.

    Example:
        >>> import mcp.types
        >>> tool = mcp.types.Tool.model_validate({"name": "now", "inputSchema": {"type": "object"}})
        >>> describe(tool, None)[0].parameters
        {'type': 'object'}
    """
    extras = cast("Json", source.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=_FUNCTION))
    schema = _first(source, "input_schema", "inputSchema") if parameters is None else parameters
    result = _first(source, "output_schema", "outputSchema")
    return [RawDecl(source.name, source.description, schema, result, extras=extras or None)]


def _first(source: object, *names: str) -> Any:
    return next((getattr(source, name) for name in names if hasattr(source, name)), None)


def is_mcp_result(value: object) -> bool:
    """Whether a value is an MCP `CallToolResult`."""
    return _is_a("CallToolResult", value)


def _is_a(kind: str, value: object) -> bool:
    loaded = (sys.modules.get(name) for name in _MODULES)
    return any(isinstance(value, getattr(module, kind, ())) for module in loaded)


def is_failure(value: object) -> bool:
    """Whether a value is an MCP result that says that the tool failed."""
    failed = getattr(value, "is_error", None) or getattr(value, "isError", None)
    return is_mcp_result(value) and bool(failed)


def content(result: Any) -> Any:
    """What an MCP result says: its structured content, else its text, else its content blocks."""
    structured = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)
    if structured is not None:
        return structured
    blocks: list[Json] = [
        block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content
    ]
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return blocks
