"""Make a canonical Request fit for its route, and record every change (rule 3: nothing silent).

A `Route` (`providers/provider.py`) says what does not reach the provider. Such a part is renamed, lowered
(the same intent by other means) or dropped, or the call is refused if the program depends on it. Hooks get
the record, and the language model's history entry keeps it.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Literal, NamedTuple, cast

from sigadapt.adapters.request.aliases import NewId, aliases, names_in, renamed, with_sendable_ids
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.equal_calls import without_equal_calls
from sigadapt.adapters.request.states import refuse_unreadable_states
from sigadapt.errors import InvalidOption
from sigadapt.providers.provider import Route
from sigadapt.schemas.json_values import as_unicode, cut, is_unicode, listed
from sigadapt.schemas.strict import strict_tool


class Change(NamedTuple):
    """One difference between the canonical Request and what the provider gets.

    Args:
        where: a JSON Pointer into the canonical Request.
        what: `renamed`, `lowered` (the same intent by other means) or `dropped`.
        why: the reason, and what is sent instead.
    """

    where: str
    what: Literal["renamed", "lowered", "dropped"]
    why: str


class Lowered(NamedTuple):
    """A Request made fit for a route.

    Args:
        request: the changed Request.
        names: the aliases of its tools, by declared name.
        changes: what was changed.
    """

    request: Request
    names: dict[str, str]
    changes: tuple[Change, ...]


def lowered(request: Request, route: Route) -> Lowered:
    """Return a Request made fit for a route, with a record of the changes.

    Args:
        request: the canonical Request; not changed.
        route: the route.

    Raises:
        InvalidOption: for a forced tool choice while thinking is on, if the provider refuses this.
        InvalidToolDecl: `not_portable`, for a schema that cannot be sent on this route.
        InvalidHistory: `unreadable_state`, for saved provider state that is none.

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
    request = _without_halves(request, changes)
    if route.merges is not None:
        request = _apart(request, route, changes)
    if route.asked_as:
        changes += _door(request, route)
    table = aliases(names_in(request), route.names, route.longest_name)
    if not table and not _has_turns(request):
        return Lowered(request, {}, tuple(changes))
    refuse_unreadable_states(request, route.takes)
    if table:
        changes += _renamings(request, table)
    changes += _foreign(request, route)
    request, ids = with_sendable_ids(renamed(request, table), route.ids, route.longest_id)
    changes += map(_new_id, ids)
    return Lowered(request, table, tuple(changes))


def _has_turns(request: Request) -> bool:
    """Return whether the conversation has earlier turns, and so may have calls, results or provider state."""
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
        changes.append(Change("/tools", "lowered", "this route has no tool choice; no tools are sent"))
        return _without(request, "tools", "tool_choice", "parallel_tool_calls")
    if isinstance(choice, dict):
        request = _chosen_only(request, choice, changes)
        if "required" in route.choices:
            return request
    changes.append(Change("/tool_choice", "dropped", "this route has no tool choice; the model decides"))
    return _without(request, "tool_choice")


def _chosen_only(request: Request, choice: dict[str, Any], changes: list[Change]) -> Request:
    """Lower a choice that the route has no form for: send only the chosen tools."""
    allowed = choice.get("allowed_tools", {"mode": "required", "tools": [choice]})
    names = {tool["function"]["name"] for tool in allowed["tools"]}
    tools = [tool for tool in request.get("tools", []) if tool.get("function", {}).get("name") in names]
    changes.append(
        Change("/tools", "lowered", "this route has no such choice; only the chosen tools are sent")
    )
    narrowed: Request = {**request, "tools": tools, "tool_choice": allowed["mode"]}
    return narrowed


def _refuse_forced_with_thinking(request: Request, route: Route) -> None:
    if route.forces_with_thinking or not _is_thinking(request):
        return
    raise InvalidOption(
        "this provider refuses a forced tool choice while thinking is on",
        field="tool_choice",
        fix="Use tool_choice='auto', or reasoning_effort=None (or no thinking=) for this call.",
    )


def _is_thinking(request: Request) -> bool:
    thinking: Any = request.get("thinking")  # a setting that only LiteLLM takes
    is_on = isinstance(thinking, dict) and cast("dict[str, Any]", thinking).get("type") != "disabled"
    return is_on or request.get("reasoning_effort") not in (None, "none", "off")


def _settings(request: Request, route: Route, changes: list[Change]) -> Request:
    if "parallel_tool_calls" in request and not route.parallel:
        changes.append(
            Change("/parallel_tool_calls", "dropped", "this route has no such setting; the model decides")
        )
        request = _without(request, "parallel_tool_calls")
    if "response_format" in request and request.get("tools") and not route.formats_beside_tools:
        why = "this provider refuses a response format beside tools; the prompt describes the format"
        changes.append(Change("/response_format", "dropped", why))
        request = _without(request, "response_format")
    return request


def _strict(request: Request, route: Route, changes: list[Change]) -> Request:
    """Give strict tools a schema that strict mode accepts; drop the flag if the route cannot send it."""
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
            why = "this route cannot send a strict flag; the calls are still checked"
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
    own: Request = {**request, "tools": deepcopy(tools)}  # LiteLLM changes these schemas in place
    return own


def _apart(request: Request, route: Route, changes: list[Change]) -> Request:
    """Send equal calls of one turn in turns of their own, if the route would merge them."""
    if route.merges is None or not route.merges(request["model"]):
        return request
    rows = list(request["messages"])
    why = "this route merges equal calls; they are sent as turns of their own, with their results"
    for place, end, made in reversed(list(without_equal_calls(rows))):
        rows[place:end] = made
        changes.append(Change(f"/messages/{place}/tool_calls", "lowered", why))
    apart: Request = {**request, "messages": rows}
    return apart


def _door(request: Request, route: Route) -> Iterator[Change]:
    prefix = request["model"].partition("/")[0]
    if request.get("tools") and prefix in route.prefixes - {route.asked_as}:
        why = f"LiteLLM's {prefix}/ puts tools into the prompt; it is asked as {route.asked_as}/"
        yield Change("/model", "lowered", why)


def _renamings(request: Request, table: dict[str, str]) -> Iterator[Change]:
    for number, tool in enumerate(request.get("tools", ())):
        name = tool.get("function", {}).get("name")
        if name in table:
            why = f"the provider would refuse {name!r}; it is sent as {table[name]!r}"
            yield Change(f"/tools/{number}/function/name", "renamed", why)


def _new_id(new: NewId) -> Change:
    reason = "an earlier call has the id" if new.repeated else "the provider would refuse the id"
    where = f"/messages/{new.message}/tool_calls/{new.call}/id"
    return Change(where, "renamed", f"{reason} {cut(repr(new.given))}; it is sent as {new.sent!r}")


def _without_halves(request: Request, changes: list[Change]) -> Request:
    """Replace half of a surrogate pair in a text, because no request can hold it.

    Here that is done in questions. In turns and results, whoever writes them for the provider does it.
    """
    rows = request["messages"]
    halved = [number for number, row in enumerate(rows) if _is_halved(row.get("content"))]
    why = "half of a surrogate pair cannot be sent; a question mark is sent in its place"
    changes += (Change(f"/messages/{number}/content", "lowered", why) for number in halved)
    asked = {number for number in halved if rows[number]["role"] in ("system", "user")}
    if not asked:
        return request
    sent = [
        {**row, "content": as_unicode(row["content"])} if number in asked else row
        for number, row in enumerate(rows)
    ]
    changed: Request = {**request, "messages": sent}
    return changed


def _is_halved(content: object) -> bool:
    return isinstance(content, str) and not is_unicode(content)


def _foreign(request: Request, route: Route) -> Iterator[Change]:
    """Record provider state of another provider, and failed results on a route that has no flag for them."""
    for number, row in enumerate(request["messages"]):
        state = row["turn"].state if row.get("turn") else None
        if state is not None and state["dialect"] not in route.takes:
            why = f"this provider state belongs to {state['dialect']}; only text and calls are sent"
            yield Change(f"/messages/{number}/turn/state", "dropped", why)
        elif state is not None and not route.replays_reasoning and _has_plain_reasoning(state):
            why = "this route does not take `reasoning_content` back; only text and calls are sent"
            yield Change(f"/messages/{number}/turn/state", "dropped", why)
        if row.get("is_error") and not route.marks_failed_results:
            why = "this route has no flag for a failed result; its text begins with 'ERROR: '"
            yield Change(f"/messages/{number}/is_error", "lowered", why)


def _has_plain_reasoning(state: dict[str, Any]) -> bool:
    return any(item.get("continuation", ("", ""))[1] == "reasoning_content" for item in state["items"])
