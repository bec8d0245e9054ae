"""DSPy's JSONAdapter plus tool calling that loses nothing; text fields are one JSON object."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, get_origin

import dspy
import pydantic
from dspy import BaseLM
from dspy.signatures.signature import Signature
from dspy.utils.callback import BaseCallback
from typing_extensions import Never

from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.options import OnInvalid, ToolCalling, ToolChoice, with_switch
from sigadapt.adapters.tool_adapter import ToolAdapter
from sigadapt.schemas.caches import WeakCache


class JSONAdapter(ChatAdapter, dspy.JSONAdapter):
    """DSPy's JSONAdapter, with typed calls for signatures that have tool fields.

    Args:
        callbacks: as in DSPy.
        use_native_function_calling: as in DSPy, where True is the default. False prompts models that
            `tool_calling="auto"` would send tools natively; None leaves it to `tool_calling`.
        parallel_tool_calls: whether one answer may have several calls; None leaves it to the provider.
        tool_calling: `native` sends declarations as the provider's own tools. `prompted` describes them in
            the prompt and reads the calls from the text. `auto` decides for each model. A mapping from model
            names to these decides by name, and leaves other models to `auto`.
        tool_choice: `auto`, `required`, `none`, a tool's name, or several names; None leaves it to the model.
        on_invalid: what to do with a bad call. `raise` raises a ToolCallParseError; `keep` puts it in
            `ToolCalls.invalid`; `reask` sends the errors back as failed results, asks again, and raises if
            the answer still has bad calls. None, the default, raises; but in a `dspy.ToolCalls` field, which
            belongs to somebody's loop, all but `raise` hand on a bad call as one that fails when it is run.
        max_reasks: how many times `reask` asks again.
        validate_args: whether calls are checked against the declarations.
        repair: whether to repair arguments that are not JSON, if possible; such a call is marked `repaired`.
        unwrap: whether to decode arguments that were encoded as JSON text twice; marked `unwrapped`.
        strict: whether to ask for the provider's strict mode; a declaration's own `strict` comes first.
        hooks: objects called around the model call, in order (`adapters/hooks.py`).
        recover: whether calls are read from the text of a native answer that has none; marked `recovered`.
        call_format: the text format in which prompted calls are asked for.
        max_tool_bytes: the most bytes of JSON that a request's tools may have; None for any.

    Raises:
        InvalidOption: for an unknown option, or an invalid value of an option.

    Example:
        >>> isinstance(JSONAdapter(), dspy.JSONAdapter)
        True
    """

    field_marker: ClassVar[str] = '"{}"'

    def __init__(
        self,
        callbacks: list[BaseCallback] | None = None,
        use_native_function_calling: bool | None = None,  # noqa: FBT001  (DSPy's own parameter list)
        parallel_tool_calls: bool | None = None,  # noqa: FBT001
        *,
        tool_calling: ToolCalling | Mapping[str, ToolCalling] = "auto",
        tool_choice: ToolChoice | None = None,
        on_invalid: OnInvalid | None = None,
        max_reasks: int = 1,
        validate_args: bool = True,
        repair: bool = False,
        unwrap: bool = False,
        strict: bool = False,
        hooks: Sequence[Any] = (),
        recover: bool = False,
        call_format: str = "hermes",
        max_tool_bytes: int | None = None,
        **unknown: Never,
    ) -> None:
        dspy.JSONAdapter.__init__(
            self, callbacks, use_native_function_calling is not False, parallel_tool_calls
        )
        self._configure(
            unknown,
            tool_calling=with_switch(tool_calling, use_native_function_calling),
            tool_choice=tool_choice,
            parallel_tool_calls=parallel_tool_calls,
            on_invalid=on_invalid,
            max_reasks=max_reasks,
            validate_args=validate_args,
            repair=repair,
            unwrap=unwrap,
            strict=strict,
            hooks=hooks,
            recover=recover,
            call_format=call_format,
            max_tool_bytes=max_tool_bytes,
        )

    def is_complete(self, rest: type[Signature], text: str) -> bool:  # noqa: ARG002
        """Return whether the text ends the object that it begins."""
        return text.rstrip().removesuffix("```").rstrip().endswith("}")

    def response_format(self, lm: BaseLM, rest: type[Signature]) -> dict[str, Any] | None:
        """Return the response format to ask for: a JSON Schema, JSON mode, or None.

        The schema describes the text outputs, if the model supports schemas. It has a name, which OpenAI
        requires, and no strict flag, which the user did not ask for (strict on request).

        Args:
            lm: the language model, whose support decides.
            rest: the signature without its tool fields.

        Example:
            >>> lm = dspy.LM("openai/gpt-4o-mini")
            >>> JSONAdapter().response_format(lm, dspy.Signature("question -> answer"))["type"]
            'json_schema'
        """
        if "response_format" not in lm.supported_params:
            return None
        schema = _schema_of(rest) if lm.supports_response_schema else None
        if schema is None:
            return {"type": "json_object"}
        return {"type": "json_schema", "json_schema": {"name": "response", "schema": schema}}


# As in DSPy, the other adapters fall back to this one. They cannot import it, because it imports them.
ToolAdapter.fallback = JSONAdapter
JSONAdapter.fallback = None

_SCHEMAS: WeakCache[dict[str, Any] | None] = WeakCache()
"""The JSON Schema of a signature's text outputs, by signature."""


def _schema_of(rest: type[Signature]) -> dict[str, Any] | None:
    return _SCHEMAS.of(rest, lambda: _made_schema(rest))


def _made_schema(rest: type[Signature]) -> dict[str, Any] | None:
    """Return the JSON Schema of the outputs; None if one is a dict, whose open schema providers refuse."""
    fields: Any = {name: (field.annotation, ...) for name, field in rest.output_fields.items()}
    if any(get_origin(annotation) is dict for annotation, _ in fields.values()):
        return None
    closed = pydantic.ConfigDict(extra="forbid")
    return pydantic.create_model("response", __config__=closed, **fields).model_json_schema()
