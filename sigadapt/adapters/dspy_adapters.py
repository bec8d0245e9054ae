"""DSPy's adapters plus tool calling: each says how its text marks the output fields.

| adapter | a field in the text |
|---|---|
| `ChatAdapter` | a marker, `[[ ## name ## ]]` |
| `XMLAdapter` | an element |
| `JSONAdapter`, `BAMLAdapter` | a member of one JSON object |
| `TwoStepAdapter` | none: a second model reads fields from free text |
"""

from typing import Any, ClassVar, get_origin

import dspy
import pydantic
from dspy import BaseLM
from dspy.adapters import baml_adapter
from dspy.signatures.signature import Signature
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError
from typing_extensions import Unpack

from sigadapt.adapters.options import ToolOptions, lists_options
from sigadapt.adapters.output_format import CHAT_MARKER
from sigadapt.adapters.plan import prompt_cache
from sigadapt.adapters.tool_adapter import ToolAdapter


class ChatAdapter(ToolAdapter, dspy.ChatAdapter):
    """The default adapter: DSPy's ChatAdapter, with typed calls for signatures that have tool fields.

    Args:
        callbacks: as in DSPy.
        use_native_function_calling: as in DSPy, where False is the default. False prompts models that would
            get native tools under `tool_calling="auto"`; None leaves it to `tool_calling`.
        native_response_types: as in DSPy.
        use_json_adapter_fallback: as in DSPy, if text does not parse; never because of a bad call.
        parallel_tool_calls: whether one answer may have several calls; None leaves it to the provider.
        tool_calling: `native` sends declarations as the provider's own tools. `prompted` describes them in
            the prompt and reads the calls from the text. `auto` decides for each model. A mapping from model
            names to these decides by name, and leaves other models to `auto`.
        tool_choice: `auto`, `required`, `none`, a tool's name, several names, or an object as a provider
            documents it; None leaves it to the model. A tool that the provider runs has its name or its type.
        on_invalid: what to do with a bad call. `raise` raises a ToolCallParseError; `keep` puts it in
            `ToolCalls.invalid`; `reask` sends the errors back as failed results, asks again, and raises if
            the answer still has bad calls. None, the default, raises, except in a `dspy.ToolCalls` field,
            which belongs to a loop: there, a bad call becomes one that fails when it is run.
        max_reasks: how many times `reask` asks again.
        max_pauses: how many times a turn that its provider paused (Anthropic's `pause_turn`) is sent back.
        replay_reasoning: whether reasoning goes back to an OpenAI-compatible server. By default, a server
            gets its own in the field that it came in. `False` keeps it here. `"reasoning"` or
            `"reasoning_content"`, or a mapping from model names to one, sends it in that field, also to
            another server.
        validate_args: whether calls are checked against the declarations.
        repair: whether to repair arguments that are not JSON, if possible, and to cut template tokens off
            names (`ls<|channel|>commentary`); such a call is marked `repaired`.
        unwrap: whether to decode arguments that were encoded as JSON text twice; marked `unwrapped`.
        strict: whether to ask for the provider's strict mode; a declaration's own `strict` comes first.
        hooks: objects called around the model call, in order (`adapters/hooks.py`).
        recover: whether to read calls from the text of a native answer without calls; marked `recovered`.
        call_format: the text format in which the prompt asks for calls.
        formats: the text formats in which calls are read: names, and `response.ResponseTemplate`s of models;
            None for all. Used with `recover=True` and with prompted calls.
        max_tool_bytes: the most bytes of JSON that a request's tools may have; None for any.
        orphans: what to do with a call without a result, or a result without a call, in a history. `raise`
            raises an InvalidHistory that names it. `heal` gives the call a failed result, drops the result,
            and records both.
        confirm: what to do with a turn whose calls require confirmation. `"raise"` raises InputNeeded
            before anything of the turn has run, in `dspy.ReActV2` too. None leaves them to the program; an
            agent whose tool asks nobody is then refused.
        tool_errors: what the model reads of a tool that failed in one of DSPy's agents: its `message`, as
            `Type: message`, or DSPy's `traceback`.
        control_tokens: what becomes of control tokens of chat templates (`<|im_end|>`, `[INST]`) in results,
            descriptions and arguments, on a server that may read them as its own: `break` sends them with a
            zero-width joiner, and makes them whole in the calls of the answer; `keep` sends them as they are.
        bridge_results: whether the model says one fixed sentence between results and a question, for chat
            templates that refuse a question behind results, such as Mistral's.

    Raises:
        InvalidOption: for an unknown option, or an invalid value of an option.

    Example:
        >>> adapter = ChatAdapter(on_invalid="keep")
        >>> isinstance(adapter, dspy.ChatAdapter)
        True
    """

    field_marker: ClassVar[str] = CHAT_MARKER

    @lists_options
    def __init__(
        self,
        callbacks: list[BaseCallback] | None = None,
        use_native_function_calling: bool | None = None,
        native_response_types: list[Any] | None = None,
        use_json_adapter_fallback: bool = True,
        parallel_tool_calls: bool | None = None,
        **options: Unpack[ToolOptions],
    ) -> None:
        dspy.ChatAdapter.__init__(
            self,
            callbacks,
            use_native_function_calling is True,
            native_response_types,
            use_json_adapter_fallback,
            parallel_tool_calls,
        )
        self._configure(options, use_native_function_calling, parallel_tool_calls)

    def is_complete(self, signature: type[Signature], text: str) -> bool:
        """Return whether the text has the mark that ends the fields."""
        return CHAT_MARKER.format("completed") in text


class XMLAdapter(ChatAdapter, dspy.XMLAdapter):
    """DSPy's XMLAdapter, with typed calls for signatures that have tool fields.

    Takes the same arguments as `ChatAdapter`.

    Example:
        >>> isinstance(XMLAdapter(), dspy.XMLAdapter)
        True
    """

    field_marker: ClassVar[str] = "<{}>"

    def is_complete(self, signature: type[Signature], text: str) -> bool:
        """Return whether all elements are closed."""
        return all(f"</{name}>" in text for name in signature.output_fields)


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
