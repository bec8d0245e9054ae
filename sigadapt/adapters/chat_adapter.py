"""DSPy's ChatAdapter with lossless tool calling: text fields under `[[ ## name ## ]]` headers."""

from typing import Any

import dspy
from dspy.utils.callback import BaseCallback
from typing_extensions import Unpack

from sigadapt.adapters.tool_adapter import ToolAdapter, ToolOptions


class ChatAdapter(ToolAdapter, dspy.ChatAdapter):
    """The default adapter; where a signature has tool fields, calls come back typed and whole.

    Args:
        callbacks: as in DSPy.
        use_native_function_calling: as in DSPy, for signatures without tool fields.
        native_response_types: as in DSPy.
        use_json_adapter_fallback: as in DSPy, for text that does not parse; never for a bad call (rule 5).
        parallel_tool_calls: whether one answer may hold several calls; None leaves it to the provider.
        **options: the further keywords of `sigadapt.adapters.options.Options`.

    Raises:
        InvalidOption: for an option there is not, or a value it does not take.

    Example:
        >>> adapter = ChatAdapter(on_invalid="keep")
        >>> isinstance(adapter, dspy.ChatAdapter)
        True
    """

    field_marker = "[[ ## {} ## ]]"

    def __init__(
        self,
        callbacks: list[BaseCallback] | None = None,
        use_native_function_calling: bool = False,  # noqa: FBT001, FBT002  (DSPy's own parameter list)
        native_response_types: list[Any] | None = None,
        use_json_adapter_fallback: bool = True,  # noqa: FBT001, FBT002
        parallel_tool_calls: bool | None = None,  # noqa: FBT001
        **options: Unpack[ToolOptions],
    ) -> None:
        dspy.ChatAdapter.__init__(
            self,
            callbacks,
            use_native_function_calling,
            native_response_types,
            use_json_adapter_fallback,
            parallel_tool_calls,
        )
        self._configure(parallel_tool_calls, options)

    def _json_fallback(self) -> ToolAdapter | None:
        from sigadapt.adapters.json_adapter import JSONAdapter  # noqa: PLC0415  (which imports this file)

        adapter = JSONAdapter()
        adapter.options = self.options
        return adapter
