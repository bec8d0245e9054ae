"""Ids of calls: each call is sent with an id of its own that the provider takes."""

from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.aliases import with_sendable_ids
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.states import state_of
from sigadapt.adapters.response.typed_calls import with_request_hash
from sigadapt.signatures.calls import ToolCalls


def write_ids(request: Request, record: RequestRecord) -> Request:
    """Give every call an id of its own that the provider takes."""
    route = record.route
    gateway_ids: set[str] = set()
    if route.client == "lm15":  # a gateway gets the ids that it made; LiteLLM takes signatures off them
        for state in map(state_of, request["messages"]):
            if state is not None and "endpoint" in state and route.replays(state):
                gateway_ids.update(state.get("ids", ()))
    written, changes = with_sendable_ids(request, *route.ids, gateway_ids)
    record.extend(changes)
    return written


def add_request_hash(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Let a turn say which request it answered, if a call of it may need confirmation."""
    if record.decls.may_ask:
        return with_request_hash(calls, record.made_ids.request_hash)
    return calls
