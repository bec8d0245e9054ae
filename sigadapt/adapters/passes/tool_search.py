"""Deferred tools, which the model searches for: by its provider's search, or by one that the adapter answers.

The route decides for each request, and nothing is kept but what the turns remember (`Turn.searches`):

 a. Where the model has its provider's search, the tools leave deferred, with that search beside them.
 b. Elsewhere, and with a search of the user's, the adapter answers the searches (`adapter_search.py`).
 c. In a conversation that comes from another route, the calls of hidden tools are written as this one has
    them. The answers of searches name tools alone: what they describe is what is declared now.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sigadapt.adapters.calling.call_record import CallRecord, RequestRecord
from sigadapt.adapters.passes.adapter_search import CALL, MOST_FOUND, SEARCH, AdapterSearch
from sigadapt.adapters.passes.tool_fields import PARAMETERS
from sigadapt.adapters.request.canonical import Request
from sigadapt.errors import InvalidToolDecl
from sigadapt.json_values import Json, compact, cut, is_object, listed
from sigadapt.providers.route import SearchRules
from sigadapt.providers.wire.openai_tools import MOST, is_single
from sigadapt.providers.wire.values import is_search, name_in, named_part
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_decls import CanonicalTools, made_once

_TOOL_PLACE = re.compile(r"/tools/(\d+)")
_LISTED = {"description": "This tool is listed above, or is not there any more."}


def offer_deferred_tools(request: Request, record: RequestRecord) -> Request:
    """Leave deferred tools to the provider's search, or put the adapter's in their place."""
    tools: Sequence[Json] = request.get("tools") or ()
    if record.is_recorded or not tools:
        return request
    _note_answers(record)
    deferred = made_once(tools, "deferred", lambda: _deferred_functions(tools))
    if not deferred:
        return request
    chosen_names = sorted(_names_in_choice(request.get("tool_choice")) & deferred.keys())
    if chosen_names:
        why = f"the tool choice names {listed(map(repr, chosen_names), 8, ', ')}, which the model has to see"
        record.note("/tools", "lowered", why)
        tools = _with_loaded(tools, chosen_names)
        deferred = {name: part for name, part in deferred.items() if name not in chosen_names}
        request = {**request, "tools": tools}
    if deferred:
        request = _offer(request, tools, deferred, record)
    return request


def _offer(request: Request, tools: Sequence[Json], deferred: Json, record: RequestRecord) -> Request:
    for name in {SEARCH, CALL} & {*map(name_in, tools)}:
        why = "the adapter finds deferred tools with a tool of this name"
        raise InvalidToolDecl(why, code="reserved_name", tool=name, fix="Rename yours, or defer none.")
    rows = _with_fewer_names(request["messages"], tools, deferred, record)
    adapter_search = AdapterSearch(tools, deferred, record.decls)
    has_user_search = any(search.function for search in adapter_search.searches)
    provider_search = record.route.search if record.is_native and not has_user_search else None
    declares_search = any(map(is_search, tools))
    if provider_search and (declares_search or provider_search.supports(request["model"])):
        tools = _with_provider_search(tools, provider_search, record, declares_search=declares_search)
        offered: Any = {**request, "messages": rows, "tools": tools}
        return offered
    for number, tool in enumerate(tools):
        if is_search(tool):
            record.note(f"/tools/{number}", "dropped", "the adapter searches itself")
    why = f"the adapter finds the tools with defer_loading itself ({len(deferred):,}): {SEARCH} finds"
    record.note("/tools", "lowered", f"{why}, {CALL} calls")
    record.search = adapter_search._replace(first_change=len(record.changes))
    offered_here: Any = {
        **request,
        "messages": [*_routed_rows(rows, deferred)],
        "tools": adapter_search.offered,
    }
    return offered_here


def _with_provider_search(
    tools: Sequence[Json], search: SearchRules, record: RequestRecord, *, declares_search: bool
) -> Any:
    single = sum(map(is_single, tools))
    if not declares_search:
        tool_json: Json = dict(search.tool)
        key = ("with", tool_json["type"])
        tools = made_once(tools, key, lambda: CanonicalTools([*tools, tool_json]))
        record.note("/tools", "lowered", f"the provider's search is added: {tool_json['type']!r}")
    if search.namespaces and single:
        why = f"{single:,} deferred functions are sent in namespaces of at most {MOST}"
        record.note("/tools", "lowered", why)
    return tools


def count_tools_as_declared(request: Request, record: RequestRecord) -> Request:
    """Let changes of tools name their places in the canonical Request, which has the hidden ones, too."""
    if record.search is None:
        return request
    places = record.search.places
    changes = [*record.changes]
    for number, change in enumerate(changes[record.search.first_change :], record.search.first_change):
        match = _TOOL_PLACE.match(change.where)
        if match is not None and int(match[1]) < len(places):
            where = _TOOL_PLACE.sub(f"/tools/{places[int(match[1])]}", change.where)
            changes[number] = change._replace(where=where)
    record.changes = tuple(changes)
    return request


def separate_searches(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Take the calls of the adapter's own tools out of an answer."""
    search = record.search
    return calls if search is None else search.separate(calls, record.earlier.searches)


def _deferred_functions(tools: Sequence[Json]) -> Json:
    """Return the deferred tools by name, as a search's answer describes them; a custom one as a function."""
    functions: Json = {}
    for tool in tools:
        if tool.get("defer_loading") and ("function" in tool or "custom" in tool):
            part = named_part(tool)
            functions[part["name"]] = {
                "name": part["name"],
                "description": part.get("description", ""),
                "parameters": part.get("parameters", PARAMETERS),
            }
    return functions


def _names_in_choice(choice: Any) -> set[str]:
    """Return the names of the tools in a tool choice; a mode has none."""
    if not is_object(choice):
        return set()
    tools: list[Json] = [choice]
    if "allowed_tools" in choice:
        tools = choice["allowed_tools"]["tools"]
    return {str(name_in(tool)) for tool in tools}


def _with_loaded(tools: Sequence[Json], names: Sequence[str]) -> list[Json]:
    """Return the tools, of which those of these names are not deferred."""
    new_tools = [*tools]
    for number, tool in enumerate(tools):
        if name_in(tool) in names:
            new_tools[number] = {key: part for key, part in tool.items() if key != "defer_loading"}
    return new_tools


def _note_answers(record: RequestRecord) -> None:
    for number, row in enumerate(record.canonical["messages"]):
        if "search" in row:
            search = row["search"]
            outcome = listed(search.found, MOST_FOUND, ", ") or search.note
            why = f"the adapter answered the search for {cut(repr(search.query))}: {outcome}"
            record.note(f"/messages/{number}", "lowered", why)


def _with_fewer_names(
    rows: list[Json], tools: Sequence[Json], deferred: Json, record: RequestRecord
) -> list[Json]:
    """Return messages in which the sentence of DSPy's agents that names every tool names the loaded ones."""
    names = [name_in(tool) for tool in tools if "function" in tool or "custom" in tool]
    sentence = _sentence(names)
    first = rows[0]["content"]
    if not isinstance(first, str) or f"{sentence}." not in first:
        return rows
    why = "the sentence that names all tools names those that are loaded, and the search"
    record.note("/messages/0/content", "lowered", why)
    shorter = _sentence([name for name in names if name not in deferred])
    content = first.replace(f"{sentence}.", f"{shorter}, and those that a search finds.")
    return [{**rows[0], "content": content}, *rows[1:]]


def _sentence(names: Sequence[Any]) -> str:
    listing = ", ".join(f"`{name}`" for name in names)
    return f"The available tools are: {listing}"


def _routed_rows(rows: Sequence[Json], deferred: Json) -> Iterator[Json]:
    """Yield the messages with calls of hidden tools through `call_tool`, and searches that describe tools."""
    routed_ids: set[str] = set()
    for row in rows:
        if row.get("tool_calls"):
            raw: dict[str, str] = row["turn"].routed if row.get("turn") else {}
            routed_ids = {
                call["id"] for call in row["tool_calls"] if call["id"] in raw or name_in(call) in deferred
            }
            calls = [*row["tool_calls"]]
            for number, call in enumerate(calls):
                if call["id"] in routed_ids:
                    calls[number] = _routed_call(call, raw.get(call["id"]))
            yield {**row, "tool_calls": calls} if routed_ids else row
        elif "search" in row and not row["search"].note:
            text = compact([deferred.get(name, {"name": name, **_LISTED}) for name in row["search"].found])
            yield {**row, "content": text, "result": row["result"].model_copy(update={"value": text})}
        elif row.get("tool_call_id") in routed_ids:
            yield {**row, "name": CALL}
        else:
            yield row


def _routed_call(call: Json, raw: str | None) -> Json:
    """Return a call as one of `call_tool`: as it was sent, or anew if the program has changed it."""
    part = named_part(call)
    text: str = compact({"input": part["input"]}) if "input" in part else part["arguments"]
    original = parse_arguments(raw or "{")
    is_as_sent = is_object(original) and text in (raw, compact(original.get("arguments", {})))
    if not raw or not is_as_sent:
        args = parse_arguments(text)
        arguments = args if is_object(args) else {}
        raw = compact({"name": part["name"], "arguments": arguments})
    return {"id": call["id"], "type": "function", "function": {"name": CALL, "arguments": raw}}
