"""Read calls in any form in which somebody gives them: sigadapt's, DSPy's, as saved, or in OpenAI's shape.

Each gets an id of its own in its collection (ids), and the collection's turn unless it has one.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import dspy
import pydantic

from sigadapt.json_values import compact, cut, is_iterable, is_mapping, is_object, type_of
from sigadapt.schemas.arguments import Flaw, parse_arguments
from sigadapt.signatures.calls.tool_call import RefusedToolCall, ToolCall
from sigadapt.signatures.calls.turn import NO_TURN, InvalidToolCall, Turn
from sigadapt.signatures.tool_decl import REQUEST


def read_calls(
    good: Iterable[object], bad: Iterable[object], turn: Turn
) -> "list[ToolCall | InvalidToolCall]":
    """Return calls, good ones first, each under an id of its own."""
    calls = [_read(item, turn, n) for n, item in enumerate(good)]
    calls += [InvalidToolCall.model_validate(_with_id(item) or item) for item in bad]
    ids, new_ids = unique_ids([call.id for call in calls])
    for n, call in enumerate(calls):
        if call.id != ids[n]:
            marks = (*call.altered, "renumbered") if n in new_ids else call.altered
            calls[n] = call.model_copy(update={"altered": marks})
            vars(calls[n])["id"] = ids[n]  # which does not make it an id that somebody gave
    return calls


def unique_ids(
    originals: Sequence[Any], made_id: Callable[[int], str] | None = None, earlier_ids: Collection[str] = ()
) -> tuple[list[str], set[int]]:
    """Give each call of a turn its own id (ids), `made_id` or a number; say which of them had another."""
    valid = [call_id for call_id in originals if isinstance(call_id, str) and call_id]
    if len(set(valid)) == len(originals) and not earlier_ids:
        return valid, set()
    reserved = {*valid}
    first: set[str] = set()
    ids: list[str] = []
    new_ids: set[int] = set()
    number = 0
    for index, call_id in enumerate(originals):
        has_id = isinstance(call_id, str) and call_id
        if has_id and call_id not in first and call_id not in earlier_ids:
            first.add(call_id)
            ids.append(call_id)
            continue
        if has_id:
            new_ids.add(index)
        if made_id is not None:
            ids.append(made_id(index))
            continue
        number = max(number, index) + 1
        while f"call_{number}" in reserved or f"call_{number}" in earlier_ids:
            number += 1
        ids.append(f"call_{number}")
    return ids, new_ids


def _read(item: object, turn: Turn, position: int) -> ToolCall | InvalidToolCall:
    if isinstance(item, InvalidToolCall):
        return item
    if isinstance(item, ToolCall):
        return item if item.turn != NO_TURN or turn == NO_TURN else item.model_copy(update={"turn": turn})
    is_of_dspy = isinstance(item, dspy.ToolCalls.ToolCall)
    source = vars(item) if is_of_dspy else item
    fields = _with_id(source)
    if fields is None:
        raise ValueError(f"expected a call or a mapping with `name` and `args`, got {type_of(item)}")
    context: dict[str, Any] = {"index": position}
    if turn != NO_TURN:
        context["turn"] = turn
    call = _call_of(fields, context, is_of_dspy=is_of_dspy)
    if not fields["id"]:
        call.model_fields_set.discard("id")
    return call


def _call_of(
    fields: dict[str, Any], context: dict[str, Any], *, is_of_dspy: bool
) -> ToolCall | InvalidToolCall:
    """Return the call of a mapping, in OpenAI's shapes or in sigadapt's, with its turn and position."""
    function = fields.get("function")
    custom = fields.get("custom")
    if is_of_dspy and fields.get("name") == REQUEST:  # a model wrote it, and would confirm its own call
        function = {"name": REQUEST, "arguments": fields.get("args")}
    if is_object(function):
        return _of_openai(function, {"id": fields["id"], **context})
    if fields.get("type") == "custom" and is_object(custom):
        text = custom.get("input") or ""
        custom_fields = {"name": custom.get("name"), "args": {"input": text}, "arguments": text}
        return ToolCall.model_validate({"id": fields["id"], **context, **custom_fields})
    kind = RefusedToolCall if "code" in fields else ToolCall
    return kind.model_validate({**context, **fields})


def _with_id(item: object) -> dict[str, Any] | None:
    """A call as a mapping, whose id may be missing; None for anything else."""
    return {**item, "id": item.get("id") or ""} if is_mapping(item) else None


def _of_openai(function: dict[str, Any], context: dict[str, Any]) -> ToolCall | InvalidToolCall:
    """Read a call in the shape of OpenAI's chat completions, whose arguments are JSON text."""
    name = function.get("name")
    text = function.get("arguments")
    if text is None:
        text = "{}"
    elif not isinstance(text, str):
        text = compact(text)
    args = parse_arguments(text)
    if not isinstance(name, str) or not name:
        args = Flaw("missing_name", f"the call has no name; its arguments: {cut(text)}")
    elif name == REQUEST:  # a model wrote it, and would confirm its own call
        args = Flaw("unknown_tool", f"the name {name!r} is reserved")
    fields = {**context, "name": name or None, "arguments": text}
    if isinstance(args, Flaw):
        return InvalidToolCall.model_validate({**fields, **args._asdict()})
    call = ToolCall.model_validate({**fields, "args": args})
    call.model_fields_set.discard("arguments")
    return call


def fields_of(calls: object) -> Any:
    """Return one call, several calls, or a collection as keyword arguments of ToolCalls."""
    if isinstance(calls, dspy.ToolCalls):
        return dict(vars(calls))
    if is_mapping(calls):
        return calls if "tool_calls" in calls else {"tool_calls": [calls]}
    if isinstance(calls, pydantic.BaseModel):
        return {"tool_calls": [calls]}
    return {"tool_calls": [*calls]} if is_iterable(calls) else calls
