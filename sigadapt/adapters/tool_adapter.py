"""What the adapters of this package share: where a signature has tool fields, sigadapt's pipeline runs.

Everything else is DSPy's: a signature without tool fields takes DSPy's own path from the first line to the
last (rule 2). Each adapter is this class over DSPy's of the same name, plus how its text marks a field.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, cast

from dspy.adapters.types.base_type import Type
from dspy.clients.base_lm import BaseLM
from dspy.signatures.signature import Signature
from dspy.utils import callback
from dspy.utils.exceptions import AdapterParseError

from sigadapt.adapters import pipeline
from sigadapt.adapters.conversation import messages_of
from sigadapt.adapters.hooks import check_hooks
from sigadapt.adapters.options import OnInvalid, Options, ToolCalling, ToolChoice, refuse_unknown
from sigadapt.adapters.plan import Plan, plan_of, turns_of
from sigadapt.adapters.prompt import described, form_of, in_own_words
from sigadapt.adapters.transport import asks_capabilities, fallback_scope, planned
from sigadapt.errors import ToolCallParseError


class ToolOptions(TypedDict, total=False):
    """The keywords an adapter takes beyond DSPy's; `options.Options` says what each means."""

    tool_calling: ToolCalling
    tool_choice: ToolChoice | None
    on_invalid: OnInvalid
    max_reasks: int
    validate_args: bool
    repair: bool
    unwrap: bool
    strict: bool
    hooks: Sequence[Any]


class _Prompt:
    """The one formatting step that DSPy's callbacks (`on_adapter_format_*`) see on a call with tools."""

    @callback.with_callbacks  # pyright: ignore[reportUntypedFunctionDecorator]
    def format(
        self, signature: type[Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        return messages_of(cast("ToolAdapter", self), signature, demos, inputs)


class ToolAdapter:
    """The tool-calling half of an adapter; mixed in before a DSPy adapter, which is the other half."""

    options: Options
    callbacks: list[Any]
    native_response_types: list[type[Type]]
    use_json_adapter_fallback: bool
    field_marker: ClassVar[str]
    """How this adapter's text names an output field, with `{}` for the name."""

    parses_beside_calls: ClassVar[bool] = True
    """Whether text beside calls is looked through for outputs; it stays in `ToolCalls.text` in any case."""

    if TYPE_CHECKING:  # the DSPy half, as far as it is called from here
        format_field_description: Callable[[type[Signature]], str]
        format_field_structure: Callable[[type[Signature]], str]
        format_task_description: Callable[[type[Signature]], str]
        format_user_message_content: Callable[..., str]
        user_message_output_requirements: Callable[[type[Signature]], str]
        format_assistant_message_content: Callable[[type[Signature], dict[str, Any]], str]
        format_demos: Callable[[type[Signature], list[dict[str, Any]]], list[dict[str, Any]]]
        parse: Callable[[type[Signature], str], dict[str, Any]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Not DSPy's own: that wraps inherited methods once more, and its callbacks would fire once more.
        for name in ("format", "parse"):
            if name in vars(cls):
                setattr(cls, name, callback.with_callbacks(vars(cls)[name]))

    def _configure(self, parallel_tool_calls: bool | None, options: Mapping[str, Any]) -> None:  # noqa: FBT001
        refuse_unknown(type(self).__name__, options, list(ToolOptions.__annotations__))
        self.options = Options(parallel_tool_calls=parallel_tool_calls, **options)
        check_hooks(self.options.hooks)

    def __call__(  # noqa: D102  (Adapter's own)
        self,
        lm: BaseLM,
        lm_kwargs: dict[str, Any],
        signature: type[Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        plan = plan_of(signature)
        if plan is None:
            return cast("Any", super()).__call__(lm, lm_kwargs, signature, demos, inputs)
        call = pipeline.Call(lm, dict(lm_kwargs), signature, plan, demos, inputs)
        if asks_capabilities(self.options, plan):
            return self._run(lm, lm_kwargs, call)
        return pipeline.run(self, call)

    async def acall(  # noqa: D102
        self,
        lm: BaseLM,
        lm_kwargs: dict[str, Any],
        signature: type[Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        plan = plan_of(signature)
        if plan is None:
            return await cast("Any", super()).acall(lm, lm_kwargs, signature, demos, inputs)
        call = pipeline.Call(lm, dict(lm_kwargs), signature, plan, demos, inputs)
        if asks_capabilities(self.options, plan):
            return await self._arun(lm, lm_kwargs, call)
        return await pipeline.arun(self, call)

    @planned
    def _run(self, lm: BaseLM, lm_kwargs: dict[str, Any], call: pipeline.Call) -> pipeline.Outputs:
        with fallback_scope() as progress:
            try:
                return pipeline.run(self, call)
            except AdapterParseError as error:
                fallback = self._fallback(error, call.plan, emitted=progress.emitted)
                if fallback is None:
                    raise
                return fallback(lm, lm_kwargs, call.signature, call.demos, call.inputs)

    @planned
    async def _arun(self, lm: BaseLM, lm_kwargs: dict[str, Any], call: pipeline.Call) -> pipeline.Outputs:
        with fallback_scope() as progress:
            try:
                return await pipeline.arun(self, call)
            except AdapterParseError as error:
                fallback = self._fallback(error, call.plan, emitted=progress.emitted)
                if fallback is None:
                    raise
                return await fallback.acall(lm, lm_kwargs, call.signature, call.demos, call.inputs)

    def _fallback(self, error: AdapterParseError, plan: Plan, *, emitted: bool) -> "ToolAdapter | None":
        """The adapter that asks again after a text that did not parse; never after a bad call (rule 5)."""
        if not plan.texts or isinstance(error, ToolCallParseError):
            return None
        if emitted or not self.use_json_adapter_fallback:
            return None
        return self._json_fallback()

    def _json_fallback(self) -> "ToolAdapter | None":
        raise NotImplementedError

    def format(
        self, signature: type[Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """The messages for these inputs, as DSPy's `format`; tools are in the request, not in the words.

        Args:
            signature: the signature, or what its plan leaves of it.
            demos: few-shot examples.
            inputs: the input fields' values.
        """
        rest = _rest_of(signature)
        if rest is None:
            return cast("Any", super()).format(signature, demos, inputs)
        return _Prompt.format(cast("Any", self), rest, demos, inputs)

    def text_description(self, rest: type[Signature]) -> str:
        """The system text where there are text outputs: DSPy's words, made true beside tools."""
        if not in_own_words(self):
            return described(rest, _aside(form_of(self, rest)))
        return (
            f"{self.format_field_description(rest)}\n"
            f"{_aside(self.format_field_structure(rest))}\n"
            f"{self.format_task_description(rest)}"
        )

    def text_reminder(self, rest: type[Signature]) -> str:
        """What each question says of the text's form, where the adapter has words of its own."""
        return _aside(self.user_message_output_requirements(rest)) if in_own_words(self) else ""

    def response_format(self, lm: BaseLM, rest: type[Signature]) -> dict[str, Any] | None:  # noqa: ARG002
        """The response format to ask for; None for an adapter whose text is no JSON."""
        return None

    async def aparse(self, rest: type[Signature], text: str) -> dict[str, Any]:
        """`parse` for an adapter that waits for something while it parses."""
        return self.parse(rest, text)

    def holds_fields(self, rest: type[Signature], text: str) -> bool:
        """Whether a text names any of the output fields in this adapter's form."""
        return any(self.field_marker.format(name) in text for name in rest.output_fields)


def _aside(words: str) -> str:
    return f"Tool calls aside, {words[:1].lower()}{words[1:]}"


def _rest_of(signature: type[Signature]) -> type[Signature] | None:
    if turns_of(signature) is not None:
        return signature
    plan = plan_of(signature)
    return None if plan is None else plan.rest
