"""DSPy's JSONAdapter with lossless tool calling: text fields as one JSON object."""

from collections.abc import Sequence
from typing import Any, get_origin

import dspy
import pydantic
from dspy import BaseLM
from dspy.signatures.signature import Signature
from dspy.utils.callback import BaseCallback
from typing_extensions import Never

from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.options import OnInvalid, ToolCalling, ToolChoice
from sigadapt.adapters.tool_adapter import ToolAdapter
from sigadapt.schemas.caches import WeakCache


class JSONAdapter(ChatAdapter, dspy.JSONAdapter):
    """JSON text, and typed calls where a signature has tool fields.

    Args:
        callbacks: as in DSPy.
        use_native_function_calling: as in DSPy, for signatures without tool fields.
        parallel_tool_calls: whether one answer may hold several calls; None leaves it to the provider.
        tool_calling: `native` sends declarations as the provider's own tools; `auto` does so where DSPy knows
            that the model supports function calling, and refuses, with the reason, where it does not.
        tool_choice: `auto`, `required`, `none`, a tool's name, or several names; None leaves it to the model.
        on_invalid: what becomes of a bad call. `raise` a ToolCallParseError; `keep` it in
            `ToolCalls.invalid`; or `reask`: send the errors back as failed results, ask again, and raise if
            that does not help.
        max_reasks: how many times `reask` asks again.
        validate_args: whether calls are checked against the declarations.
        repair: whether arguments that are not JSON are repaired where they can be; such a call is marked.
        unwrap: whether arguments that were encoded as JSON text once too often are decoded; likewise marked.
        strict: whether every tool asks for the provider's strict mode; a declaration's own comes first.
        hooks: objects around the model call, asked in order (`adapters/hooks.py`).

    Raises:
        InvalidOption: for an unknown option, or a value that an option does not take.

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
        *,
        tool_calling: ToolCalling = "auto",
        tool_choice: ToolChoice | None = None,
        on_invalid: OnInvalid = "raise",
        max_reasks: int = 1,
        validate_args: bool = True,
        repair: bool = False,
        unwrap: bool = False,
        strict: bool = False,
        hooks: Sequence[Any] = (),
        **unknown: Never,
    ) -> None:
        dspy.JSONAdapter.__init__(self, callbacks, use_native_function_calling, parallel_tool_calls)
        self._configure(
            unknown,
            tool_calling=tool_calling,
            tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            on_invalid=on_invalid,
            max_reasks=max_reasks,
            validate_args=validate_args,
            repair=repair,
            unwrap=unwrap,
            strict=strict,
            hooks=hooks,
        )

    def response_format(self, lm: BaseLM, rest: type[Signature]) -> dict[str, Any] | None:
        """Return a schema of the text outputs where the model takes one, else JSON mode where it takes that.

        Never with a strict flag: nobody asked for one (rule 9). OpenAI wants a schema to have a name.
        """
        if "response_format" not in lm.supported_params:
            return None
        schema = _schema_of(rest) if lm.supports_response_schema else None
        if schema is None:
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": {"name": "response", "schema": schema}}


# The other adapters ask again through this one, as DSPy's do. They cannot import it: it is built on them.
ToolAdapter.fallback = JSONAdapter
JSONAdapter.fallback = None

_SCHEMAS: WeakCache[dict[str, Any] | None] = WeakCache()
"""The schema of a signature's text outputs."""


def _schema_of(rest: type[Signature]) -> dict[str, Any] | None:
    return _SCHEMAS.of(rest, lambda: _made_schema(rest))


def _made_schema(rest: type[Signature]) -> dict[str, Any] | None:
    """The schema of a signature's outputs; None for an open mapping, which providers refuse."""
    fields: Any = {name: (field.annotation, ...) for name, field in rest.output_fields.items()}
    if any(get_origin(annotation) is dict for annotation, _ in fields.values()):
        return None
    closed = pydantic.ConfigDict(extra="forbid")
    return pydantic.create_model("response", __config__=closed, **fields).model_json_schema()
