"""DSPy's JSONAdapter with lossless tool calling: text fields as one JSON object."""

import dspy
from dspy.utils.callback import BaseCallback
from typing_extensions import Unpack

from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.tool_adapter import ToolAdapter, ToolOptions


class JSONAdapter(ChatAdapter, dspy.JSONAdapter):
    """JSON text, and typed calls where a signature has tool fields.

    Args:
        callbacks: as in DSPy.
        use_native_function_calling: as in DSPy, for signatures without tool fields.
        parallel_tool_calls: whether one answer may hold several calls; None leaves it to the provider.
        **options: the further keywords of `sigadapt.adapters.options.Options`.

    Raises:
        InvalidOption: for an option there is not, or a value it does not take.

    Example:
        >>> isinstance(JSONAdapter(), dspy.JSONAdapter)
        True
    """

    field_marker = '"{}"'

    def __init__(
        self,
        callbacks: list[BaseCallback] | None = None,
        use_native_function_calling: bool = True,  # noqa: FBT001, FBT002  (DSPy's own parameter list)
        parallel_tool_calls: bool | None = None,  # noqa: FBT001
        **options: Unpack[ToolOptions],
    ) -> None:
        dspy.JSONAdapter.__init__(self, callbacks, use_native_function_calling, parallel_tool_calls)
        self._configure(parallel_tool_calls, options)

    def _json_fallback(self) -> ToolAdapter | None:
        return None  # it is what the others fall back on
