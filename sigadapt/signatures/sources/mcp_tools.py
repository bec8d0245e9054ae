"""`mcp.types.Tool` as a source of tools: the server's schemas pass through as the server wrote them."""

import sys
from typing import Any, cast

from sigadapt.signatures.sources.facts import Facts
from sigadapt.signatures.subschemas import Json

# The SDK moved its types from the one module to the other in version 2.
_MODULES = ("mcp_types", "mcp.types")
_FUNCTION = {"name", "description", "input_schema", "output_schema", "inputSchema", "outputSchema"}


def reads(source: object) -> bool:
    """Whether the source is an MCP tool. The SDK is not imported: a tool exists only if it was."""
    loaded = (sys.modules.get(name) for name in _MODULES)
    return any(isinstance(source, getattr(module, "Tool", ())) for module in loaded)


def read(source: Any, parameters: Json | None) -> list[Facts]:
    """Say what an MCP tool is as a tool.

    Args:
        source: the tool, as `list_tools` of any SDK version gives it.
        parameters: a schema to use in place of the server's.

    Returns:
        Its facts; `title`, `annotations` and the like are in `extras`.

    Example:
        >>> import mcp.types
        >>> tool = mcp.types.Tool.model_validate({"name": "now", "inputSchema": {"type": "object"}})
        >>> read(tool, None)[0].parameters
        {'type': 'object'}
    """
    extras = cast("Json", source.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=_FUNCTION))
    schema = _first(source, "input_schema", "inputSchema") if parameters is None else parameters
    result = _first(source, "output_schema", "outputSchema")
    return [Facts(source.name, source.description, schema, result, extras=extras or None)]


def _first(source: object, *names: str) -> Any:
    return next((getattr(source, name) for name in names if hasattr(source, name)), None)
