"""The fields of tools: those that a route has no place for are dropped, on record."""

from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.request.sendable_tools import sendable, without_searches


def fit_tools(request: Request, record: RequestRecord) -> Request:
    """Write the tools with the fields that the route takes."""
    if "tools" not in request:
        return request
    tools, losses = sendable(request["tools"], record.route)
    record.extend(losses)
    return {**request, "tools": tools}


def drop_searches(request: Request, record: RequestRecord) -> Request:
    """Drop a provider's search for tools where the route has none."""
    losses: list[Change] = []
    written = without_searches(request, record.route, losses)
    record.extend(losses)
    return written
