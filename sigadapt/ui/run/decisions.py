"""What the replies of a page decide about the requests of a run that waits."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from sigadapt.errors import Declined, InputNeeded
from sigadapt.schemas.json_values import cut, is_object
from sigadapt.signatures.calls import ToolCall
from sigadapt.signatures.confirmation import REJECTED
from sigadapt.ui.log.chat import Chat
from sigadapt.ui.page.page_requests import Approval, PageOutput, PageReply, PageRequest, Payload, Refusal

_UNDECIDED = object()
_PAYLOAD = {"approved", "reason"}


def decisions_of(chat: Chat, page_request: PageRequest) -> dict[str, Any]:
    """Return the replies that decide something: none, if the page names a request that was never made."""
    error = chat.error()
    if error is None:
        return {}
    if page_request.named - {request.id for request in error.requests} - chat.last.decided:
        return {}
    decisions: dict[str, Any] = {}
    for request in error.requests:
        reply = page_request.replies.get(request.id)
        if reply is None and request.kind == "result":
            reply = page_request.replies.get(chat.page_id_of(request.call.id))
        decision = _UNDECIDED if reply is None else _decision(request, reply)
        if decision is not _UNDECIDED:
            decisions[request.id] = decision
    return decisions


def _decision(request: ToolCall, reply: PageReply) -> Any:
    """Return the decision that a reply makes about a request; `_UNDECIDED` if it makes none."""
    if request.kind == "approval":
        return _approval(reply)
    if isinstance(reply, (PageOutput, Payload)):
        return reply.value
    if isinstance(reply, Refusal):
        return Declined(reply.reason) if reply.reason else Declined()
    return _UNDECIDED


def _approval(reply: PageReply) -> Any:
    """Return the decision about a call: True, False or a reason; `_UNDECIDED` for anything else."""
    if isinstance(reply, Approval):
        return reply.approved or reply.reason or False
    if isinstance(reply, Refusal):
        return False
    if isinstance(reply, PageOutput) or not is_object(reply.value):
        return _UNDECIDED
    approved: object = reply.value.get("approved")
    reason: object = reply.value.get("reason")
    if not isinstance(approved, bool) or (approved and reply.value.keys() - _PAYLOAD):
        return _UNDECIDED  # a yes to something else, such as to arguments that the page has changed
    return approved or (reason if isinstance(reason, str) and reason.strip() else False)


def flaw_of_replies(error: InputNeeded | None, page_request: PageRequest) -> str | None:
    """Return why a reply to a call that waits for approval decides nothing; None if there is none such."""
    for request in error.requests if error is not None else ():
        reply = page_request.replies.get(request.id)
        if request.kind == "approval" and isinstance(reply, Payload) and _approval(reply) is _UNDECIDED:
            payload = "{'approved': true or false, 'reason': a text}"
            return f"An approval has the payload {payload} and nothing else, not {cut(repr(reply.value))}."
    return None


def reasons_of(requests: Iterable[ToolCall], decisions: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the decided requests: each with the reason of a rejection, or None for any other decision."""
    reasons: dict[str, str | None] = dict.fromkeys(decisions)
    for request in requests:
        decision = decisions.get(request.id)
        if request.kind == "approval" and decision is False:
            reasons[request.id] = REJECTED
        elif request.kind == "approval" and isinstance(decision, str):
            reasons[request.id] = decision
    return reasons


def request_for(error: InputNeeded | None, handle: Any) -> ToolCall | None:
    """Return the request that waits for the result of a handle, or has it as its id."""
    for request in error.requests if error is not None else ():
        if request.kind != "result":
            continue
        if isinstance(handle, str) and handle == request.id:
            return request
        if "pending" in request.args and _is_same_json(request.pending, handle):
            return request
    return None


def _is_same_json(one: Any, other: Any) -> bool:
    try:
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return False
