"""From what the model said to the signature's output values (Choice -> outputs).

Rule 7 lives here: required is required; on a turn with calls the other outputs are what the text holds,
else None; and text is never dropped: without field markers it is the one text output there is, or an error.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from dspy.adapters.utils import apply_output_field_defaults
from dspy.signatures.signature import Signature
from dspy.utils.exceptions import AdapterParseError

from sigadapt.adapters.choice import Choice
from sigadapt.adapters.plan import Plan
from sigadapt.errors import MissingToolCalls, ToolCallParseError
from sigadapt.signatures.arguments import shown
from sigadapt.signatures.calls import ToolCalls, Turn

if TYPE_CHECKING:
    from sigadapt.adapters.tool_adapter import ToolAdapter


_MOST_TOLD = 8  # bad calls in an error's message; its choice holds all of them


def refuse_bad_calls(
    choice: Choice, plan: Plan, signature: type[Signature], failure: Exception | None = None
) -> None:
    """Raise ToolCallParseError for the choice's bad calls (rule 5), from what kept a reask from helping."""
    calls = choice.tool_calls
    if calls is None or not calls.invalid:
        return
    bad = calls.invalid
    told = "; ".join(
        f"{shown(call.id)} ({shown(call.name or 'no name')}): {call.message}" for call in bad[:_MOST_TOLD]
    )
    rest = f"; and {len(bad) - _MOST_TOLD} more" if len(bad) > _MOST_TOLD else ""
    raise ToolCallParseError(
        f"{len(bad)} of {len(bad) + len(calls)} tool calls cannot be used: {told}{rest}",
        choice=choice,
        code=bad[0].code,
        field=plan.calls,
        tool=shown(bad[0].name) if bad[0].name else None,
        path=bad[0].path,
        fix="The error's .choice holds every call; on_invalid='keep' returns them instead.",
        signature=signature,
    ) from failure


class Parsing(NamedTuple):
    """A text that the adapter is to parse: some adapters ask another model to."""

    rest: type[Signature]
    text: str


Outputs: TypeAlias = Generator[Parsing, Any, dict[str, Any]]


def outputs_of(adapter: "ToolAdapter", plan: Plan, signature: type[Signature], choice: Choice) -> Outputs:
    """The output fields' values, in the signature's order; texts to parse are yielded.

    Raises:
        MissingToolCalls: a required calls field and no call (rule 7).
        AdapterParseError: text that does not hold the other outputs, on a turn without calls.
    """
    calls: Any = choice.tool_calls
    if calls is not None:
        values = (yield from _beside_calls(adapter, plan, choice.text)) if plan.texts else {}
    elif plan.calls_required:
        raise _missing(choice, plan, signature)
    else:
        values = yield from _without_calls(adapter, plan, signature, choice.text)
        lost = choice.text if not plan.texts else None
        turn = Turn(text=lost, reasoning=choice.reasoning)
        calls = ToolCalls(tool_calls=[], turn=turn) if lost else plan.missing_calls()
    if plan.texts:
        values = apply_output_field_defaults(plan.rest, values)
    return {name: calls if name == plan.calls else values.get(name) for name in plan.outputs}


def _missing(choice: Choice, plan: Plan, signature: type[Signature]) -> MissingToolCalls:
    said = shown(choice.text) if choice.text else "nothing"
    return MissingToolCalls(
        f"a tool call is required and none came; the model said: {said}",
        choice=choice,
        field=plan.calls,
        fix="Declare the field as `ToolCalls | None` if a call is optional, or ask for one with tool_choice.",
        signature=signature,
    )


def _beside_calls(adapter: "ToolAdapter", plan: Plan, text: str | None) -> Outputs:
    """What the text beside calls holds; the whole of it stays in `ToolCalls.text`."""
    if not text or not adapter.parses_beside_calls or not adapter.holds_fields(plan.rest, text):
        return {}
    try:
        return (yield Parsing(plan.rest, text))
    except AdapterParseError as error:
        return cast("dict[str, Any]", error.parsed_result or {})


def _without_calls(
    adapter: "ToolAdapter", plan: Plan, signature: type[Signature], text: str | None
) -> Outputs:
    """The other outputs, from a text that must hold them."""
    if not text:
        raise _unparsed(adapter, signature, "", "The LM returned neither text nor a tool call.")
    if not plan.texts:
        return {}
    if adapter.holds_fields(plan.rest, text):
        return (yield Parsing(plan.rest, text))
    sole = _sole_text_field(plan.rest)
    if sole is None:
        raise _unparsed(adapter, signature, text, "The text holds none of the output fields.")
    return {sole: text}


def _sole_text_field(rest: type[Signature]) -> str | None:
    """The one output there is, if it takes text: what a model that answers in plain words means."""
    if len(rest.output_fields) != 1:
        return None
    ((name, field),) = rest.output_fields.items()
    return name if cast("Any", field.annotation) in (str, str | None) else None


def _unparsed(
    adapter: "ToolAdapter", signature: type[Signature], text: str, message: str
) -> AdapterParseError:
    return AdapterParseError(
        adapter_name=type(adapter).__name__,
        signature=cast("Any", signature),
        lm_response=text,
        message=message,
    )
