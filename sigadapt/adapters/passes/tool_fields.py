"""The tools of a request: what a route has no place for is dropped, and changed tools are on record."""

import hashlib
from collections.abc import Sequence

from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.request.sendable_tools import is_search, sendable
from sigadapt.schemas.json_values import Json, compact
from sigadapt.signatures.tool_decls import made_once

_NO_SEARCH = "this route has no search for tools"
_ANEW = "the tools changed in this conversation; they are sent anew, and the provider's cache begins anew"


def note_changed_tools(request: Request, record: RequestRecord) -> Request:
    """Record that the latest turn was asked with other tools."""
    if not record.is_native:
        return request
    turns = (row["turn"] for row in reversed(request["messages"]) if row.get("turn") is not None)
    latest = next(turns, None)
    if latest is not None and latest.offered is not None and latest.offered != tools_hash(record.canonical):
        record.note("/tools", "lowered", _ANEW)
    return request


def tools_hash(request: Request) -> str | None:
    """Return what a turn remembers of the tools that it was asked with."""
    tools: Sequence[Json] = request.get("tools") or ()
    if not tools:
        return None

    def hash_of_tools() -> str:
        text = compact(list(tools))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    return made_once(tools, "hash", hash_of_tools)


def fit_tools(request: Request, record: RequestRecord) -> Request:
    """Write the tools with the fields that the route takes."""
    if "tools" not in request:
        return request
    tools, losses = sendable(request["tools"], record.route)
    if losses:
        record.extend(losses)
    return {**request, "tools": tools}


def drop_searches(request: Request, record: RequestRecord) -> Request:
    """Drop a provider's search for tools where the route has none."""
    if record.route.search:
        return request
    tools = request.get("tools", [])
    searches = made_once(tools, "searches", lambda: [n for n, tool in enumerate(tools) if is_search(tool)])
    if not searches:
        return request
    record.extend(Change(f"/tools/{number}", "dropped", _NO_SEARCH) for number in searches)
    return {**request, "tools": [tool for tool in tools if not is_search(tool)]}
