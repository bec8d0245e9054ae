"""Make the messages of a Request: instructions, examples, earlier turns and the question, without tools."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, count, groupby, islice
from secrets import token_hex
from typing import Any, get_args

import dspy
import pydantic
from dspy.signatures.signature import Signature

from sigadapt.adapters.output_format import OutputFormat
from sigadapt.adapters.plan import HistoryFields
from sigadapt.adapters.request.prompt import Prompt, prompt_of, question
from sigadapt.dspy_boundary.contract import TYPE_MARKER, demo_messages, with_blocks, with_file_names
from sigadapt.errors import InvalidHistory
from sigadapt.json_values import closest, is_object, is_sequence, listed, type_of
from sigadapt.signatures.calls import InvalidToolCall, Repeat, SearchRecord, ToolCall, ToolCalls, Turn
from sigadapt.signatures.tool_results.results import Round, ToolResults, text_of_result
from sigadapt.signatures.tool_results.tool_result import ToolResult, message_in
from sigadapt.signatures.transcript import (
    Event,
    Row,
    answering,
    collection_in,
    later_round,
    own_round,
    read,
    rounds_in,
    rows_of,
)

Message = dict[str, Any]
_NOT_SHOWN = "(the result is not part of this example)"
_TAKEN_OUT = "This call repeats one that was not run."
_REWRITTEN = frozenset(("repaired", "unwrapped", "confirmed"))  # marks of arguments that are not as sent
_PARTIAL_DEMO = "This is an example of the task, without {}."


def messages_of(
    adapter: OutputFormat,
    signature: type[Signature],
    demos: list[dict[str, Any]],
    inputs: Mapping[str, Any],
) -> list[Message]:
    """Return all messages of one call, in the canonical Request's form."""
    messages = _text_messages(adapter, signature, demos, inputs)
    for message in messages:
        if message["role"] == "user" and TYPE_MARKER in message["content"]:
            break
    else:
        return messages
    # DSPy's types (images, files and the like) are marked text here, which becomes content blocks. A text
    # that has such marks of its own stays text: they could name a file of the account.
    stand_in = f"<<{token_hex(16)}>>"
    demos = [_in_plain_texts(demo, signature, stand_in) for demo in demos]
    messages = _text_messages(adapter, signature, demos, inputs, stand_in)
    return [_with_types(row, stand_in) for row in messages]


def _text_messages(
    adapter: OutputFormat,
    signature: type[Signature],
    demos: list[dict[str, Any]],
    inputs: Mapping[str, Any],
    stand_in: str = "",
) -> list[Message]:
    """Return all messages of one call, with values of DSPy's types as marked text."""
    prompt = prompt_of(adapter, signature)
    messages: list[Message] = [{"role": "system", "content": prompt.system}] if prompt.system else []
    system_only = len(messages)
    if demos:
        messages += _demos(adapter, signature, demos, prompt.history_fields)
    has_turns = prompt.history_fields.history or prompt.history_fields.results
    rows, results = _transcript(prompt.history_fields, inputs) if has_turns else (list[Row](), list[Round]())
    if rows:
        messages += _history(adapter, signature, prompt, rows, results, stand_in=stand_in)
    values = _in_plain_texts(inputs, signature, stand_in) if stand_in else inputs
    user = question(adapter, signature, prompt, values)
    if user and prompt.asks(inputs):
        messages.append({"role": "user", "content": user})
    for each_round in results:
        messages += _round(each_round, each_round.calls.text)
    if (demos or has_turns) and adapter.options.tool_errors == "message":
        messages = [_without_traceback(row) for row in messages]
    if len(messages) == system_only:
        # There are only instructions, but every provider requires a message to answer.
        messages = [{"role": "user", "content": user or prompt.system}]
    return messages


def _history(
    adapter: OutputFormat,
    signature: type[Signature],
    prompt: Prompt,
    rows: list[Row],
    results: list[Round],
    *,
    stand_in: str,
) -> list[Message]:
    """Return the messages of the events before the question; `results` are those of the turn under way."""
    messages: list[Message] = []
    for number, row in enumerate(rows):
        event = row.event
        refuse_strange(event, signature.model_fields, prompt.history_fields)
        if prompt.asks(event):
            values = _in_plain_texts(event, signature, stand_in) if stand_in else event
            messages.append({"role": "user", "content": question(adapter, signature, prompt, values)})
        later = chain((each.rounds for each in islice(rows, number + 1, None)), [results])
        messages += _event(adapter, signature, row, later)
    if messages and messages[0]["role"] != "user" and prompt.inputs:
        # Anthropic, Gemini and the chat templates of open models want the user first.
        raise InvalidHistory(
            "the history begins with a turn of the model, not with a question",
            code="no_question",
            field=prompt.history_fields.history,
            fix="Cut it with trim_history, which keeps whole turns, or use orphans='heal'.",
        )
    return messages


def _without_traceback(row: Message) -> Message:
    """Return the message of a failed tool with what failed instead of a traceback of DSPy's agents."""
    if not row.get("is_error"):
        return row
    text = message_in(row["content"], row["name"])
    if text is row["content"]:
        return row
    return {**row, "content": text, "result": row["result"].model_copy(update={"value": text})}


def _in_plain_texts(values: Mapping[str, Any], signature: type[Signature], stand_in: str) -> dict[str, Any]:
    """Return inputs with a stand-in for each of DSPy's marks in a field that holds none of DSPy's types."""
    plain_values = dict(values)
    for name, field in signature.input_fields.items():
        if name in plain_values and not _holds_types(field.annotation, ()):
            plain_values[name] = _with_stand_in(plain_values[name], stand_in)
        elif name in plain_values:
            plain_values[name] = with_file_names(plain_values[name])
    return plain_values


def _holds_types(kind: Any, around: tuple[Any, ...]) -> bool:
    """Return whether values of an annotation may be of DSPy's types, or hold such, also as saved texts."""
    parts = get_args(kind)
    if not parts and issubclass(type(kind), type):
        if issubclass(kind, dspy.Type):
            return True
        if issubclass(kind, pydantic.BaseModel) and kind not in around:
            parts = [field.annotation for field in kind.model_fields.values()]
    return any(_holds_types(each, (*around, kind)) for each in parts)


def _with_stand_in(value: Any, stand_in: str) -> Any:
    if isinstance(value, str):
        return value.replace(TYPE_MARKER, stand_in)
    if is_sequence(value):
        return [_with_stand_in(item, stand_in) for item in value]
    if is_object(value):
        return {key: _with_stand_in(part, stand_in) for key, part in value.items()}
    if isinstance(value, pydantic.BaseModel) and not isinstance(value, dspy.Type):
        return value.model_copy(update={key: _with_stand_in(part, stand_in) for key, part in value})
    return value


def _with_types(message: Message, stand_in: str) -> Message:
    """Return a message of the user with content blocks for what DSPy marked, and its own marks again."""
    if message["role"] != "user":
        return message
    content = with_blocks(message)["content"]
    if isinstance(content, str):
        return {**message, "content": content.replace(stand_in, TYPE_MARKER)}
    blocks: list[Any] = [*content]
    for number, block in enumerate(blocks):
        if "text" in block:
            blocks[number] = {**block, "text": block["text"].replace(stand_in, TYPE_MARKER)}
    return {**message, "content": blocks}


def refuse_strange(event: Mapping[str, Any], fields: Collection[str], history_fields: HistoryFields) -> None:
    """Refuse an event of which DSPy would leave out what it says; `fields` has the names that it may have."""
    calls = event.get(history_fields.calls) if history_fields.calls else None
    # Reading a list of dicts here would send calls that `untrusted_history` has not seen.
    if calls and collection_in({"calls": calls}) is None:
        raise InvalidHistory(
            f"{history_fields.calls!r} of an event is {type_of(calls)}, which is not ToolCalls",
            code="unreadable_history",
            field=history_fields.history,
            fix="Give the calls of the prediction, what they saved as, or ToolCalls(calls).",
        )
    for key in event.keys() - {*fields}:
        near = closest(key, {*fields} - event.keys(), at_least=0.8)
        if near is not None:
            reason = f"an event has {key!r}, which is not a field"
            fix = f"Did you mean {near!r}?"
        elif key == "role" and "content" in event:
            reason = "an event is a chat message, with 'role' and 'content'"
            fix = f"Give the values of fields, such as {dict.fromkeys(list(fields)[:2], '...')}."
        else:
            continue
        raise InvalidHistory(reason, code="unreadable_history", field=history_fields.history, fix=fix)
    keys = {key for key, value in event.items() if value is not None}
    keys -= {history_fields.calls, history_fields.results}
    if keys and keys.isdisjoint(fields) and collection_in(event) is None and not rounds_in(event, None):
        example = dict.fromkeys(list(fields)[:2], "...")
        names = sorted(map(repr, keys))
        raise InvalidHistory(
            f"nothing of an event is sent: none of its keys is a field ({listed(names, 8, ', ')})",
            code="unreadable_history",
            field=history_fields.history,
            fix=f"Give the values of fields, such as {example}, or leave the event out.",
        )


def _transcript(fields: HistoryFields, inputs: Mapping[str, Any]) -> tuple[list[Row], list[Round]]:
    """Return the rows of the history, and the rounds of the turn under way, which the request brings."""
    history = inputs.get(fields.history) if fields.history else None
    events = read(dspy.History, history, fields.history).messages if history is not None else []
    results = inputs.get(fields.results) if fields.results else None
    rounds = read(ToolResults, results, fields.results).rounds if results is not None else ()
    return rows_of(events, fields.results), list(rounds)


def _demos(
    adapter: OutputFormat, signature: type[Signature], demos: list[dict[str, Any]], fields: HistoryFields
) -> Iterator[Message]:
    """Examples: those of text as DSPy writes them, those with calls as real assistant and tool messages."""
    rows = rows_of(demos, fields.results, fields.calls)
    texts = [row.event for row in rows if not (row.calls or row.rounds)]
    yield from demo_messages(adapter, signature, texts)
    for number, (demo, calls, rounds) in enumerate(row for row in rows if row.calls or row.rounds):
        missing = [f"`{name}`" for name in signature.input_fields if demo.get(name) is None]
        prefix = _PARTIAL_DEMO.format(", ".join(missing)) if missing else ""
        yield {"role": "user", "content": adapter.format_user_message_content(signature, dict(demo), prefix)}
        ids = (f"demo_{number}_{place}" for place in count())
        last = own_round(calls, answering(calls, rounds)) if calls else None
        for before in rounds:
            yield from _round(_example(before.calls, before.results, ids), before.calls.text)
        if not calls:
            yield from _text_of(adapter, signature, demo, calls)
        else:
            results = last.results if last else ()
            example = _example(calls, results, ids)
            yield from _round(example, _text_beside(adapter, signature, demo, calls))


def _example(calls: ToolCalls, results: Iterable[ToolResult], ids: Iterator[str]) -> Round:
    """An example's round under ids of its own, without the state of a conversation it is not part of."""
    turn = Turn(text=calls.text)
    by_id = {result.call_id: result for result in results}
    good = [call.model_copy(update={"id": next(ids), "turn": turn}) for call in calls]
    results_of_copies: list[ToolResult] = []
    for new, old in zip(good, calls, strict=True):
        result = by_id.get(old.id)
        if result is None:
            results_of_copies.append(ToolResult(call_id=new.id, name=new.name, value=_NOT_SHOWN))
        else:
            results_of_copies.append(result.model_copy(update={"call_id": new.id}))
    return Round(calls=ToolCalls(tool_calls=good, turn=turn), results=tuple(results_of_copies))


def _event(
    adapter: OutputFormat, signature: type[Signature], row: Row, later: Iterable[list[Round]]
) -> Iterator[Message]:
    """Yield the messages of an event after its question: the rounds it brings, its text and its calls."""
    event, calls, rounds = row
    last = answering(calls, rounds) if calls else []
    for before in rounds:
        yield from _round(before, before.calls.text)
    if not calls:
        yield from _text_of(adapter, signature, event, calls)
    else:
        last_round = own_round(calls, last) or later_round(calls, rounds, later)
        yield from _round(last_round, _text_beside(adapter, signature, event, calls))


def _text_of(
    adapter: OutputFormat, signature: type[Signature], event: Event, calls: ToolCalls | None
) -> Iterator[Message]:
    yield from turns_before(calls.turn) if calls is not None else ()
    if any(event.get(name) is not None for name in signature.output_fields):
        yield {"role": "assistant", "content": adapter.format_assistant_message_content(signature, event)}
    elif calls is not None and calls.text:  # an answer in words of a signature whose only output is calls
        yield {"role": "assistant", "content": calls.text}


def _round(each_round: Round, text: str | None) -> Iterator[Message]:
    """Yield the turn that made the calls, then one result per call, with nothing between them."""
    results = {result.call_id: result for result in each_round.results}
    last_turn = each_round.calls.turn
    groups = [
        (turn, list(calls))
        for turn, calls in groupby(each_round.calls.in_order(), lambda call: getattr(call, "turn", last_turn))
    ]
    if last_turn.repeats and all(turn != last_turn for turn, _ in groups):
        groups.append((last_turn, []))  # an answer to a reask that made no call that was new
    for turn, group in groups:
        yield from turns_before(turn)
        in_order = sorted([*group, *turn.repeats, *turn.searches], key=lambda call: call.index)
        turn_text = turn.text if turn != last_turn else text
        yield assistant_message(in_order, turn, turn_text)
        for call in in_order:
            if isinstance(call, SearchRecord):
                yield search_message(call)
                continue
            if not isinstance(call, Repeat):
                result = results[call.id]
            elif call.of in results:  # the result of the call that was accepted before
                result = results[call.of].model_copy(update={"call_id": call.id})
            else:  # the program took the accepted call out
                result = ToolResult.failed(call, _TAKEN_OUT)
            yield result_message(result)


def _text_beside(
    adapter: OutputFormat, signature: type[Signature], event: dict[str, Any], calls: ToolCalls
) -> str | None:
    """Return the text beside an event's calls: the model's own, or the outputs that the event holds."""
    missing = [name for name in signature.output_fields if event.get(name) is None]
    if calls.turn != Turn() or len(missing) == len(signature.output_fields):
        return calls.text
    for name in missing:
        signature = signature.delete(name)
    return adapter.format_assistant_message_content(signature, event)


def turns_before(turn: Turn) -> Iterator[Message]:
    """Yield the turns of searches alone that led to a turn, each with the answers."""
    for each in turn.before:
        yield assistant_message(each.searches, each, each.text)
        yield from map(search_message, each.searches)


def search_message(search: SearchRecord) -> Message:
    """Return the tool message that answers a search: a note, or references, which Claude can read."""
    references = [{"type": "tool_reference", "tool_name": name} for name in search.found]
    result = ToolResult(call_id=search.id, name=search.name, value=search.note or references)
    return {**result_message(result), "search": search}


def assistant_message(
    calls: Iterable[ToolCall | InvalidToolCall | Repeat | SearchRecord], turn: Turn, text: str | None
) -> Message:
    """Return the assistant message that replays a turn with calls (the same conversation)."""
    tool_calls = [_call_json(call) for call in calls]
    return {"role": "assistant", "content": text, "tool_calls": tool_calls, "turn": turn}


def _call_json(call: ToolCall | InvalidToolCall | Repeat | SearchRecord) -> Message:
    """Return a call as an assistant message holds it, with the arguments that were accepted."""
    if isinstance(call, ToolCall) and call.is_custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    arguments = call.arguments
    if isinstance(call, ToolCall) and not _REWRITTEN.isdisjoint(call.altered):
        # Keys sorted: what was repaired has no text of its own, and storage may have changed their order.
        arguments = json.dumps(call.args, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    function = {"name": _name(call.name), "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def result_message(result: ToolResult) -> Message:
    """Return the tool message with the result of a call, or with the reason why it failed."""
    return {
        "role": "tool",
        "tool_call_id": result.call_id,
        "name": _name(result.name),
        "content": text_of_result(result),
        "is_error": result.is_error,
        "result": result,
    }


def _name(name: str | None) -> str:
    return name or "unnamed"  # no provider accepts a call without a name
