"""DSPy's JSONAdapter with lossless tool calling: text fields as one JSON object."""

from typing import Any, get_origin
from weakref import WeakKeyDictionary

import dspy
import pydantic
from dspy.clients.base_lm import BaseLM
from dspy.signatures.signature import Signature
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

    def response_format(self, lm: BaseLM, rest: type[Signature]) -> dict[str, Any] | None:
        """A schema of the text outputs where the model takes one, else JSON mode where it takes that.

        Never with a strict flag: nobody asked for one (rule 9). OpenAI wants a schema to have a name.
        """
        if "response_format" not in lm.supported_params:
            return None
        schema = _schema_of(rest) if lm.supports_response_schema else None
        if schema is None:
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": {"name": "response", "schema": schema}}

    def _json_fallback(self) -> ToolAdapter | None:
        return None  # it is what the others fall back on


_SCHEMAS: WeakKeyDictionary[type[Signature], dict[str, Any] | None] = WeakKeyDictionary()


def _schema_of(rest: type[Signature]) -> dict[str, Any] | None:
    """The schema of a signature's outputs, made once; None for an open mapping, which providers refuse."""
    if rest not in _SCHEMAS:
        fields: Any = {name: (field.annotation, ...) for name, field in rest.output_fields.items()}
        if any(get_origin(annotation) is dict for annotation, _ in fields.values()):
            _SCHEMAS[rest] = None
        else:
            closed = pydantic.ConfigDict(extra="forbid")
            _SCHEMAS[rest] = pydantic.create_model(
                "response", __config__=closed, **fields
            ).model_json_schema()
    return _SCHEMAS[rest]
