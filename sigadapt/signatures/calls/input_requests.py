"""Make requests: for a person's approval of a call, for an answer to its question, and for its result."""

import json
from copy import deepcopy
from typing import Any

from sigadapt.json_values import Json, equal_json, is_array, is_object, short_hash
from sigadapt.signatures.calls.tool_call import RefusedToolCall, ToolCall, id_of_request
from sigadapt.signatures.confirmation import Confirmation, pin_of, question_for
from sigadapt.signatures.tool_decl import REQUEST
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_functions.open_call import Need


def question_about(call: ToolCall, tools: ToolDecls) -> tuple[Json, Confirmation | None]:
    """Return the arguments that a call runs with, and what to ask a person first, if anything."""
    if isinstance(call, RefusedToolCall):  # it cannot run
        return {}, None
    if call.name in tools:
        return question_for(tools[call.name], call.args)
    return deepcopy(call.args), Confirmation(f"Run {call.name}? It is not among the declared tools.")


def request_for(call: ToolCall, args: Json, question: Confirmation, tools: ToolDecls) -> ToolCall:
    """Return the request for confirmation of a call with these arguments."""
    request_args = {"call": _fields_of(call, args), "hint": question.hint, "payload": question.payload}
    pin = pin_of_call(call, tools)
    if pin is not None:
        request_args["pin"] = pin
    return ToolCall.model_validate(
        {
            "id": id_of_request(call, args),
            "name": REQUEST,
            "index": call.index,
            "args": request_args,
            "turn": call.turn,
        }
    )


def pin_of_call(call: ToolCall, tools: ToolDecls) -> str | None:
    """Return the pin of the tool of a call; None if it is not declared."""
    if call.name not in tools:
        return None
    return pin_of(tools[call.name])


def _fields_of(call: ToolCall, args: Json) -> Json:
    """Return a call as it is saved, with these arguments."""
    fields = call.saved_beside(call.turn) | {"args": args}
    if not equal_json(args, call.args):  # whose text would say something else
        fields.pop("arguments", None)
        fields.pop("text", None)
    return fields


def request_of_need(call: ToolCall, need: Need, position: int, tools: ToolDecls) -> ToolCall:
    """Return the request for what a call waits for.

    Args:
        call: the call, as it runs.
        need: what it waits for.
        position: how many of its questions were answered before.
        tools: the tools of the turn.
    """
    if need.kind == "approval":  # of arguments that a hook changed
        request = request_for(call, need.args or {}, Confirmation(need.hint, need.payload), tools)
        return request.model_copy(update={"args": {**request.args, "changed": True}})
    args = call.args if need.args is None else need.args
    members: Json = {"kind": need.kind, "call": _fields_of(call, args), "hint": need.hint}
    if need.args is not None:
        members["changed"] = True
    optional = {"schema": need.schema, "payload": need.payload, "pending": need.pending}
    optional |= {"question": need.question or None, "member": need.member}
    optional |= {"position": need.position or None}
    if need.has_handle:
        members["pending"] = need.pending
    members |= {name: member for name, member in optional.items() if member is not None}
    pin = pin_of_call(call, tools)
    if pin is not None:
        members["pin"] = pin
    identity = [call.id, call.name, args, call.turn.request_hash, position, members["hint"], optional]
    request_hash = short_hash(json.dumps(identity, sort_keys=True))
    return ToolCall.model_validate(
        {
            "id": f"{need.kind}_{request_hash}",
            "name": REQUEST,
            "index": call.index,
            "args": members,
            "turn": call.turn,
        }
    )


def has_all(shown: Any, sent: Any) -> bool:
    """Return whether what a person saw is what the model sent, perhaps with defaults."""
    if is_object(shown) and is_object(sent):
        return all(key in shown and has_all(shown[key], value) for key, value in sent.items())
    if is_array(shown) and is_array(sent):
        return len(shown) == len(sent) and all(map(has_all, shown, sent))
    return equal_json(shown, sent)
