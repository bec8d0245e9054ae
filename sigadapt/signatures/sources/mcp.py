"""MCP tools as tools, with the server's own schemas.

The MCP SDK is not imported here. One of its objects exists only if the SDK is already imported.
"""

import marshal
import sys
from typing import Any

import pydantic

from sigadapt.schemas.json_values import Json
from sigadapt.signatures.sources.raw_decl import RawDecl

# Version 2 of the SDK has its types in `mcp_types`, version 1 in `mcp.types`.
_MODULES = ("mcp_types", "mcp.types")
_FUNCTION = {"name", "description", "input_schema", "inputSchema"}


def accepts(source: object) -> bool:
    """Return whether the source is an MCP tool."""
    return _is_a("Tool", source)


def data_of(source: Any) -> bytes | None:
    """Return the data of an MCP tool as bytes, to compare; None for anything that is not data alone."""
    kind: object = source.__class__
    if not any(kind is getattr(sys.modules.get(name), "Tool", None) for name in _MODULES):
        return None
    fields: Json = source.__dict__
    held = {k: part.__dict__ if isinstance(part, pydantic.BaseModel) else part for k, part in fields.items()}
    try:
        # Version 2 is the last format of marshal in which equal values always have equal bytes.
        return marshal.dumps((held, source.__pydantic_extra__), 2)
    except ValueError:
        return None


def describe(source: Any, parameters: Json | None) -> list[RawDecl]:
    """Describe an MCP tool."""
    extras: Json = source.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=_FUNCTION)
    schema = _first(source, "input_schema", "inputSchema") if parameters is None else parameters
    result = _first(source, "output_schema", "outputSchema")
    return [RawDecl(source.name, source.description, schema, result, extras=extras or None)]


def _first(source: object, *names: str) -> Any:
    return next((getattr(source, name) for name in names if hasattr(source, name)), None)


def _is_a(kind: str, value: object) -> bool:
    loaded = (sys.modules.get(name) for name in _MODULES)
    return any(isinstance(value, getattr(module, kind, ())) for module in loaded)
