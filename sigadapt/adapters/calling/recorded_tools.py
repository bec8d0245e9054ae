"""Tools of a recorded conversation, which another model or another wire is asked with."""

from typing import Any

from sigadapt.adapters.request.canonical import Change
from sigadapt.providers.route import Route
from sigadapt.schemas.json_values import Json, cut
from sigadapt.signatures.provider_tools import NativeTool
from sigadapt.signatures.tool_decl import with_fields
from sigadapt.signatures.tool_decls import ToolDecls


def as_recorded(decls: ToolDecls, wire: str, route: Route) -> tuple[ToolDecls, tuple[Change, ...]]:
    """Return recorded tools for a route: on their own wire as they are, on others without what is its own."""
    changes: list[Change] = []
    entries: list[Any] = []
    for number, each in enumerate(decls.entries):
        entry: Any = each
        extras: Json = getattr(entry, "extras", None) or {}
        is_deferred = bool(extras.get("defer_loading"))
        if wire == route.wire and is_deferred and route.search and route.search.namespaces:
            # Without a group, it was recorded in none, and is sent in none.
            entries.append(with_fields(entry, extras={"namespace": None, **extras}))
        elif wire != route.wire and isinstance(entry, NativeTool):
            why = f"{cut(entry.kind)} is a tool of the wire that it was recorded on"
            changes.append(Change(f"/tools/{number}", "dropped", why))
        elif wire != route.wire and is_deferred:
            why = "it was found by a search on the wire that it was recorded on, and is sent loaded"
            changes.append(Change(f"/tools/{number}", "lowered", why))
            fields = {key: part for key, part in extras.items() if key != "defer_loading"}
            entries.append(with_fields(entry, extras=fields))
        else:
            entries.append(entry)
    return ToolDecls(entries), tuple(changes)
