"""A tool's value as a JSON object, for providers whose results are objects.

| value | object |
|---|---|
| a dict, a pydantic model, a dataclass | itself |
| an MCP result | `{"output": ...}`: its structured content, else its text, else its content blocks |
| a failed MCP result | `{"error": ...}`, likewise |
| anything else | `{"result": ...}` |

Gemini's `functionResponse.response` is such an object; `output` and `error` are the keys it gives meaning to.
"""

import dataclasses
import sys
from typing import Any, cast

import pydantic
import pydantic_core

from sigadapt.signatures.subschemas import Json

_MODULES = ("mcp_types", "mcp.types")


def wrapped(value: object) -> Json:
    """A tool's value as an object.

    Args:
        value: what a tool gave: any value with a JSON form, or an MCP `CallToolResult`.

    Raises:
        pydantic_core.PydanticSerializationError: for a value that has no JSON form.

    Example:
        >>> wrapped([1, 2]), wrapped({"ok": True})
        ({'result': [1, 2]}, {'ok': True})
    """
    if is_mcp_result(value):
        return {"error" if is_failure(value) else "output": content(value)}
    plain: object = pydantic_core.to_jsonable_python(value, by_alias=True)
    is_object = isinstance(value, (dict, pydantic.BaseModel)) or dataclasses.is_dataclass(value)
    return cast("Json", plain) if is_object and isinstance(plain, dict) else {"result": plain}


def is_mcp_result(value: object) -> bool:
    """Whether a value is an MCP `CallToolResult`. The SDK is not imported: a result exists only if it was."""
    loaded = (sys.modules.get(name) for name in _MODULES)
    return any(isinstance(value, getattr(module, "CallToolResult", ())) for module in loaded)


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
