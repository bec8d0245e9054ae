"""Write server tools in the words of a route, or put a function or nothing in their place, on record.

A provider's table is JSON in which `"$max_uses"` stands for an option. What was not given is left out.
"""

import re
from collections.abc import Mapping
from typing import Any

from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.providers import BY_DIALECT
from sigadapt.providers.provider import Route
from sigadapt.schemas.json_values import Json, is_object
from sigadapt.signatures.native_tools import SERVER_TOOL

_NO_OPTIONS: Json = {}
_NOT_OPTIONS = frozenset(("type", "tool", "options", "local"))


def with_server_tools(request: Request, route: Route | None) -> tuple[Request, tuple[Change, ...]]:
    """Return a request with its server tools as a route takes them; None for a prompt, which has none."""
    tools, model = request.get("tools", ()), request["model"]
    if getattr(tools, "is_plain", False) or not any(tool.get("type") == SERVER_TOOL for tool in tools):
        return request, ()
    wire = None if route is None else BY_DIALECT.get(route.dialect)
    table: Mapping[str, Json] = {}
    for start, entries in wire.server_tools.items() if wire is not None else ():
        table = entries if model.startswith(start) else table  # the last one that fits
    names = () if route is None else (model.partition("/")[0], route.dialect)
    raw = {_family(tool) for tool in tools if "function" not in tool and tool.get("type") != SERVER_TOOL}
    sent: list[Json] = []
    changes: list[Change] = []
    for place, tool in enumerate(tools):
        if tool.get("type") != SERVER_TOOL:
            sent.append(tool)
            continue
        kind, where, template = tool["tool"], f"/tools/{place}", table.get(tool["tool"])
        given = {name: value for name, value in tool.items() if name not in _NOT_OPTIONS}
        options: Mapping[str, Json] = tool.get("options", {})
        own = next((options[name] for name in names if name in options), _NO_OPTIONS)
        if template is not None or own:
            entry = _merged(_filled(template, given) or {}, own)
            if _family(entry) in raw:
                why = f"{kind} is declared in the provider's own words too, and these are sent"
                changes.append(Change(where, "dropped", why))
                continue
            sent.append(entry)
            for name in given:
                if f"'${name}'" not in str(template) and name not in str(own):
                    why = f"{kind} has no {name!r} on this route"
                    changes.append(Change(f"{where}/{name}", "dropped", why))
        elif "local" in tool:
            sent.append(tool["local"])
            beside = f", without {', '.join(given)}" if given else ""
            name = tool["local"]["function"]["name"]
            why = f"this route has no {kind}; your function {name!r} is sent in its place{beside}"
            changes.append(Change(where, "lowered", why))
        else:
            why = f"this route has no {kind}, and it has no local= to stand in for it"
            changes.append(Change(where, "dropped", why))
    lowered: Any = {key: part for key, part in request.items() if key != "tools"}
    return lowered | ({"tools": sent} if sent else {}), tuple(changes)


def _filled(template: Any, given: Json) -> Any:
    """Return a template with the options that were given; None for what holds none of them."""
    if isinstance(template, str):
        return given.get(template[1:]) if template.startswith("$") else template
    if not is_object(template) or not template:
        return template
    parts = {key: _filled(part, given) for key, part in template.items()}
    return {key: part for key, part in parts.items() if part is not None} or None


def _merged(entry: Json, own: Json) -> Json:
    both = {key: _merged(entry[key], part) for key, part in own.items() if is_object(entry.get(key))}
    return {**entry, **own, **both}


def _family(tool: Json) -> tuple[str, Any]:
    """Return which tool of a provider an entry is, whatever its version and spelling are."""
    kind = re.sub(r"(_preview)?(_\d{4}_?\d\d_?\d\d)?$", "", str(tool.get("type") or next(iter(tool), "")))
    return kind.replace("_", "").lower(), tool.get("server_label") or tool.get("mcp_server_name")
