"""Names travel: a name that the provider would refuse goes out as an alias, and comes back as declared."""

from collections.abc import Callable

from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.aliases import aliases_in, with_names
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.response.typed_calls import with_declared_names
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.calls.salvage import name_before_token, without_leaked_tokens


def choose_aliases(request: Request, record: RequestRecord) -> Request:
    """Choose an alias for each tool that needs one."""
    record.names = aliases_in(request, record.route.names)
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
    return with_names(request, record.names)


def cut_leaked_tokens(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Cut the template's tokens that a model wrote behind a known name, where repairs are allowed."""
    if not record.call.adapter.options.repair:
        return calls
    return without_leaked_tokens(calls, _known_names(record))


def restore_names(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Write the declared names in place of the aliases."""
    return with_declared_names(calls, record.sent.names) if record.sent.names else calls


def name_restorer(record: CallRecord) -> Callable[[str], str]:
    """Return what does both with one name, which a stream has before its call is whole."""
    declared = {alias: name for name, alias in record.sent.names.items()}
    if not record.call.adapter.options.repair:
        return lambda name: declared.get(name, name)
    known = _known_names(record)

    def restore(name: str) -> str:
        name = name_before_token(name, known)
        return declared.get(name, name)

    return restore


def _known_names(record: CallRecord) -> set[str]:
    """Return the names that a call can have: of declared tools, their aliases, the adapter's tools."""
    sent = record.sent
    tool_names = map(name_in, sent.canonical.get("tools", ()))
    return {*map(str, tool_names), *record.text_schemas(), *sent.names.values()}
