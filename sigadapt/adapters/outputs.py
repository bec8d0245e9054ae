"""The last step of the flow (Choice -> outputs): the values of the signature's output fields.

This file enforces "required is required":

 a. A required call that is missing is an error.
 b. On a turn with calls, the other outputs are what the text holds, else None.
 c. Text is never dropped. If it marks no output field, it is the value of the only text output, or an error.
 d. A turn that ended without an answer is an `UnusableAnswer`, whatever text or calls it left behind.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from dspy.adapters.json_adapter import JSONAdapter
from dspy.adapters.utils import apply_output_field_defaults
from dspy.signatures.signature import Signature
from dspy.utils.exceptions import AdapterParseError

from sigadapt.adapters.options import Options
from sigadapt.adapters.output_format import OutputFormat
from sigadapt.adapters.plan import Plan, is_optional
from sigadapt.adapters.response.choice import Choice
from sigadapt.errors import AnswerCode, EmptyAnswer, MissingToolCalls, ToolCallParseError, UnusableAnswer
from sigadapt.json_values import RepeatedKeys, compact, cut, is_object, listed
from sigadapt.providers.wire.reading import UNENDED
from sigadapt.schemas.arguments import Flaw, parse_arguments
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import InvalidToolCall, ToolCalls, Turn, refused
from sigadapt.text.written_values import literal_at

_LOG = logging.getLogger("sigadapt")
_OPTIONAL = "Declare the field as `ToolCalls | None` if a call is optional, or use tool_choice='required'."
_MOST_REASONS = 8  # how many bad calls an error message describes; its `.choice` holds all of them


def settle_bad_calls(
    choice: Choice,
    options: Options,
    plan: Plan,
    signature: type[Signature],
    failure: Exception | None = None,
) -> Choice:
    """Keep, hand on or refuse bad calls of a Choice, as the options and the calls field say."""
    calls = choice.tool_calls
    if calls is None or not calls.invalid:
        return choice
    codes = ", ".join(f"{call.name} {call.code}" for call in calls.invalid)
    _LOG.info("%d of %d calls cannot be used: %s", len(calls.invalid), len(calls.in_order()), cut(codes))
    if failure is None and plan.defers_bad_calls and options.on_invalid != "raise":
        return replace(choice, tool_calls=calls.handed_on())
    if options.on_invalid == "keep":
        return choice
    bad = calls.invalid
    reasons = (f"{cut(call.id)} ({cut(call.name or 'no name')}, {call.code}): {call.message}" for call in bad)
    first = bad[0]
    tool = cut(first.name) if first.name else None
    raise ToolCallParseError(
        f"{len(bad)} of {len(bad) + len(calls)} tool calls cannot be used: {listed(reasons, _MOST_REASONS)}",
        choice=choice,
        code=first.code,
        field=plan.calls,
        tool=tool,
        path=first.path,
        fix="Read the calls from the error's .choice, or use on_invalid='keep' to get them as outputs.",
        signature=signature,
    ) from failure


class _End(NamedTuple):
    """How a turn can end that is no answer, or whose calls are good, but whose text is part of one."""

    code: AnswerCode  # of an UnusableAnswer
    what: str  # why there is no answer
    fix: str | None = None  # what to do about it


_NO_ANSWER: dict[str | None, _End] = {
    "refusal": _End("refused", "the model refused"),
    "error": _End("failed", "the provider could not finish the answer"),
    "pause": _End(
        "paused",
        "the turn is paused, and the provider expects it back",
        "Raise max_pauses. LiteLLM loses the blocks that have to go back: use the native engine.",
    ),
}
_LESS = "Raise max_tokens, or ask for less."
_PARTIAL: dict[str | None, _End] = {
    "length": _End("cut_off", "the answer was cut off", _LESS),
    "content_filter": _End("filtered", "the provider filtered the answer"),
    **dict.fromkeys(UNENDED, _End("cut_off", "the provider has not finished the answer", _LESS)),
}
_ALL_REASONING = _End("empty", "the answer is empty; all of it is in the reasoning")
_EMPTY = _End("empty", "the answer is empty")
_WORK_ALONE = _End(
    "empty",
    "the answer is what the provider's tools left, without a text",
    "Declare the text as optional, `str | None`, and read the rest from the error's .choice.",
)


def is_no_answer(choice: Choice) -> bool:
    """Return whether a turn ended in a way that makes none of it an answer."""
    return choice.finish_reason in _NO_ANSWER


def fault_of(adapter: OutputFormat, plan: Plan, choice: Choice) -> str | None:
    """Return the code of what is wrong with an answer, before its text is parsed; None for nothing."""
    if is_no_answer(choice):
        return _NO_ANSWER[choice.finish_reason].code
    calls = choice.tool_calls
    if calls is not None and calls.invalid:
        return calls.invalid[0].code
    if calls:
        return None
    try:
        refuse_partial(adapter, plan, choice)
    except UnusableAnswer as error:
        return error.code
    return None if choice.text or _has_work(choice) else _EMPTY.code


def refuse_no_answer(choice: Choice, plan: Plan) -> None:
    """Refuse a turn that was refused, failed or is paused, with its calls as bad ones."""
    if not is_no_answer(choice):
        return
    end = _NO_ANSWER[choice.finish_reason]
    calls = choice.tool_calls
    if calls:
        flaw = Flaw("truncated", f"{end.what} after this call")
        bad: list[InvalidToolCall] = []
        for call in calls.in_order():
            bad_call = call if isinstance(call, InvalidToolCall) else refused(call, flaw)
            bad.append(bad_call)
        all_bad = calls.model_copy(update={"tool_calls": [], "invalid": tuple(bad)})
        choice = replace(choice, tool_calls=all_bad)
    raise _unusable(choice, plan, end)


def refuse_partial(adapter: OutputFormat, plan: Plan, choice: Choice) -> None:
    """Refuse a turn without calls that a limit or a filter ended, or that holds nothing but reasoning."""
    # Small models complete all fields and go on until the limit: DSPy takes their answer, and so do we.
    if choice.finish_reason in _PARTIAL:
        is_complete = adapter.is_complete(plan.text_signature, choice.text or "")
        if choice.finish_reason == "content_filter" or not is_complete:
            raise _unusable(choice, plan, _PARTIAL[choice.finish_reason])
    elif not choice.text and choice.reasoning and not _has_work(choice):
        raise _unusable(choice, plan, _ALL_REASONING)
    elif not choice.text and choice.finish_reason not in (None, "stop", "tool_calls"):
        raise _unusable(choice, plan, _EMPTY)


def _has_work(choice: Choice) -> bool:
    """Return whether the tools that a provider ran left anything."""
    return bool(choice.server_calls or choice.sources or choice.files)


def with_server_work(plan: Plan, choice: Choice, values: dict[str, Any]) -> dict[str, Any]:
    """Return the output values with what server tools did, in the fields that take it."""
    if choice.files and "files" not in dict(plan.work).values():
        _LOG.info("%d files came, and no output field of type Files takes them", len(choice.files))
    return values | {name: getattr(choice, what) for name, what in plan.work}


def _unusable(choice: Choice, plan: Plan, end: _End) -> UnusableAnswer:
    words = dict.fromkeys(filter(None, (choice.finish_message, choice.text)))
    parts = [f"{end.what} (finish reason {choice.finish_reason!r})", *map(cut, words)]
    is_cut_text = choice.finish_reason in _PARTIAL and bool(choice.text)  # no fault of the calls field
    field = None if is_cut_text else plan.calls
    return UnusableAnswer(": ".join(parts), code=end.code, choice=choice, field=field, fix=end.fix)


class Parse(NamedTuple):
    """A step that parses a text, which takes time if the adapter asks another model."""

    adapter: OutputFormat
    signature: type[Signature]
    text: str

    def now(self) -> dict[str, Any]:
        """Return the output values in the text."""
        return self.adapter.parse(self.signature, self.text)

    async def later(self) -> dict[str, Any]:
        """Return the output values in the text, awaited."""
        return await self.adapter.aparse(self.signature, self.text)


def refuse_disobedience(choice: Choice, plan: Plan, signature: type[Signature]) -> None:
    """Refuse an answer without a call to a tool choice that forced one."""
    # A field of `dspy.ToolCalls` is as lenient as under DSPy (required is required). A turn that a limit
    # ended gets an error of its own.
    if choice.tool_calls is None and not plan.defers_bad_calls and choice.finish_reason not in _PARTIAL:
        raise _missing(choice, plan, signature, "A call was asked for; this model did not obey.")


def outputs_beside_calls(adapter: OutputFormat, plan: Plan, choice: Choice) -> dict[str, Any] | None:
    """Return all output values of a turn with calls whose text has no fields, as most do not."""
    calls = choice.tool_calls
    text = choice.text
    if calls is None or plan.has_defaults or (text and plan.texts and _is_parsed(adapter, plan, text)):
        return None
    outputs: dict[str, Any] = dict.fromkeys(plan.outputs)
    outputs[plan.calls] = calls
    return outputs


def _is_parsed(adapter: OutputFormat, plan: Plan, text: str) -> bool:
    if not adapter.parses_beside_calls:
        return False
    signature = plan.text_signature
    return adapter.holds_fields(signature, text) or _fields_as_json(signature, text) is not None


def _fields_as_json(signature: type[Signature], text: str) -> str | None:
    """Return the JSON of exactly the output fields, as DSPy's fallback reads it; None for another text."""
    whole = text.strip()
    if not whole.startswith("{"):
        return None
    value: Any = parse_arguments(whole)
    if not is_object(value):  # in Python's quotes
        try:
            value, end = literal_at(whole, 0, is_strict=True)
        except ValueError:
            return None
        if end < len(whole) or isinstance(value, RepeatedKeys):
            return None
        whole = compact(value)
    return whole if is_object(value) and value.keys() == signature.output_fields.keys() else None


_READS_JSON = JSONAdapter()


def outputs_of(
    adapter: OutputFormat,
    plan: Plan,
    signature: type[Signature],
    choice: Choice,
    hint: Callable[[str], str],
) -> Steps[dict[str, Any]]:
    """Return the values of all output fields by name, in the signature's order."""
    # `hint` returns what would read a call in a text in which none was looked for.
    calls: Any = choice.tool_calls
    if calls is None:
        refuse_partial(adapter, plan, choice)
    if calls is not None:
        values = (yield from _beside_calls(adapter, plan, choice.text)) if plan.texts else {}
    elif plan.calls_required:
        raise _missing(choice, plan, signature, hint(choice.text or ""))
    else:
        values = yield from _without_calls(adapter, plan, signature, choice)
        if plan.missing_calls is None or not plan.texts:  # no other field takes the words
            calls = ToolCalls(turn=Turn(text=choice.text, reasoning=choice.reasoning))
        else:
            calls = plan.missing_calls()
    if plan.texts:
        values = apply_output_field_defaults(plan.text_signature, values)
    outputs = {name: values.get(name) for name in plan.outputs}
    outputs[plan.calls] = calls
    return outputs


def _missing(choice: Choice, plan: Plan, signature: type[Signature], hint: str) -> MissingToolCalls:
    text = cut(choice.text) if choice.text else "nothing"
    return MissingToolCalls(
        f"expected a tool call, got none; the model said: {text}",
        choice=choice,
        field=plan.calls,
        fix=hint or _OPTIONAL,
        signature=signature,
    )


def _beside_calls(adapter: OutputFormat, plan: Plan, text: str | None) -> Steps[dict[str, Any]]:
    """Return the outputs in the text beside calls; the whole text stays in `ToolCalls.text`."""
    if not text or not _is_parsed(adapter, plan, text):
        return {}
    try:
        if not adapter.holds_fields(plan.text_signature, text):
            return _READS_JSON.parse(plan.text_signature, _fields_as_json(plan.text_signature, text) or text)
        return (yield Parse(adapter, plan.text_signature, text))
    except AdapterParseError as error:
        values = error.parsed_result
        return values if is_object(values) else {}


def _without_calls(
    adapter: OutputFormat, plan: Plan, signature: type[Signature], choice: Choice
) -> Steps[dict[str, Any]]:
    """Return the outputs in the text of a turn without calls, which must hold all of them."""
    text = choice.text
    if not text and _has_work(choice):
        if all(map(is_optional, plan.text_signature.output_fields.values())):
            return {}
        raise _unusable(choice, plan, _WORK_ALONE)
    if not text:
        reason = "the answer is empty: neither text nor a tool call came"
        if plan.defers_bad_calls:
            raise EmptyAnswer(reason, choice=choice, field=plan.calls)
        raise _unusable(choice, plan, _End("empty", reason))
    if not plan.texts:
        return {}
    values = yield from parse_steps(adapter, plan.text_signature, text)
    if values is not None:
        return values
    sole = sole_text_field(plan.text_signature)
    if sole is None:
        signature_class: Any = signature  # DSPy annotates an instance, and passes classes
        raise AdapterParseError(
            adapter_name=type(adapter).__name__,
            signature=signature_class,
            lm_response=text,
            message="The text has none of the output fields.",
        )
    return {sole: adapter.plain(text)}


def parse_steps(adapter: OutputFormat, signature: type[Signature], text: str) -> Steps[dict[str, Any] | None]:
    """Return the output values that a text marks, in the adapter's form or as JSON; None if it marks none."""
    if adapter.holds_fields(signature, text):
        return (yield Parse(adapter, signature, text))
    json_text = _fields_as_json(signature, text)
    return None if json_text is None else _READS_JSON.parse(signature, json_text)


def sole_text_field(signature: type[Signature]) -> str | None:
    """Return the only output field if it takes text: a model that answers in plain text means this field."""
    if len(signature.output_fields) != 1:
        return None
    ((name, field),) = signature.output_fields.items()
    kind: Any = field.annotation
    return name if kind in (str, str | None) else None
