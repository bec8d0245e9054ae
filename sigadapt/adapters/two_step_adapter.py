"""DSPy's TwoStepAdapter plus tool calling; a second model reads fields from free text."""

from typing import Any, ClassVar

import dspy
from dspy import BaseLM
from dspy.signatures.signature import Signature
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError
from typing_extensions import Unpack

from sigadapt.adapters.options import ToolOptions, lists_options
from sigadapt.adapters.tool_adapter import ToolAdapter


class TwoStepAdapter(ToolAdapter, dspy.TwoStepAdapter):
    """DSPy's TwoStepAdapter, with typed calls for signatures that have tool fields.

    The second model reads only answers without calls. If an answer has calls, its text stays in
    `ToolCalls.text`.

    Args:
        extraction_model: the second model, as in DSPy.
        callbacks: as in DSPy.
        use_native_function_calling: as in DSPy, where False is the default. False prompts models that
            `tool_calling="auto"` would send tools natively; None leaves it to `tool_calling`.
        native_response_types: as in DSPy.
        parallel_tool_calls: whether one answer may have several calls; None leaves it to the provider.
        options: the options of `ChatAdapter`, which documents them.

    Raises:
        InvalidOption: for an unknown option, or an invalid value of an option.

    Example:
        >>> isinstance(TwoStepAdapter(dspy.LM("openai/gpt-4o-mini")), dspy.TwoStepAdapter)
        True
    """

    field_marker: ClassVar[str] = ""
    parses_beside_calls = False
    use_json_adapter_fallback = False

    @lists_options
    def __init__(
        self,
        extraction_model: BaseLM,
        callbacks: list[BaseCallback] | None = None,
        use_native_function_calling: bool | None = None,
        native_response_types: list[Any] | None = None,
        parallel_tool_calls: bool | None = None,
        **options: Unpack[ToolOptions],
    ) -> None:
        dspy.TwoStepAdapter.__init__(
            self,
            extraction_model,
            callbacks=callbacks,
            use_native_function_calling=use_native_function_calling is True,
            native_response_types=native_response_types,
            parallel_tool_calls=parallel_tool_calls,
        )
        self._configure(options, use_native_function_calling, parallel_tool_calls)

    def text_description(self, signature: type[Signature]) -> str:
        """Return the system text: DSPy's description of the task, which asks for free text."""
        return self.format_task_description(signature)

    def text_reminder(self, signature: type[Signature]) -> str:
        """Return an empty text, because free text needs no reminder of its form."""
        return ""

    async def aparse(self, signature: type[Signature], text: str) -> dict[str, Any]:
        """Parse a text as `parse` does, but await the second model.

        Raises:
            dspy.utils.exceptions.AdapterParseError: if the second model does not extract the fields.
        """
        extractor = self._create_extractor_signature(signature)
        signature_class: Any = signature  # DSPy annotates an instance, and passes classes
        try:
            outputs = await dspy.ChatAdapter().acall(self.extraction_model, {}, extractor, [], {"text": text})
        except AdapterParseError as error:
            raise AdapterParseError(
                adapter_name=type(self).__name__,
                signature=signature_class,
                lm_response=text,
                message=f"The second model did not extract the fields: {error.message}",
            ) from error
        return outputs[0]
