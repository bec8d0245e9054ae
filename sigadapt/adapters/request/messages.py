"""Make the messages of a Request: instructions, examples, earlier turns and the question.

The messages do not describe the tool fields, because the Request has the tools and calls in places of their
own. `prompt.py` makes the words that stay the same from call to call.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.lm.dspy_internals import TYPE_MARKER, with_blocks
from sigadapt.adapters.plan import Turns
from sigadapt.adapters.request.prompt import Prompt, prompt_of, question
from sigadapt.adapters.text_format import TextFormat
from sigadapt.schemas.json_values import compact
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, Turn
from sigadapt.signatures.results import Round, ToolResults, result_text
from sigadapt.signatures.tool_result import ToolResult

Message = dict[str, Any]
_NOT_SHOWN = "(the result is not part of this example)"
_PARTIAL_DEMO = "This is an example of the task, without {}."


def messages_of(
    adapter: TextFormat, rest: type[Signature], demos: list[dict[str, Any]], inputs: Mapping[str, Any]
) -> list[Message]:
    """Return all messages of one call, in the canonical Request's form.

    Args:
        adapter: the adapter, whose words describe the text fields.
        rest: the signature without its tool fields.
        demos: few-shot examples.
        inputs: the call's input values; values without a field are ignored.

    Raises:
        InvalidHistory: for a call without a result or a result without a call; names the id (rule 4).

    Example:
        >>> from sigadapt import ChatAdapter
        >>> rest = dspy.Signature("question ->", "Answer.")
        >>> [message["role"] for message in messages_of(ChatAdapter(), rest, [], {"question": "Why?"})]
        ['system', 'user']
    """
    prompt = prompt_of(adapter, rest)
    messages: list[Message] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    system_only = len(messages)
    if demos:
        messages += _demos(adapter, rest, demos)
    events, rounds = _turns(prompt.turns, inputs)
    for event in events:
        messages += _event(adapter, rest, prompt, event, rounds)
    user = question(adapter, rest, prompt, inputs)
    if user and _asks(prompt, inputs):
        messages.append({"role": "user", "content": user})
    for answered in rounds:
        messages += _round(answered, answered.calls.text)
    if len(messages) == system_only:
        # There are only instructions, but every provider requires a message to answer.
        messages = [{"role": "user", "content": user or prompt.system}]
    # DSPy's types (images, files and the like) are marked text here, which becomes content blocks.
    return [
        with_blocks(message) if message["role"] == "user" and TYPE_MARKER in message["content"] else message
        for message in messages
    ]


def _asks(prompt: Prompt, inputs: Mapping[str, Any]) -> bool:
    """Return whether any input is given. A call that only brings results must not add a question (rule 8)."""
    for name in prompt.inputs:  # noqa: SIM110  (any() with a generator takes three times as long)
        if inputs.get(name) is not None:
            return True
    return False


def _turns(fields: Turns, inputs: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[Round]]:
    history = inputs.get(fields.history) if fields.history else None
    events = dspy.History.model_validate(history).messages if history is not None else []
    results = inputs.get(fields.results) if fields.results else None
    return events, list(ToolResults.model_validate(results).rounds) if results is not None else []


def _demos(adapter: TextFormat, rest: type[Signature], demos: list[dict[str, Any]]) -> Iterator[Message]:
    """Yield the examples: without calls as DSPy writes them, with calls as assistant and tool messages."""
    calling = [(demo, calls) for demo in demos if (calls := _calls_in(demo)) is not None]
    yield from adapter.format_demos(rest, [demo for demo in demos if _calls_in(demo) is None])
    for number, (demo, calls) in enumerate(calling):
        missing = [f"`{name}`" for name in rest.input_fields if demo.get(name) is None]
        prefix = _PARTIAL_DEMO.format(", ".join(missing)) if missing else ""
        asked = adapter.format_user_message_content(rest, dict(demo), prefix)
        yield {"role": "user", "content": asked}
        text = calls.text if calls.turn != Turn() else _outputs_text(adapter, rest, demo)
        yield from _round(_example(calls, demo, number), text)


def _example(calls: ToolCalls, demo: Mapping[str, Any], number: int) -> Round:
    """Return an example's round with ids of its own, and without the provider state of its conversation."""
    turn = Turn(text=calls.text)
    answered = _results_in(calls, demo)
    given = {result.call_id: result for result in answered.results} if answered else {}
    good = [
        call.model_copy(update={"id": f"demo_{number}_{place}", "turn": turn})
        for place, call in enumerate(calls)
    ]
    results = [
        ToolResult(call_id=new.id, name=new.name, value=_NOT_SHOWN)
        if (known := given.get(old.id)) is None
        else known.model_copy(update={"call_id": new.id})
        for new, old in zip(good, calls, strict=True)
    ]
    return Round(calls=ToolCalls(tool_calls=good, turn=turn), results=tuple(results))


def _event(
    adapter: TextFormat, rest: type[Signature], prompt: Prompt, event: dict[str, Any], rounds: list[Round]
) -> Iterator[Message]:
    """Yield the messages of one history event: the question, what the model said and called, the results."""
    if _asks(prompt, event):
        yield {"role": "user", "content": question(adapter, rest, prompt, event)}
    calls = _calls_in(event)
    if calls is None:
        if any(event.get(name) is not None for name in rest.output_fields):
            yield {"role": "assistant", "content": adapter.format_assistant_message_content(rest, event)}
        return
    text = calls.text if calls.turn != Turn() else _outputs_text(adapter, rest, event)
    yield from _round(_answered(calls, event, rounds), text)


def _calls_in(event: Mapping[str, Any]) -> ToolCalls | None:
    for value in event.values():
        if isinstance(value, dspy.ToolCalls) or (isinstance(value, Mapping) and "tool_calls" in value):
            calls = ToolCalls.model_validate(value)
            return calls if calls or calls.invalid else None
    return None


def _answered(calls: ToolCalls, event: Mapping[str, Any], rounds: list[Round]) -> Round:
    """Return the calls with their results: the event's own, or those in this call's results field."""
    answered = _results_in(calls, event)
    if answered is not None:
        return answered
    if rounds and [call.id for call in rounds[0].calls] == [call.id for call in calls]:
        return rounds.pop(0)
    return ToolResults.of(calls, []).rounds[0]


def _results_in(calls: ToolCalls, event: Mapping[str, Any]) -> Round | None:
    for value in event.values():
        if isinstance(value, ToolResults) or (isinstance(value, Mapping) and "rounds" in value):
            found = ToolResults.model_validate(value)
            given = {result.call_id: result for result in found}
            if [round_.calls is calls for round_ in found.rounds] == [True] and list(given) == [
                call.id for call in calls.in_order()
            ]:
                return found.rounds[0]
            kept = {call.id for call in calls.invalid}
            return ToolResults.of(calls, {key: given[key] for key in given if key not in kept}).rounds[0]
    if calls.tool_call_results is None:
        return None
    results = dspy.ToolCallResults.model_validate(calls.tool_call_results).tool_call_results
    by_id = {result.call_id: result for result in results if result.call_id}
    return ToolResults.of(calls, by_id if len(by_id) == len(results) else results).rounds[0]


def _round(answered: Round, text: str | None) -> Iterator[Message]:
    """Yield the turn that made the calls, then one result per call, with nothing between them (rule 8)."""
    results = {result.call_id: result for result in answered.results}
    for turn, calls in groupby(
        answered.calls.in_order(), lambda call: getattr(call, "turn", answered.calls.turn)
    ):
        group = list(calls)
        yield assistant_message(group, turn, turn.text if turn != answered.calls.turn else text)
        for call in group:
            yield result_message(results[call.id])


def _outputs_text(adapter: TextFormat, rest: type[Signature], event: dict[str, Any]) -> str | None:
    held = [name for name in rest.output_fields if event.get(name) is not None]
    if not held:
        return None
    for name in rest.output_fields:
        if name not in held:
            rest = rest.delete(name)
    return adapter.format_assistant_message_content(rest, event)


def assistant_message(calls: Iterable[ToolCall | InvalidToolCall], turn: Turn, text: str | None) -> Message:
    """Return the assistant message that replays a turn with calls (rule 8).

    Args:
        calls: the calls of the turn, in order.
        turn: the turn.
        text: what the model said beside the calls.
    """
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": _named(call.name), "arguments": _accepted(call)},
            }
            for call in calls
        ],
        "turn": turn,
    }


def _accepted(call: ToolCall | InvalidToolCall) -> str:
    """Return the arguments that were accepted: as sent, or as repaired or unwrapped."""
    if isinstance(call, ToolCall) and not {"repaired", "unwrapped"}.isdisjoint(call.altered):
        return compact(call.args)
    return call.arguments


def result_message(result: ToolResult) -> Message:
    """Return the tool message with the result of a call, or with the reason why it failed."""
    return {
        "role": "tool",
        "tool_call_id": result.call_id,
        "name": _named(result.name),
        "content": result_text(result.value),
        "is_error": result.is_error,
        "result": result,
    }


def _named(name: str | None) -> str:
    return name or "unnamed"  # no provider accepts a call without a name
