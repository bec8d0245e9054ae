"""DSPy's TwoStepAdapter with lossless tool calling: free text, whose fields a second model extracts."""

from typing import Any

import dspy
from dspy.clients.base_lm import BaseLM
from dspy.signatures.signature import Signature
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError
from typing_extensions import Unpack

from sigadapt.adapters.tool_adapter import ToolAdapter, ToolOptions


class TwoStepAdapter(ToolAdapter, dspy.TwoStepAdapter):
    """A natural prompt for the main model; a second model turns its text into fields, calls come back typed.

    Only text without calls is extracted from: calls need no second model, and text beside them stays in
    `ToolCalls.text`.

    Args:
        extraction_model: the second model, as in DSPy.
        callbacks: as in DSPy.
        use_native_function_calling: as in DSPy, for signatures without tool fields.
        native_response_types: as in DSPy.
        parallel_tool_calls: whether one answer may hold several calls; None leaves it to the provider.
        **options: the further keywords of `sigadapt.adapters.options.Options`.

    Raises:
        InvalidOption: for an option there is not, or a value it does not take.

    Example:
        >>> isinstance(TwoStepAdapter(dspy.LM("openai/gpt-4o-mini")), dspy.TwoStepAdapter)
        True
    """

    field_marker = ""
    parses_beside_calls = False
    use_json_adapter_fallback = False

    def __init__(
        self,
        extraction_model: BaseLM,
        callbacks: list[BaseCallback] | None = None,
        use_native_function_calling: bool = False,  # noqa: FBT001, FBT002  (DSPy's own parameter list)
        native_response_types: list[Any] | None = None,
        parallel_tool_calls: bool | None = None,  # noqa: FBT001
        **options: Unpack[ToolOptions],
    ) -> None:
        dspy.TwoStepAdapter.__init__(
            self,
            extraction_model,
            callbacks=callbacks,
            use_native_function_calling=use_native_function_calling,
            native_response_types=native_response_types,
            parallel_tool_calls=parallel_tool_calls,
        )
        self._configure(parallel_tool_calls, options)

    def text_description(self, rest: type[Signature]) -> str:
        """DSPy's description of the task; it asks for no form."""
        return self.format_task_description(rest)

    def text_reminder(self, rest: type[Signature]) -> str:  # noqa: ARG002
        """Nothing: the text has no form."""
        return ""

    async def aparse(self, rest: type[Signature], text: str) -> dict[str, Any]:
        """`parse`, with the second model awaited."""
        signature = self._create_extractor_signature(rest)
        try:
            found = await dspy.ChatAdapter().acall(self.extraction_model, {}, signature, [], {"text": text})
        except AdapterParseError as error:
            raise AdapterParseError(
                adapter_name=type(self).__name__,
                signature=rest,  # pyright: ignore[reportArgumentType]
                lm_response=text,
                message=f"The second model did not extract the fields: {error.message}",
            ) from error
        return found[0]

    def _json_fallback(self) -> None:
        return None
