"""DSPy's JSONAdapter and BAMLAdapter plus tool calling; text fields are one JSON object."""

from typing import Any, ClassVar, get_origin

import dspy
import pydantic
from dspy import BaseLM
from dspy.adapters import baml_adapter
from dspy.signatures.signature import Signature
from dspy.utils.callback import BaseCallback
from typing_extensions import Unpack

from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.options import ToolOptions, lists_options
from sigadapt.adapters.plan import prompt_cache


class JSONAdapter(ChatAdapter, dspy.JSONAdapter):
    """DSPy's JSONAdapter, with typed calls for signatures that have tool fields.

    Args:
        callbacks: as in DSPy.
        use_native_function_calling: as in DSPy, where True is the default. False prompts models that
            `tool_calling="auto"` would send tools natively; None leaves it to `tool_calling`.
        parallel_tool_calls: whether one answer may have several calls; None leaves it to the provider.
        options: the options of `ChatAdapter`, which documents them.

    Raises:
        InvalidOption: for an unknown option, or an invalid value of an option.

    Example:
        >>> isinstance(JSONAdapter(), dspy.JSONAdapter)
        True
    """

    field_marker: ClassVar[str] = '"{}"'

    @lists_options
    def __init__(
        self,
        callbacks: list[BaseCallback] | None = None,
        use_native_function_calling: bool | None = None,
        parallel_tool_calls: bool | None = None,
        **options: Unpack[ToolOptions],
    ) -> None:
        dspy.JSONAdapter.__init__(
            self, callbacks, use_native_function_calling is not False, parallel_tool_calls
        )
        self._configure(options, use_native_function_calling, parallel_tool_calls)

    def is_complete(self, signature: type[Signature], text: str) -> bool:
        """Return whether the text ends the object that it begins."""
        return text.rstrip().removesuffix("```").rstrip().endswith("}")

    def response_format(self, lm: BaseLM, signature: type[Signature]) -> dict[str, Any] | None:
        """Return the response format to ask for: a JSON Schema, JSON mode, or None.

        The schema describes the text outputs, if the model supports schemas. It has a name, which OpenAI
        requires, and no strict flag, which the user did not ask for (strict on request).

        Args:
            lm: the language model, whose support decides.
            signature: the signature without its tool fields.

        Example:
            >>> lm = dspy.LM("openai/gpt-4o-mini")
            >>> JSONAdapter().response_format(lm, dspy.Signature("question -> answer"))["type"]
            'json_schema'
        """
        if "response_format" not in lm.supported_params:
            return None
        schema = None
        if lm.supports_response_schema:
            schema = prompt_cache(signature).once("json schema", lambda: _schema_of(signature))
        if schema is None:
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": {"name": "response", "schema": schema}}


def _schema_of(signature: type[Signature]) -> dict[str, Any] | None:
    """Return the JSON Schema of the outputs; None if one is a dict, whose open schema providers refuse."""
    fields: Any = {name: (field.annotation, ...) for name, field in signature.output_fields.items()}
    if any(get_origin(annotation) is dict for annotation, _ in fields.values()):
        return None
    config = pydantic.ConfigDict(extra="forbid")
    return pydantic.create_model("response", __config__=config, **fields).model_json_schema()


class BAMLAdapter(JSONAdapter, baml_adapter.BAMLAdapter):
    """DSPy's BAMLAdapter, with typed calls for signatures that have tool fields.

    Takes the same arguments as `JSONAdapter`.

    Example:
        >>> isinstance(BAMLAdapter(), baml_adapter.BAMLAdapter)
        True
    """
