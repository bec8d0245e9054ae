"""Write server tools in the words of a route, or put a function or nothing in their place, on record.

A provider's table is JSON in which `"$max_uses"` stands for an option. What was not given is left out.
"""

import re
from collections.abc import Mapping
from typing import Any

from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.providers import BY_WIRE
from sigadapt.providers.route import Route
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.schemas.json_values import Json, is_object
from sigadapt.signatures.native_tools import SERVER_TOOL
from sigadapt.signatures.server.tools import McpServer

_NOT_OPTIONS = frozenset(("type", "tool", "options", "local"))


def write_server_tools(request: Request, record: RequestRecord) -> Request:
    """Write server tools as the route takes them; a prompt has none."""
    if getattr(request.get("tools"), "is_plain", "tools" not in request):
        return request
    servers = [entry for entry in record.decls.entries if isinstance(entry, McpServer)]
    record.tokens = {each.name: each.token for each in servers if each.token is not None}
    written, changes = with_server_tools(request, record.route if record.is_native else None)
    record.changes = (*record.changes, *changes)
    return written


def with_server_tools(request: Request, route: Route | None) -> tuple[Request, tuple[Change, ...]]:
    """Return a request with its server tools as a route takes them; None for a prompt, which has none."""
    tools = request.get("tools", ())
    model = request["model"]
    if getattr(tools, "is_plain", False) or not any(tool.get("type") == SERVER_TOOL for tool in tools):
        return request, ()
    provider = None if route is None else BY_WIRE.get(route.wire)
    table: dict[str, Json] = {}
    for start, rows in provider.server_tools.items() if provider is not None else ():
        table |= rows if model.startswith(start) else {}
    for kind in route.tools.lost_server_tools if route is not None else ():
        table.pop(kind, None)
    names = () if route is None else (model.partition("/")[0], route.wire)
    raw = {_family(tool) for tool in tools if not named_part(tool) and tool.get("type") != SERVER_TOOL}
    entries: list[Json] = []
    changes: list[Change] = []
    choices: dict[Any, Json | None] = {}  # by what a tool choice may name: what is chosen in its place
    for place, tool in enumerate(tools):
        if tool.get("type") != SERVER_TOOL:
            entries.append(tool)
            continue
        options: Mapping[str, Json] = tool.get("options", {})
        of_author = next((options[name] for name in names if name in options), None)
        entry = _entry(tool, f"/tools/{place}", table.get(tool["tool"]), of_author, changes)
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
        choices[tool["tool"], tool.get("server_label")] = choice
        if "local" in tool:
            choices[name_in(tool["local"])] = choice
        entries += [entry] if entry else []
    copy: Any = {key: part for key, part in request.items() if key != "tools"}
    copy |= {"tools": entries} if entries else {}
    original: Any = request.get("tool_choice")
    if is_object(original):
        several = original.get("allowed_tools", {"tools": [original]})
        keys = [(each.get("tool") or name_in(each), each.get("server_label")) for each in several["tools"]]
        both = zip(keys, several["tools"], strict=True)
        parts = [
            part for key, each in both if (part := choices.get(key, choices.get(key[0], each))) is not None
        ]
        is_subset = "allowed_tools" in original
        whole = {**original, "allowed_tools": {**several, "tools": parts}}
        copy["tool_choice"] = (whole if is_subset else parts[0]) if parts else "auto"
        if len(parts) < len(keys):
            changes.append(Change("/tool_choice", "dropped", "a server tool that it names is not sent"))
    return copy, tuple(changes)


def _entry(
    tool: Json, where: str, template: Json | None, of_author: Json | None, changes: list[Change]
) -> Json | None:
    """Return what is sent for a server tool, given the table's entry and its author's; None for nothing."""
    kind = tool["tool"]
    local = tool.get("local")
    options = {name: value for name, value in tool.items() if name not in _NOT_OPTIONS}
    if template is None and of_author is None:
        why = f"this route has no {kind}, and it has no local= to stand in for it"
        if local is not None:
            beside = f", without {', '.join(options)}" if options else ""
            why = f"this route has no {kind}; your function {name_in(local)!r} is sent in its place{beside}"
        changes.append(Change(where, "dropped" if local is None else "lowered", why))
        return local
    unplaced = [name for name in options if f"'${name}'" not in str(template) and name not in str(of_author)]
    why = f"{kind} has no {{!r}} on this route"
    changes += (Change(f"{where}/{name}", "dropped", why.format(name)) for name in unplaced)
    return _merged(_filled(template, options) or {}, of_author or {})


def _filled(template: Any, options: Json) -> Any:
    """Return a template with the options that were given; None for what holds none of them."""
    if isinstance(template, str):
        return options.get(template[1:]) if template.startswith("$") else template
    if not is_object(template) or not template:
        return template
    parts = {key: _filled(part, options) for key, part in template.items()}
    return {key: part for key, part in parts.items() if part is not None} or None


def _merged(entry: Json, of_author: Json) -> Json:
    both = {key: _merged(entry[key], part) for key, part in of_author.items() if is_object(entry.get(key))}
    return {**entry, **of_author, **both}


def _family(tool: Json) -> tuple[str, Any]:
    """Return which tool of a provider an entry is, whatever its version and spelling are."""
    kind = re.sub(r"(_preview)?(_\d{4}_?\d\d_?\d\d)?$", "", str(tool.get("type") or next(iter(tool), "")))
    return kind.replace("_", "").lower(), tool.get("server_label") or tool.get("mcp_server_name")
