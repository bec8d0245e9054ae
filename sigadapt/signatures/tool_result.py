"""ToolResult: the result of one call, or the reason why it failed."""

from typing import Any, Protocol

import pydantic

from sigadapt.schemas.half_pairs import restored, savable


class _Named(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


class ToolResult(pydantic.BaseModel):
    """The result of one call.

    Args:
        call_id: the id of the call that it answers.
        name: the tool's name.
        value: text, or any value that has a JSON form.
        is_error: whether the call failed; `value` is then the reason.
        is_mcp: whether `value` is the content of an MCP result, which Gemini gets under the key `output`.

    Example:
        >>> ToolResult(call_id="call_1", name="search", value="No network.", is_error=True).value
        'No network.'
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
        """Return a failed result for a call that was not run: providers refuse a call without a result.

        Example:
            >>> from sigadapt import ToolCall
            >>> ToolResult.unanswered(ToolCall(id="call_1", name="search", args={})).is_error
            True
        """
        return cls(call_id=call.id, name=call.name, value="This call was not answered.", is_error=True)
