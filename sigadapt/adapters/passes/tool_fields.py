"""Make the declared tools fit for a route: their fields, custom tools and tool search.

A declaration may say more than name, description and parameters, in the words of the provider that its author
had in mind. In the canonical Request these fields stand beside `function`. A `Route` lists the fields that
reach its provider. Rules:

 a. A field of that list stays as its author wrote it. Any other field is dropped, and recorded.
 b. The JSON Schema of a result has another name on each wire. It gets the name that this wire has for it.
 c. A custom tool is refused where the provider has none (fail before the call). A function in its place would
    be called with JSON, which is not what its author's grammar says.
 d. Keywords at the root of a schema that the client leaves out are recorded.
 e. A search for tools whose loading is deferred becomes this wire's own search, or is dropped where the wire
    has none (`tool_search.py` has what replaces it).
 f. The call of a custom tool is free text. Where there are no custom tools, it becomes that of a function,
    whose argument `input` is the text. A bad call of a declared custom tool gets that form, too.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from sigadapt.adapters.calling.call_record import RequestRecord
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, compact, listed, pointer
from sigadapt.providers.route import ANY, Route
from sigadapt.providers.wire.values import is_search, named_part
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.strict import strict_tool
from sigadapt.signatures.tool_decls import CanonicalTools, made_once

_ITSELF = frozenset({"type", "function", "custom"})
_RESULT_SCHEMAS = frozenset({"outputSchema", "output_schema", "responseJsonSchema", "response_json_schema"})
# What MCP has for who shows and approves tools. No model reads it, so nothing is lost where it stays behind.
# Source: Model Context Protocol, 2025-11-25, "Tool".
_FOR_CLIENTS = frozenset({"title", "annotations", "execution", "icons"})
_NAMING = frozenset({"$schema", "$id", "$comment", "title"})
_FOUND = "this route does not defer tools; the adapter finds this one itself"
_NOT_SENT = "this route has no field {!r} for a tool; the tool is sent without it"
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


def sendable(tools: Sequence[Json], route: Route) -> tuple[CanonicalTools, Sequence[Change]]:
    """Return the tools, as many as were declared, with the fields that a route takes, and what is lost."""

    def make() -> tuple[CanonicalTools, Sequence[Change]]:
        losses: list[Change] = []
        fit = [_sendable(tool, number, route, losses) for number, tool in enumerate(tools)]
        return CanonicalTools(_strict(tool, number, route, losses) for number, tool in enumerate(fit)), losses

    return made_once(tools, route, make)


def _sendable(tool: Json, number: int, route: Route, losses: list[Change]) -> Json:
    if "function" not in tool and "custom" not in tool:
        if not is_search(tool) or not route.search or re.fullmatch(route.search.types, tool["type"]):
            return tool  # `drop_searches` drops one that cannot be sent
        search: dict[str, Any] = dict(route.search.tool)
        losses.append(
            Change(f"/tools/{number}", "lowered", f"this route searches tools with {search['type']!r}")
        )
        return search
    if "function" not in tool and not route.tools.custom:
        raise InvalidToolDecl(
            "this route's provider has no custom tools",
            code="not_portable",
            tool=tool["custom"]["name"],
            fix="Declare a function with one parameter of type string for this model.",
        )
    keywords = lost_at_root(tool, route)
    if keywords:
        where = f"/tools/{number}/function/parameters"
        loss = f"LiteLLM leaves out {', '.join(keywords)} at the root of this schema"
        losses.append(Change(where, "lowered", f"{loss}; the native engine does not"))
    if len(tool) == 2:
        return tool
    fields: Json = {}
    for key, value in tool.items():
        name = route.tools.result_schema if key in _RESULT_SCHEMAS else key
        if key in _ITSELF or name in route.tools.fields:
            fields[name] = value
        elif key not in _FOR_CLIENTS:
            why = _FOUND if key == "defer_loading" else _NOT_SENT.format(key)
            losses.append(Change(pointer(["tools", number, key]), "dropped", why))
    return fields


def _strict(tool: Json, number: int, route: Route, losses: list[Change]) -> Json:
    """Give a strict tool a schema that strict mode accepts; drop the flag if the route cannot send it."""
    function = tool.get("function", {})
    if "strict" not in function or (route.tools.strict and not function["strict"]):
        return tool
    if not route.tools.strict:
        why = "this route cannot send a strict flag; the calls are still checked"
        losses.append(Change(f"/tools/{number}/function/strict", "dropped", why))
        return {**tool, "function": {key: value for key, value in function.items() if key != "strict"}}
    strict = strict_tool(tool, route.tools.strict_rules)
    if strict.closed:
        places = listed((f"'{place}'" for place in strict.closed), 8, ", ")
        why = f"strict mode takes closed objects only; sent as closed: {places}"
        losses.append(Change(f"/tools/{number}/function/parameters", "lowered", why))
    return strict.tool


def lost_at_root(tool: Json, route: Route) -> list[str]:
    """Return the keywords of a function's schema that do not arrive, if they say anything of arguments."""
    if route.tools.root_pattern == ANY or "function" not in tool:
        return []
    schema: Json = tool["function"]["parameters"]
    return [key for key in schema if key not in _NAMING and not re.fullmatch(route.tools.root_pattern, key)]


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


PARAMETERS = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""The parameters of a custom tool that is described as a function."""


def write_custom_calls(request: Request, record: RequestRecord) -> Request:
    """Write the calls of custom tools as the route takes them."""
    tools = request.get("tools", ())
    names = made_once(tools, "custom", lambda: {each["custom"]["name"] for each in tools if "custom" in each})
    calls = (call for row in request["messages"] for call in row.get("tool_calls") or ())
    if not names and not any("custom" in call for call in calls):
        return request
    rows = list(request["messages"])
    for number, row in enumerate(rows):
        if row.get("tool_calls"):
            rows[number] = _with_calls(row, number, names, record)
    return {**request, "messages": rows}


def _with_calls(row: dict[str, Any], number: int, names: set[str], record: RequestRecord) -> dict[str, Any]:
    calls: list[dict[str, Any]] = []
    for place, call in enumerate(row["tool_calls"]):
        form = _form_of(call, names, takes_custom=record.route.tools.custom)
        if form is not call and "function" in form:
            why = "this route has no custom tools; the text is sent as the argument 'input'"
            record.note(f"/messages/{number}/tool_calls/{place}", "lowered", why)
        calls.append(form)
    return {**row, "tool_calls": calls}


def _form_of(call: dict[str, Any], names: set[str], *, takes_custom: bool) -> dict[str, Any]:
    part = named_part(call)
    if "custom" in call and not takes_custom:
        function = {"name": part["name"], "arguments": compact({"input": part["input"]})}
        return {"id": call["id"], "type": "function", "function": function}
    if "function" not in call or part["name"] not in names:
        return call
    if isinstance(parse_arguments(part["arguments"]), dict):
        return call
    custom = {"name": part["name"], "input": part["arguments"]}
    return {"id": call["id"], "type": "custom", "custom": custom}
