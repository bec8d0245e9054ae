"""The messages of a request: instructions, examples, the turns so far, and the question.

In native mode the prompt says only what is true: the tools are in the request, so no field list is empty
and no field is named that is not there. What DSPy's adapters write about the other fields is theirs, word
for word.
"""

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import dspy
from dspy.adapters import utils
from dspy.signatures.signature import Signature

from sigadapt.signatures.arguments import compact
from sigadapt.signatures.calls import ToolCalls

if TYPE_CHECKING:
    from sigadapt.adapters.tool_adapter import ToolAdapter

Message = dict[str, Any]
_ASIDE = "Tool calls aside, "


def messages_of(
    adapter: "ToolAdapter", rest: type[Signature], demos: list[dict[str, Any]], inputs: Mapping[str, Any]
) -> list[Message]:
    """All messages of one call, in the canonical Request's shape.

    Args:
        adapter: whose words describe the text fields.
        rest: the signature without its tool fields.
        demos: few-shot examples.
        inputs: the call's input values; those of no field are passed over.
    """
    shown, history = _without_history(rest, inputs)
    system = system_text(adapter, shown)
    turns = [message for event in history for message in _turn(adapter, shown, event)]
    user = question_text(adapter, shown, inputs)
    messages = [{"role": "system", "content": system}] if system else []
    messages += [*adapter.format_demos(shown, demos), *turns]
    if user:
        messages.append({"role": "user", "content": user})
    elif not turns:
        # Every provider wants a message to answer, and here there are only instructions.
        messages[0] = {"role": "user", "content": system}
    return messages


def system_text(adapter: "ToolAdapter", rest: type[Signature]) -> str:
    """Instructions and field descriptions; the structure of text only where there are text outputs."""
    if rest.output_fields:
        structure = adapter.format_field_structure(rest)
        return (
            f"{adapter.format_field_description(rest)}\n"
            f"{_ASIDE}{structure[:1].lower()}{structure[1:]}\n"
            f"{adapter.format_task_description(rest)}"
        )
    instructions = textwrap.dedent(rest.instructions).strip()
    if not rest.input_fields:
        return instructions
    fields = utils.get_field_description_string(rest.input_fields)
    return f"{instructions}\n\nYour input fields are:\n{fields}".strip()


def question_text(adapter: "ToolAdapter", rest: type[Signature], inputs: Mapping[str, Any]) -> str:
    """The inputs' values, and a reminder of the text format where there are text outputs."""
    text = adapter.format_user_message_content(rest, dict(inputs))
    if not rest.output_fields:
        return text
    reminder = adapter.user_message_output_requirements(rest)
    return f"{text}\n\n{_ASIDE}{reminder[:1].lower()}{reminder[1:]}".strip()


def _without_history(
    rest: type[Signature], inputs: Mapping[str, Any]
) -> tuple[type[Signature], list[dict[str, Any]]]:
    for name, field in rest.input_fields.items():
        if field.annotation is dspy.History:
            history = inputs.get(name)
            return rest.delete(name), history.messages if history is not None else []
    return rest, []


def _turn(adapter: "ToolAdapter", rest: type[Signature], event: dict[str, Any]) -> Iterator[Message]:
    """One history event: what was asked, what the model said and called, and what the calls gave."""
    if any(name in event for name in rest.input_fields):
        yield {"role": "user", "content": question_text(adapter, rest, event)}
    calls = _calls_in(event)
    if calls is None:
        if any(event.get(name) is not None for name in rest.output_fields):
            text = adapter.format_assistant_message_content(rest, event)
            yield {"role": "assistant", "content": text}
        return
    text = calls.text if calls.turn.text is not None else _outputs_text(adapter, rest, event)
    yield assistant_message(calls, text)
    yield from result_messages(calls)


def _calls_in(event: Mapping[str, Any]) -> ToolCalls | None:
    for value in event.values():
        if isinstance(value, dspy.ToolCalls) or (isinstance(value, Mapping) and "tool_calls" in value):
            return ToolCalls.model_validate(value)
    return None


def _outputs_text(adapter: "ToolAdapter", rest: type[Signature], event: dict[str, Any]) -> str | None:
    held = [name for name in rest.output_fields if event.get(name) is not None]
    if not held:
        return None
    for name in rest.output_fields:
        if name not in held:
            rest = rest.delete(name)
    return adapter.format_assistant_message_content(rest, event)


def assistant_message(calls: ToolCalls, text: str | None) -> Message:
    """The turn that made the calls, as the model will see it again (rule 8)."""
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": _named(call.name), "arguments": call.arguments},
            }
            for call in calls.in_order()
        ],
        "turn": calls.turn,
    }


def result_messages(calls: ToolCalls) -> Iterator[Message]:
    """One tool message a result, in order; a failed one says so."""
    if calls.tool_call_results is None:
        return
    for result in dspy.ToolCallResults.model_validate(calls.tool_call_results).tool_call_results:
        yield result_message(
            result.call_id or "", result.name, result_text(result.value), failed=result.is_error
        )


def result_message(call_id: str, name: str | None, text: str, *, failed: bool = False) -> Message:
    """What a call gave, or why it failed."""
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "name": _named(name),
        "content": text,
        "is_error": failed,
    }


def _named(name: str | None) -> str:
    return name or "unnamed"  # no wire replays a call without a name


def result_text(value: Any) -> str:
    """A tool's value as text: text as it is, anything else as compact JSON.

    Example:
        >>> result_text({"ok": True}), result_text("fine")
        ('{"ok":true}', 'fine')
    """
    return value if isinstance(value, str) else compact(utils.serialize_for_json(value))
