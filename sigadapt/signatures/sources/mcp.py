"""MCP tools as tools, with the server's own schemas.

The MCP SDK is not imported here. One of its objects exists only if the SDK is already imported.
"""

import sys
from typing import Any

import pydantic

from sigadapt.json_values import Json, is_array, is_object
from sigadapt.signatures.sources.dicts import Fields
from sigadapt.signatures.tool_results.tool_output import MCP_TYPES, first_of, is_a

_FUNCTION = {"name", "description", "input_schema", "inputSchema"}


def accepts(source: object) -> bool:
    """Return whether the source is an MCP tool."""
    return is_a("Tool", source)


def fields_of(source: Any) -> list[Any] | None:
    """Return what an MCP tool holds; None for anything else, also of a class that inherits from it."""
    kind: object = source.__class__
    if not any(kind is getattr(sys.modules.get(name), "Tool", None) for name in MCP_TYPES):
        return None
    parts: list[Any] = [*vars(source).values()]
    own: list[Any] = [vars(part) if isinstance(part, pydantic.BaseModel) else part for part in parts]
    return [*own, source.__pydantic_extra__]


# A tool of an app's page: {"name": "chart", "inputSchema": {}, "_meta": {"ui": {"visibility": ["app"]}}}.
# https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/draft/apps.mdx
def is_for_model(source: Any) -> bool:
    """Return whether a server shows a tool to models, and not to the app of its page alone."""
    meta: Json = getattr(source, "meta", None) or {}
    ui: object = meta.get("ui")
    visibility: object = ui.get("visibility") if is_object(ui) else None
    return not is_array(visibility) or "model" in visibility


def describe(source: Any, parameters: Json | None) -> list[Fields]:
    """Describe an MCP tool; nothing, if it is not for models."""
    if not is_for_model(source):
        return []
    extras: Json = source.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=_FUNCTION)
    schema = first_of(source, "input_schema", "inputSchema") if parameters is None else parameters
    result = first_of(source, "output_schema", "outputSchema")
    described = {"name": source.name, "description": source.description, "parameters": schema}
    return [{**described, "returns": result, "extras": extras or None}]
