"""The base of all adapters: signatures with tool fields run the flow of `call.py`, others run DSPy's own.

A signature without tool fields is handed to DSPy's adapter unchanged (opt-in). Each adapter class inherits
from `ToolAdapter` and from DSPy's adapter of the same name, and adds how its text marks an output field.
"""

from contextlib import nullcontext
from typing import Any, ClassVar, cast

from dspy import BaseLM
from dspy.signatures.signature import Signature
from dspy.utils.exceptions import AdapterParseError

from sigadapt.adapters.call import Outputs, steps
from sigadapt.adapters.calling.call_record import AdapterCall
from sigadapt.adapters.hooks import check_hooks
from sigadapt.adapters.lm.routes import facts_of, route_of
from sigadapt.adapters.lm.to_lm15 import prompt_of
from sigadapt.adapters.options import Options, ToolOptions, refuse_unknown_options
from sigadapt.adapters.output_format import OutputFormat
from sigadapt.adapters.passes.prompts import check_call_format
from sigadapt.adapters.plan import Plan, plan_of, prompt_cache
from sigadapt.adapters.request.messages import messages_of
from sigadapt.adapters.request.prompt import describe, form_of, in_own_words
from sigadapt.adapters.response.text_choice import chosen_formats
from sigadapt.dspy_boundary.contract import rows_of
from sigadapt.dspy_boundary.current_run import tracer_here
from sigadapt.dspy_boundary.internals import planned, shown_scope, with_callbacks
from sigadapt.errors import InvalidOption, ToolCallParseError
from sigadapt.signatures.awaiting import arun, run

_ADAPTERS_OWN = frozenset(ToolOptions.__annotations__) - {"tool_choice", "parallel_tool_calls"}
"""The options that no request has, so that `config={...}` cannot mean a setting of the provider."""


class _CanonicalFormat:
    """The `format` of a call with tools, wrapped in DSPy's callbacks (`on_adapter_format_*`).

    `ToolAdapter.format` is not wrapped itself: without tools it calls DSPy's `format`, which already is.
    """

    @with_callbacks
    def format(self, signature: type[Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]) -> Any:
        return prompt_of(messages_of(cast("ToolAdapter", self), signature, demos, inputs))


class ToolAdapter(OutputFormat):
    """The tool-calling half of an adapter; the other half is the DSPy adapter that follows it as a base."""

    callbacks: list[Any]
    use_json_adapter_fallback: bool
    fills_tool_fields: ClassVar[bool] = True
    """Tells `ToolDecls.description` that this is not DSPy's own adapter."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # Replaces DSPy's own, which wraps inherited methods a second time, so that callbacks fire twice.
        for name in ("format", "parse"):
            if name in vars(cls):
                setattr(cls, name, with_callbacks(vars(cls)[name]))

    def _configure(
        self,
        options: ToolOptions,
        use_native_function_calling: bool | None,
        parallel_tool_calls: bool | None,
    ) -> None:
        refuse_unknown_options(type(self).__name__, options, list(ToolOptions.__annotations__))
        if use_native_function_calling is False and options.get("tool_calling", "auto") == "auto":
            options["tool_calling"] = "prompted"
        self.options = Options(**options, parallel_tool_calls=parallel_tool_calls)
        check_call_format(self.options.call_format)
        if self.options.formats is not None:
            chosen_formats(self.options.formats)
        check_hooks(self.options.hooks)

    def __call__(
        self,
        lm: BaseLM,
        lm_kwargs: dict[str, Any],
        signature: type[Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """Ask a language model for a predictor: by `call.py` with tool fields, by DSPy alone without."""
        plan = plan_of(signature)
        if plan is None:
            dspys: Any = super()
            tracer = tracer_here.get().tracer
            with nullcontext() if tracer is None else tracer.requests_of_dspy():
                return dspys.__call__(lm, lm_kwargs, signature, demos, inputs)
        call = self._adapter_call(plan, lm, lm_kwargs, (signature, demos, inputs))
        run_flow = self._run_planned if self._asks_capabilities(call) else self._run
        return run_flow(lm, lm_kwargs, call)

    async def acall(
        self,
        lm: BaseLM,
        lm_kwargs: dict[str, Any],
        signature: type[Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """Do what `__call__` does, and await the model."""
        plan = plan_of(signature)
        if plan is None:
            dspys: Any = super()
            tracer = tracer_here.get().tracer
            with nullcontext() if tracer is None else tracer.requests_of_dspy():
                return await dspys.acall(lm, lm_kwargs, signature, demos, inputs)
        call = self._adapter_call(plan, lm, lm_kwargs, (signature, demos, inputs))
        run_flow = self._arun_planned if self._asks_capabilities(call) else self._arun
        return await run_flow(lm, lm_kwargs, call)

    def _adapter_call(self, plan: Plan, lm: BaseLM, lm_kwargs: dict[str, Any], arguments: Any) -> AdapterCall:
        (signature, demos, inputs) = arguments
        settings = dict(lm_kwargs)
        for name in settings.keys() & _ADAPTERS_OWN:
            fix = f"Give it to the adapter: {type(self).__name__}({name}=...)."
            raise InvalidOption("is an option of the adapter, not of a request", field=name, fix=fix)
        return AdapterCall(self, lm, settings, signature, plan, demos, inputs, facts_of(lm, settings))

    def _asks_capabilities(self, call: AdapterCall) -> bool:
        """Return whether this call asks DSPy what its model can do, which costs async calls a thread."""
        asks = (
            self.options.tool_calling not in ("native", "prompted")
            and "calls functions" not in call.facts.values
        )
        if not asks and call.plan.texts:
            has_format = type(self).response_format is not ToolAdapter.response_format
            asks = has_format or bool(call.plan.native_fields)
        if asks:  # it refuses a model before DSPy asks LiteLLM where that is not installed
            route_of(call.lm, call.settings, facts=call.facts)
        return asks

    def _run(self, lm: BaseLM, lm_kwargs: dict[str, Any], call: AdapterCall) -> Outputs:
        with shown_scope() as progress:
            try:
                return run(steps(call))
            except AdapterParseError as error:
                fallback = self._fallback(error, call.plan, emitted=progress.emitted)
                if fallback is None:
                    raise
                return fallback(lm, lm_kwargs, call.signature, call.demos, call.inputs)

    async def _arun(self, lm: BaseLM, lm_kwargs: dict[str, Any], call: AdapterCall) -> Outputs:
        with shown_scope() as progress:
            try:
                return await arun(steps(call))
            except AdapterParseError as error:
                fallback = self._fallback(error, call.plan, emitted=progress.emitted)
                if fallback is None:
                    raise
                return await fallback.acall(lm, lm_kwargs, call.signature, call.demos, call.inputs)

    # DSPy's decorator takes the model and the settings from the arguments of these names.
    _run_planned = planned(_run)
    _arun_planned = planned(_arun)

    def _fallback(self, error: AdapterParseError, plan: Plan, *, emitted: bool) -> "ToolAdapter | None":
        """Return the adapter to ask again with, as in DSPy; None after a bad call, and for JSON itself."""
        from sigadapt.adapters.dspy_adapters import JSONAdapter  # a door: tests/test_repository.py

        # A stream that has shown text is not begun anew. One of an empty answer has shown nothing.
        if not plan.texts or isinstance(error, ToolCallParseError):
            return None
        if (emitted and error.lm_response) or not self.use_json_adapter_fallback:
            return None
        if isinstance(self, JSONAdapter):
            return None
        adapter = JSONAdapter()
        adapter.options = self.options
        return adapter

    def messages(
        self, signature: type[Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the messages for the `signature` of a Plan, which a `format` of the user's own may write."""
        if getattr(self.format, "__func__", None) is ToolAdapter.format:
            return rows_of(_CanonicalFormat.format(cast("Any", self), signature, demos, inputs))
        return rows_of(self.format(signature, demos, inputs))

    def format(self, signature: type[Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]) -> Any:
        """Return the messages for these inputs. They do not mention tools, which the Request holds itself.

        They are chat messages, and from DSPy 3.5 on a `dspy.adapters.Prompt`, as those of DSPy's adapters.

        Args:
            signature: the signature, or the `text_signature` of its Plan.
            demos: few-shot examples.
            inputs: the input fields' values.

        Raises:
            InvalidHistory: for a call without a result or a result without a call.
        """
        text_signature = signature
        if prompt_cache(signature).history_fields is None:  # it has its tool fields
            plan = plan_of(signature)
            if plan is None:
                dspys: Any = super()
                return dspys.format(signature, demos, inputs)
            text_signature = plan.text_signature
        return _CanonicalFormat.format(cast("Any", self), text_signature, demos, inputs)

    def text_description(self, signature: type[Signature]) -> str:
        """Return the system text: DSPy's words, but they ask for the text's form "tool calls aside"."""
        if not in_own_words(self):
            return describe(signature, _aside(form_of(self, signature)))
        return (
            f"{self.format_field_description(signature)}\n"
            f"{_aside(self.format_field_structure(signature))}\n"
            f"{self.format_task_description(signature)}"
        )

    def text_reminder(self, signature: type[Signature]) -> str:
        """Return what each question says about the text's form; empty if the adapter uses DSPy's words."""
        return _aside(self.user_message_output_requirements(signature)) if in_own_words(self) else ""


def _aside(words: str) -> str:
    return f"Tool calls aside, {words[:1].lower()}{words[1:]}"
