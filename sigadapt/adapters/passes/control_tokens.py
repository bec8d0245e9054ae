"""What a tool returns cannot open a turn: its control tokens go out broken, and come back whole in calls.

Results, descriptions of tools (a server of others may have written them) and the arguments that a model
repeated are broken; what the program and its user say goes out as it is. A prompt escapes results itself.
"""

from sigadapt.adapters.calling.call_record import CallRecord, RequestRecord
from sigadapt.adapters.request.canonical import Request
from sigadapt.json_values import Json, compact
from sigadapt.providers.wire.control_tokens import (
    JOINER_IN_JSON,
    values_with_whole_tokens,
    with_broken_descriptions,
    with_broken_tokens,
    with_whole_tokens,
)
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, with_each
from sigadapt.signatures.tool_decls import made_once

_WHY = (
    "this server may read control tokens of a chat template in a text as its own, so that a text could open "
    "a turn: they go out with a zero-width joiner, and come back whole in calls"
)


def break_tokens_of_turns(request: Request, record: RequestRecord) -> Request:
    """Break the control tokens in results and arguments, for a server that may read them as its own."""
    if not record.breaks_tokens:
        return request
    rows = [*request["messages"]]
    for number, row in enumerate(rows):
        if row["role"] == "tool":
            rows[number] = _result(row)
        elif row.get("tool_calls"):
            rows[number] = {**row, "tool_calls": [*map(_call, row["tool_calls"])]}
        if rows[number] != row:
            record.note(f"/messages/{number}", "lowered", _WHY)
    return {**request, "messages": rows}


def break_tokens_of_tools(request: Request, record: RequestRecord) -> Request:
    """Break the control tokens in the descriptions of tools, for such a server."""
    tools = request.get("tools")
    if not (tools and record.breaks_tokens):
        return request
    broken = made_once(tools, "broken tokens", lambda: with_broken_descriptions(tools))
    if broken is None:
        return request
    record.note("/tools", "lowered", _WHY)
    return {**request, "tools": broken}


def _result(row: Json) -> Json:
    """Return a tool message with the tokens in its texts broken."""
    changed: Json = {**row, "content": with_broken_tokens(row["content"])}
    for key in ("blocks", "after"):
        if row.get(key):
            changed[key] = [*map(_block, row[key])]
    return changed


def _block(block: Json) -> Json:
    text = block.get("text")
    return {**block, "text": with_broken_tokens(text)} if isinstance(text, str) else block


def _call(call: Json) -> Json:
    kind, field = ("custom", "input") if "custom" in call else ("function", "arguments")
    return {**call, kind: {**call[kind], field: with_broken_tokens(call[kind][field])}}


def restore_control_tokens(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Make the tokens whole that a model repeated in its arguments as it had read them."""
    if not record.breaks_tokens:
        return calls
    texts = [call.arguments for call in (*calls.tool_calls, *calls.invalid)]
    if not any(mark in text for text in texts for mark in JOINER_IN_JSON):
        return calls
    return with_each(calls, _whole_call)


def _whole_call(call: ToolCall | InvalidToolCall) -> ToolCall | InvalidToolCall:
    if isinstance(call, InvalidToolCall):
        return call.model_copy(update={"arguments": with_whole_tokens(call.arguments)})
    args = values_with_whole_tokens(call.args)
    if args == call.args:
        return call
    text = with_whole_tokens(call.arguments)
    if parse_arguments(text) != args:  # the model wrote the joiner as an escape
        text = compact(args)
    return call.model_copy(update={"args": args, "arguments": text})
