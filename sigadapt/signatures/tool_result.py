"""ToolResult: what one call gave, or why it failed."""

from typing import Any, Protocol

import pydantic

from sigadapt.schemas.half_pairs import restored, savable


class _Named(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


class ToolResult(pydantic.BaseModel):
    """What one call gave.

    Args:
        call_id: the id of the call it answers.
        name: the tool's name.
        value: text, or any value that has a JSON form.
        is_error: whether the call failed; `value` then says why.
        is_mcp: whether `value` is what an MCP server's result said; Gemini gets it under a key of its own.

    Example:
        >>> from sigadapt import ToolCall
        >>> ToolResult.unanswered(ToolCall(id="call_1", name="search", args={})).is_error
        True
    """

    model_config = pydantic.ConfigDict(frozen=True)

    call_id: str
    name: str
    value: Any
    is_error: bool = False
    is_mcp: bool = False

    @pydantic.model_validator(mode="before")
    @classmethod
    def _restore(cls, data: Any, info: pydantic.ValidationInfo) -> Any:
        return restored(data) if info.mode == "json" else data  # a Round restores its own

    @pydantic.model_serializer()
    def _save(self) -> dict[str, Any]:
        return savable(dict(vars(self)))

    @classmethod
    def unanswered(cls, call: _Named) -> "ToolResult":
        """Mark a call as not answered: no provider takes a call without a result."""
        return cls(call_id=call.id, name=call.name, value="This call was not answered.", is_error=True)
