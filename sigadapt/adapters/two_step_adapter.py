"""DSPy's TwoStepAdapter plus tool calling that loses nothing; a second model reads fields from free text."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import dspy
from dspy import BaseLM
from dspy.signatures.signature import Signature
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError
from typing_extensions import Never

from sigadapt.adapters.options import OnInvalid, ToolCalling, ToolChoice, with_switch
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
        >>> isinstance(TwoStepAdapter(dspy.LM("openai/gpt-4o-mini")), dspy.TwoStepAdapter)
        True
    """

    field_marker: ClassVar[str] = ""
    parses_beside_calls = False
    use_json_adapter_fallback = False

    def __init__(
        self,
        extraction_model: BaseLM,
        callbacks: list[BaseCallback] | None = None,
        use_native_function_calling: bool | None = None,  # noqa: FBT001  (DSPy's own parameter list)
        native_response_types: list[Any] | None = None,
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
        dspy.TwoStepAdapter.__init__(
            self,
            extraction_model,
            callbacks=callbacks,
            use_native_function_calling=use_native_function_calling is True,
            native_response_types=native_response_types,
            parallel_tool_calls=parallel_tool_calls,
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

    def text_description(self, rest: type[Signature]) -> str:
        """Return the system text: DSPy's description of the task, which asks for free text."""
        return self.format_task_description(rest)

    def text_reminder(self, rest: type[Signature]) -> str:  # noqa: ARG002
        """Return an empty text, because free text needs no reminder of its form."""
        return ""

    async def aparse(self, rest: type[Signature], text: str) -> dict[str, Any]:
        """Parse a text as `parse` does, but await the second model.

        Raises:
            dspy.utils.exceptions.AdapterParseError: if the second model does not extract the fields.
        """
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
