"""Write server tools in the words of a route, or put a function or nothing in their place, on record.

A provider's table is JSON in which `"$max_uses"` stands for an option. What was not given is left out.
"""

import re
from collections.abc import Mapping
from typing import Any

from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.providers import BY_DIALECT
from sigadapt.providers.route import Route
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.schemas.json_values import Json, is_object
from sigadapt.signatures.native_tools import SERVER_TOOL

_NOT_OPTIONS = frozenset(("type", "tool", "options", "local"))


def with_server_tools(request: Request, route: Route | None) -> tuple[Request, tuple[Change, ...]]:
    """Return a request with its server tools as a route takes them; None for a prompt, which has none."""
    tools, model = request.get("tools", ()), request["model"]
    if getattr(tools, "is_plain", False) or not any(tool.get("type") == SERVER_TOOL for tool in tools):
        return request, ()
    wire = None if route is None else BY_DIALECT.get(route.dialect)
    table: dict[str, Json] = {}
    for start, entries in wire.server_tools.items() if wire is not None else ():
        table |= entries if model.startswith(start) else {}
    for kind in route.tools.lost_server_tools if route is not None else ():
        table.pop(kind, None)
    names = () if route is None else (model.partition("/")[0], route.dialect)
    raw = {_family(tool) for tool in tools if not named_part(tool) and tool.get("type") != SERVER_TOOL}
    sent: list[Json] = []
    changes: list[Change] = []
    chosen: dict[Any, Json | None] = {}  # by what a tool choice may name: what is chosen in its place
    for place, tool in enumerate(tools):
        if tool.get("type") != SERVER_TOOL:
            sent.append(tool)
            continue
        options: Mapping[str, Json] = tool.get("options", {})
        own = next((options[name] for name in names if name in options), None)
        entry = _entry(tool, f"/tools/{place}", table.get(tool["tool"]), own, changes)
        if entry and _family(entry) in raw:
            why = f"{tool['tool']} is declared in the provider's own words too, and these are sent"
            changes.append(Change(f"/tools/{place}", "dropped", why))
            entry = None
        choice = (
            {key: entry[key] for key in ("type", "name", "server_label") if key in entry} if entry else None
        )
        if entry and named_part(entry):
            choice = {"type": "function", "function": {"name": name_in(entry)}}
        elif entry and "type" not in entry:  # Gemini's, which no choice can name
            choice = {"type": next(iter(entry))}
        chosen[tool["tool"], tool.get("server_label")] = choice
        if "local" in tool:
            chosen[name_in(tool["local"])] = choice
        sent += [entry] if entry else []
    lowered: Any = {key: part for key, part in request.items() if key != "tools"}
    lowered |= {"tools": sent} if sent else {}
    asked: Any = request.get("tool_choice")
    if is_object(asked):
        several = asked.get("allowed_tools", {"tools": [asked]})
        keys = [(each.get("tool") or name_in(each), each.get("server_label")) for each in several["tools"]]
        both = zip(keys, several["tools"], strict=True)
        left = [part for key, each in both if (part := chosen.get(key, chosen.get(key[0], each))) is not None]
        whole = {**asked, "allowed_tools": {**several, "tools": left}} if "allowed_tools" in asked else None
        lowered["tool_choice"] = (whole or left[0]) if left else "auto"
        if len(left) < len(keys):
            changes.append(Change("/tool_choice", "dropped", "a server tool that it names is not sent"))
    return lowered, tuple(changes)


def _entry(
    tool: Json, where: str, template: Json | None, own: Json | None, changes: list[Change]
) -> Json | None:
    """Return what is sent for a server tool, given the table's entry and its author's; None for nothing."""
    kind, local = tool["tool"], tool.get("local")
    given = {name: value for name, value in tool.items() if name not in _NOT_OPTIONS}
    if template is None and own is None:
        why = f"this route has no {kind}, and it has no local= to stand in for it"
        if local is not None:
            beside = f", without {', '.join(given)}" if given else ""
            why = f"this route has no {kind}; your function {name_in(local)!r} is sent in its place{beside}"
        changes.append(Change(where, "dropped" if local is None else "lowered", why))
        return local
    lost = [name for name in given if f"'${name}'" not in str(template) and name not in str(own)]
    why = f"{kind} has no {{!r}} on this route"
    changes += (Change(f"{where}/{name}", "dropped", why.format(name)) for name in lost)
    return _merged(_filled(template, given) or {}, own or {})


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
