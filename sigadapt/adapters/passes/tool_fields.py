"""The fields of tools: those that a route has no place for are dropped, on record."""

from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.request.sendable_tools import sendable, without_searches
from sigadapt.providers.route import ANY


def fit_tools(request: Request, record: RequestRecord) -> Request:
    """Write the tools with the fields that the route takes."""
    if _are_plain(request, record):
        return request
    tools, losses = sendable(request.get("tools") or (), record.route)
    record.extend(losses)
    return {**request, "tools": tools}


def drop_searches(request: Request, record: RequestRecord) -> Request:
    """Drop a provider's search for tools where the route has none."""
    if _are_plain(request, record):
        return request
    losses: list[Change] = []
    written = without_searches(request, record.route, losses)
    record.extend(losses)
    return written


def _are_plain(request: Request, record: RequestRecord) -> bool:
    tools = request.get("tools")
    if not tools:
        return True
    return record.route.tools.root_pattern == ANY and getattr(tools, "is_plain", False)
