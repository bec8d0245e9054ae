"""Tools that changed in a conversation: they are sent anew, on record, because the cache begins anew."""

import hashlib
from collections.abc import Sequence

from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.canonical import Request
from sigadapt.schemas.json_values import Json, compact
from sigadapt.signatures.tool_decls import made_once

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
