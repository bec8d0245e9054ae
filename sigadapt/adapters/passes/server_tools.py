"""Write server tools in the words of a route, or put a function or nothing in their place, on record.

A provider's table is JSON in which `"$max_uses"` stands for an option. What was not given is left out.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sigadapt.adapters.calling.call_record import RequestRecord
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.json_values import Json, is_object
from sigadapt.providers import BY_WIRE
from sigadapt.providers.route import Route
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.signatures.server_tools import SERVER_TOOL, McpServer
from sigadapt.signatures.tool_decls import made_once

_NOT_OPTIONS = frozenset(("type", "tool", "options", "local"))


def write_server_tools(request: Request, record: RequestRecord) -> Request:
    """Write server tools as the route takes them; a prompt has none."""
    if not _has_server_tools(request.get("tools", ())):
        return request
    servers = [entry for entry in record.decls.entries if isinstance(entry, McpServer)]
    record.tokens = {each.name: each.token for each in servers if each.token is not None}
    route = record.route if record.is_native else None
    written, changes = with_server_tools(request, route)
    record.extend(changes)
    return written


def with_server_tools(request: Request, route: Route | None) -> tuple[Request, tuple[Change, ...]]:
    """Return a request with its server tools as a route takes them; None for a prompt, which has none."""
    tools = request.get("tools", ())
    if not _has_server_tools(tools):
        return request, ()
    changes: list[Change] = []
    entries, choices = _entries(tools, request["model"], route, changes)
    new_request: Any = {key: part for key, part in request.items() if key != "tools"}
    if entries:
        new_request["tools"] = entries
    choice: Any = request.get("tool_choice")
    if is_object(choice):
        new_request["tool_choice"] = _sendable_choice(choice, choices, changes)
    return new_request, tuple(changes)


def _has_server_tools(tools: Sequence[Json]) -> bool:
    return made_once(tools, SERVER_TOOL, lambda: any(tool.get("type") == SERVER_TOOL for tool in tools))


def _entries(
    tools: Iterable[Json], model: str, route: Route | None, changes: list[Change]
) -> tuple[list[Json], dict[Any, Json | None]]:
    """Return the tools that are sent, and the choice of each, by what a tool choice may call it."""
    templates = _templates(model, route)
    author_keys = () if route is None else (model.partition("/")[0], route.wire)
    author_families = {
        _family(tool) for tool in tools if not named_part(tool) and tool.get("type") != SERVER_TOOL
    }
    entries: list[Json] = []
    choices: dict[Any, Json | None] = {}
    for number, tool in enumerate(tools):
        if tool.get("type") != SERVER_TOOL:
            entries.append(tool)
            continue
        where = f"/tools/{number}"
        options: Mapping[str, Json] = tool.get("options", {})
        author_entry = next((options[key] for key in author_keys if key in options), None)
        entry = _entry(tool, where, templates.get(tool["tool"]), author_entry, changes)
        # The author's entry may have options that ours has not, and another version.
        if entry and _family(entry) in author_families:
            why = f"{tool['tool']} is declared in the provider's own words too, and these are sent"
            changes.append(Change(where, "dropped", why))
            entry = None
        choice = _choice_of(entry) if entry else None
        # A choice names a server tool by its kind, with an MCP server's label, or by its local function.
        choices[tool["tool"], tool.get("server_label")] = choice
        if "local" in tool:
            choices[name_in(tool["local"])] = choice
        if entry:
            entries.append(entry)
    return entries, choices


def _templates(model: str, route: Route | None) -> dict[str, Json]:
    """Return how a route writes the server tools that a model has, by their kind."""
    provider = None if route is None else BY_WIRE.get(route.wire)
    if route is None or provider is None:
        return {}
    templates: dict[str, Json] = {}
    for prefix, rows in provider.server_tools.items():
        if model.startswith(prefix):
            templates |= rows
    for kind in route.tools.lost_server_tools:
        templates.pop(kind, None)
    return templates


def _choice_of(entry: Json) -> Json:
    """Return the tool choice that names an entry."""
    if named_part(entry):
        return {"type": "function", "function": {"name": name_in(entry)}}
    if "type" not in entry:  # Gemini's, which no choice can name
        return {"type": next(iter(entry))}
    return {key: entry[key] for key in ("type", "name", "server_label") if key in entry}


def _sendable_choice(choice: Json, choices: Mapping[Any, Json | None], changes: list[Change]) -> str | Json:
    """Return a tool choice that names the entries that are sent; the model decides if it names none."""
    subset: Json = choice.get("allowed_tools", {"tools": [choice]})
    chosen: list[Json] = []
    for tool in subset["tools"]:
        name = tool.get("tool") or name_in(tool)
        entry_choice = choices.get((name, tool.get("server_label")), choices.get(name, tool))
        if entry_choice is not None:
            chosen.append(entry_choice)
    if len(chosen) < len(subset["tools"]):
        changes.append(Change("/tool_choice", "dropped", "a server tool that it names is not sent"))
    if not chosen:
        return "auto"
    if "allowed_tools" not in choice:
        return chosen[0]
    return {**choice, "allowed_tools": {**subset, "tools": chosen}}


def _entry(
    tool: Json, where: str, template: Json | None, author_entry: Json | None, changes: list[Change]
) -> Json | None:
    """Return what is sent for a server tool, given the table's entry and its author's; None for nothing."""
    kind = tool["tool"]
    local = tool.get("local")
    options = {name: value for name, value in tool.items() if name not in _NOT_OPTIONS}
    if template is None and author_entry is None:
        if local is None:
            why = f"this route has no {kind}, and it has no local= to stand in for it"
            changes.append(Change(where, "dropped", why))
            return None
        beside = f", without {', '.join(options)}" if options else ""
        why = f"this route has no {kind}; your function {name_in(local)!r} is sent in its place{beside}"
        changes.append(Change(where, "lowered", why))
        return local
    entry_text = str(author_entry)
    unplaced = [name for name in options if f"'${name}'" not in str(template) and name not in entry_text]
    why = f"{kind} has no {{!r}} on this route"
    changes += (Change(f"{where}/{name}", "dropped", why.format(name)) for name in unplaced)
    return _merge(_fill_in(template, options) or {}, author_entry or {})


def _fill_in(template: Any, options: Json) -> Any:
    """Return a template with the options that were given; None for what holds none of them."""
    if isinstance(template, str):
        return options.get(template[1:]) if template.startswith("$") else template
    if not is_object(template) or not template:
        return template
    parts = {key: _fill_in(part, options) for key, part in template.items()}
    return {key: part for key, part in parts.items() if part is not None} or None


def _merge(entry: Json, author_entry: Json) -> Json:
    both = {key: _merge(entry[key], part) for key, part in author_entry.items() if is_object(entry.get(key))}
    return {**entry, **author_entry, **both}


def _family(tool: Json) -> tuple[str, Any]:
    """Return which tool of a provider an entry is, whatever its version and spelling are."""
    kind = re.sub(r"(_preview)?(_\d{4}_?\d\d_?\d\d)?$", "", str(tool.get("type") or next(iter(tool), "")))
    return kind.replace("_", "").lower(), tool.get("server_label") or tool.get("mcp_server_name")
