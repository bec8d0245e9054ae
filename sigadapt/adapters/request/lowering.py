"""The canonical request made fit for one wire, and a record of every change (rule 3: nothing silent).

What a row of `profiles.py` says a wire cannot take is renamed, lowered or dropped here, or refused where the
program depends on it. The record is given to hooks and kept on the language model's history entry.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Literal, NamedTuple

from sigadapt.adapters.request.aliases import aliases, ids_in, names_in, renamed, with_ids
from sigadapt.adapters.request.canonical import Request
from sigadapt.errors import InvalidOption
from sigadapt.providers.provider import Route
from sigadapt.schemas.json_values import listed
from sigadapt.schemas.strict import strict_tool


class Change(NamedTuple):
    """One difference between the canonical request and what the provider gets.

    Args:
        where: a JSON Pointer into the canonical request.
        what: `renamed`, `lowered` (the same intent by other means) or `dropped`.
        why: the reason, with what is sent in its place.
    """

    where: str
    what: Literal["renamed", "lowered", "dropped"]
    why: str


class Lowered(NamedTuple):
    """A request for one wire, the aliases of its tools by declared name, and the changes."""

    request: Request
    names: dict[str, str]
    changes: tuple[Change, ...]


def lowered(request: Request, route: Route) -> Lowered:
    """Make a request fit for a wire.

    Args:
        request: the canonical request; not changed.
        route: the wire.

    Raises:
        InvalidOption: for what the provider refuses in combination, such as a forced choice with thinking on.
        InvalidToolDecl: `not_portable`, for a schema that cannot travel.

    Example:
        >>> from sigadapt.providers import ollama
        >>> request: Request = {"model": "m", "messages": [], "tools": [], "tool_choice": "none"}
        >>> lowered(request, ollama.PROVIDER.routes[0]).changes[0].what
        'lowered'
    """
    changes: list[Change] = []
    request = _choice(request, route, changes)
    request = _settings(request, route, changes)
    request = _strict(request, route, changes)
    request = _portable(request, route, changes)
    table = aliases(names_in(request), route.names, route.longest_name)
    if not table and not _has_turns(request):
        return Lowered(request, {}, tuple(changes))
    if table:
        changes += _renamings(request, table)
    changes += _foreign(request, route)
    ids = aliases(ids_in(request), route.ids, route.longest_id)
    return Lowered(with_ids(renamed(request, table), ids), table, tuple(changes))


def _has_turns(request: Request) -> bool:
    """Whether the model has said anything yet: calls, results and provider state come of that."""
    for row in request["messages"]:  # noqa: SIM110  (any() with a generator takes three times as long)
        if row["role"] in ("assistant", "tool"):
            return True
    return False


def _without(request: Request, *keys: str) -> Request:
    kept: Any = {key: value for key, value in request.items() if key not in keys}
    return kept


def _choice(request: Request, route: Route, changes: list[Change]) -> Request:
    choice = request.get("tool_choice")
    if choice is None:
        return request
    form = "subset" if isinstance(choice, dict) and choice["type"] == "allowed_tools" else "named"
    form = choice if isinstance(choice, str) else form
    if form in ("required", "named", "subset"):
        _refuse_forced_with_thinking(request, route)
    if form in route.choices:
        return request
    if form == "none":
        changes.append(Change("/tools", "lowered", "this wire has no tool choice; no tools are sent"))
        return _without(request, "tools", "tool_choice", "parallel_tool_calls")
    if isinstance(choice, dict):
        request = _chosen_only(request, choice, changes)
        if "required" in route.choices:
            return request
    changes.append(Change("/tool_choice", "dropped", "this wire has no tool choice; the model decides"))
    return _without(request, "tool_choice")


def _chosen_only(request: Request, choice: dict[str, Any], changes: list[Change]) -> Request:
    """The same choice on a wire that has no form for it: no other tool is there to call."""
    allowed = choice.get("allowed_tools", {"mode": "required", "tools": [choice]})
    names = {tool["function"]["name"] for tool in allowed["tools"]}
    tools = [tool for tool in request.get("tools", []) if tool.get("function", {}).get("name") in names]
    changes.append(Change("/tools", "lowered", "this wire has no such choice; only these tools are sent"))
    narrowed: Request = {**request, "tools": tools, "tool_choice": allowed["mode"]}
    return narrowed


def _refuse_forced_with_thinking(request: Request, route: Route) -> None:
    if route.forces_with_thinking or request.get("reasoning_effort") in (None, "none", "off"):
        return
    raise InvalidOption(
        "this provider refuses a forced tool choice while thinking is on",
        field="tool_choice",
        fix="Use tool_choice='auto', or reasoning_effort=None for this call.",
    )


def _settings(request: Request, route: Route, changes: list[Change]) -> Request:
    if "parallel_tool_calls" in request and not route.parallel:
        changes.append(
            Change("/parallel_tool_calls", "dropped", "this wire has no such setting; the model decides")
        )
        request = _without(request, "parallel_tool_calls")
    if "response_format" in request and request.get("tools") and not route.formats_beside_tools:
        why = "this provider refuses a response format beside tools; the prompt says the format"
        changes.append(Change("/response_format", "dropped", why))
        request = _without(request, "response_format")
    return request


def _strict(request: Request, route: Route, changes: list[Change]) -> Request:
    """Strict tools with a schema that strict mode takes, or without the flag where none gets through."""
    tools = request.get("tools")
    if not tools or not any(tool.get("function", {}).get("strict") for tool in tools):
        return request
    fitted: list[dict[str, Any]] = []
    for number, tool in enumerate(tools):
        if not tool.get("function", {}).get("strict"):
            fitted.append(tool)
        elif route.strict:
            strict = strict_tool(tool)
            fitted.append(strict.tool)
            if strict.closed:
                places = listed((f"'{place}'" for place in strict.closed), 8, ", ")
                why = f"strict mode takes closed objects only; sent as closed: {places}"
                changes.append(Change(f"/tools/{number}/function/parameters", "lowered", why))
        else:
            why = "no strict flag gets through on this wire; the calls are validated all the same"
            changes.append(Change(f"/tools/{number}/function/strict", "dropped", why))
            function = {key: value for key, value in tool["function"].items() if key != "strict"}
            fitted.append({**tool, "function": function})
    changed: Request = {**request, "tools": fitted}
    return changed


def _portable(request: Request, route: Route, changes: list[Change]) -> Request:
    tools = request.get("tools")
    if not tools or route.losses is None:
        return request
    changes += [Change(f"/tools{loss.where}", loss.what, loss.why) for loss in route.losses(tools)]
    own: Request = {**request, "tools": deepcopy(tools)}  # LiteLLM rewrites these schemas where they stand
    return own


def _renamings(request: Request, table: dict[str, str]) -> Iterator[Change]:
    for number, tool in enumerate(request.get("tools", ())):
        name = tool.get("function", {}).get("name")
        if name in table:
            why = f"the provider would refuse {name!r}; it is sent as {table[name]!r}"
            yield Change(f"/tools/{number}/function/name", "renamed", why)


def _foreign(request: Request, route: Route) -> Iterator[Change]:
    """Provider state of another provider's turns, and failed results on a wire that has no flag for them."""
    for number, row in enumerate(request["messages"]):
        state = row["turn"].state if row.get("turn") else None
        if state is not None and state["dialect"] not in route.takes:
            why = f"its provider state is {state['dialect']}'s; text and calls are sent"
            yield Change(f"/messages/{number}/turn/state", "dropped", why)
        if row.get("is_error") and not route.marks_failed_results:
            why = "this wire has no flag for a failed result; its text begins with 'ERROR: '"
            yield Change(f"/messages/{number}/is_error", "lowered", why)
