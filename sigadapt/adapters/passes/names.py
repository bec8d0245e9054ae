"""Names and ids travel: what the provider would refuse goes out as an alias; names come back as declared."""

from collections.abc import Callable

from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.aliases import aliases_in, with_names, with_sendable_ids
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.states import state_of
from sigadapt.adapters.response.typed_calls import with_declared_names, with_request_hash
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.calls.salvage import name_before_token, without_leaked_tokens


def choose_aliases(request: Request, record: RequestRecord) -> Request:
    """Choose an alias for each tool that needs one."""
    record.names = aliases_in(request, record.route.names.pattern, record.route.names.longest)
    if not record.names:
        return request
    for number, tool in enumerate(request.get("tools", ())):
        name = named_part(tool).get("name")
        if name in record.names:
            why = f"the provider would refuse {name!r}; it is sent as {record.names[name]!r}"
            record.note(f"/tools/{number}/{tool['type']}/name", "renamed", why)
    return request


def write_aliases(request: Request, record: RequestRecord) -> Request:
    """Write the aliases in place of the names, everywhere."""
    return with_names(request, record.names) if record.names else request


def restore_names(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Write the declared names in place of the aliases.

    Where repairs are allowed, cut the template's tokens that a model wrote behind a known name.
    """
    if record.call.adapter.options.repair:
        calls = without_leaked_tokens(calls, _known_names(record))
    return with_declared_names(calls, record.names) if record.names else calls


def name_restorer(record: CallRecord) -> Callable[[str], str]:
    """Return what does both with one name, which a stream has before its call is whole."""
    declared = {alias: name for name, alias in record.names.items()}
    if not record.call.adapter.options.repair:
        return lambda name: declared.get(name, name)
    known = _known_names(record)

    def restore(name: str) -> str:
        name = name_before_token(name, known)
        return declared.get(name, name)

    return restore


def _known_names(record: CallRecord) -> set[str]:
    """Return the names that a call can have: of declared tools, their aliases, the adapter's tools."""
    tool_names = map(name_in, record.canonical.get("tools", ()))
    return {*map(str, tool_names), *record.text_schemas(), *record.names.values()}


def write_ids(request: Request, record: RequestRecord) -> Request:
    """Give every call an id of its own that the provider takes."""
    route = record.route
    gateway_ids: set[str] = set()
    # A gateway gets the ids that it made. LiteLLM takes signatures off them.
    if route.client == "lm15" and route.ids.own:
        for state in map(state_of, request["messages"]):
            if state is not None and "endpoint" in state and route.replays(state):
                gateway_ids.update(state.get("ids", ()))
    written, changes = with_sendable_ids(request, route.ids.pattern, route.ids.longest, gateway_ids)
    record.extend(changes)
    return written


def add_request_hash(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Let a turn say which request it answered, if a call of it may need confirmation."""
    if record.decls.may_ask:
        return with_request_hash(calls, record.made_ids.request_hash)
    return calls
