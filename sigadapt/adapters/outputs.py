"""From what the model said to the signature's output values (Choice -> outputs).

Rule 7 lives here: required is required; on a turn with calls the other outputs are what the text holds,
else None; and text is never dropped: without field markers it is the one text output there is, or an error.
"""

from typing import Any, NamedTuple, cast

from dspy.adapters.utils import apply_output_field_defaults
from dspy.signatures.signature import Signature
from dspy.utils.exceptions import AdapterParseError

from sigadapt.adapters.plan import Plan
from sigadapt.adapters.response.choice import Choice
from sigadapt.adapters.text_format import TextFormat
from sigadapt.errors import MissingToolCalls, ToolCallParseError
from sigadapt.schemas.json_values import cut, listed
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import ToolCalls, Turn

_MOST_REASONS = 8  # bad calls in an error's message; its choice holds all of them


def refuse_bad_calls(
    choice: Choice, plan: Plan, signature: type[Signature], failure: Exception | None = None
) -> None:
    """Raise ToolCallParseError for the choice's bad calls (rule 5), from what kept a reask from helping."""
    calls = choice.tool_calls
    if calls is None or not calls.invalid:
        return
    bad = calls.invalid
    reasons = (f"{cut(call.id)} ({cut(call.name or 'no name')}): {call.message}" for call in bad)
    raise ToolCallParseError(
        f"{len(bad)} of {len(bad) + len(calls)} tool calls cannot be used: {listed(reasons, _MOST_REASONS)}",
        choice=choice,
        code=bad[0].code,
        field=plan.calls,
        tool=cut(bad[0].name) if bad[0].name else None,
        path=bad[0].path,
        fix="The error's .choice holds every call; on_invalid='keep' returns them instead.",
        signature=signature,
    ) from failure


class Parse(NamedTuple):
    """A text that the adapter is to parse; some adapters ask another model to."""

    adapter: TextFormat
    rest: type[Signature]
    text: str

    def now(self) -> dict[str, Any]:
        """Parse it."""
        return self.adapter.parse(self.rest, self.text)

    async def later(self) -> dict[str, Any]:
        """Parse it, awaiting what the adapter waits for."""
        return await self.adapter.aparse(self.rest, self.text)


def outputs_of(
    adapter: TextFormat, plan: Plan, signature: type[Signature], choice: Choice
) -> Steps[dict[str, Any]]:
    """Return the output fields' values, in the signature's order, in steps: texts may take time to parse.

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
    said = cut(choice.text) if choice.text else "nothing"
    return MissingToolCalls(
        f"a tool call is required and none came; the model said: {said}",
        choice=choice,
        field=plan.calls,
        fix="Declare the field as `ToolCalls | None` if a call is optional, or ask for one with tool_choice.",
        signature=signature,
    )


def _beside_calls(adapter: TextFormat, plan: Plan, text: str | None) -> Steps[dict[str, Any]]:
    """What the text beside calls holds; the whole of it stays in `ToolCalls.text`."""
    if not text or not adapter.parses_beside_calls or not adapter.holds_fields(plan.rest, text):
        return {}
    try:
        return (yield Parse(adapter, plan.rest, text))
    except AdapterParseError as error:
        return cast("dict[str, Any]", error.parsed_result or {})


def _without_calls(
    adapter: TextFormat, plan: Plan, signature: type[Signature], text: str | None
) -> Steps[dict[str, Any]]:
    """The other outputs, from a text that must hold them."""
    if not text:
        raise _unparsed(adapter, signature, "", "The LM returned neither text nor a tool call.")
    if not plan.texts:
        return {}
    if adapter.holds_fields(plan.rest, text):
        return (yield Parse(adapter, plan.rest, text))
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


def _unparsed(adapter: TextFormat, signature: type[Signature], text: str, message: str) -> AdapterParseError:
    return AdapterParseError(
        adapter_name=type(adapter).__name__,
        signature=cast("Any", signature),
        lm_response=text,
        message=message,
    )
