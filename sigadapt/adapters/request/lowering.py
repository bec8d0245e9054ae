"""Make a canonical Request fit for its route, and record every change (nothing silent).

What does not reach the provider is renamed, lowered (the same intent by other means) or dropped, or the call
is refused if the program depends on it. Hooks get the record, and the model's history entry keeps it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sigadapt.adapters.request.aliases import aliases, names_in, with_names, with_sendable_ids
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.request.content.question_content import HALVES, shows_content, with_questions
from sigadapt.adapters.request.content.result_content import with_content
from sigadapt.adapters.request.sendable_tools import lost_at_root, sendable, without_searches
from sigadapt.adapters.request.states import refuse_unreadable_states, state_of
from sigadapt.adapters.request.tool_choice import form_of
from sigadapt.errors import InvalidOption
from sigadapt.providers import BY_WIRE, CHAT
from sigadapt.providers.openai_chat import reasoning_in
from sigadapt.providers.route import ANY, Route
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.providers.wire.writing import drops_thinking
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, as_unicode, compact, cut, is_object, is_unicode, listed
from sigadapt.signatures.tool_decls import CanonicalTools

_MOST_NAMES = 20  # of blocks, in the record of what was left out


class Lowered(NamedTuple):
    """A Request made fit for a route."""

    request: Request
    names: Mapping[str, str] = {}  # the aliases of its tools, by declared name
    changes: tuple[Change, ...] = ()
    settings: Mapping[str, Json] = {}  # the fields of the body that its tools need together
    tokens: Mapping[str, str] = {}  # of MCP servers, by their names; nothing but the body may hold them


def lower(request: Request, route: Route) -> Lowered:
    """Return a Request made fit for a route, or raise the reason why it cannot be sent there."""
    if _goes_as_it_is(request, route):
        return Lowered(request)
    changes: list[Change] = []
    request = _choice(request, route, changes)
    request = _settings(request, route, changes)
    tools = request.get("tools")
    plain = not tools or (route.tools.root_pattern == ANY and getattr(tools, "is_plain", False))
    if not plain:
        tools, losses = sendable(tools or (), route)
        changes += losses
        request = {**request, "tools": tools}
    request = _without_halves(request, changes)
    table = aliases(names_in(request), *route.names)
    if any(map(shows_content, request["messages"])):
        request, losses = with_questions(request, route)
        changes += losses
    if table or any(row["role"] in ("assistant", "tool") or "parts" in row for row in request["messages"]):
        refuse_unreadable_states(request, route)
        request = _custom_calls(request, route, changes)
        for number, tool in enumerate(request.get("tools", ())):
            name = named_part(tool).get("name")
            if name in table:
                why = f"the provider would refuse {name!r}; it is sent as {table[name]!r}"
                changes.append(Change(f"/tools/{number}/{tool['type']}/name", "renamed", why))
        changes += _foreign(request, route)
        # A gateway gets the ids that it made; LiteLLM takes signatures off them.
        states = filter(None, map(state_of, request["messages"])) if route.client == "lm15" else ()
        gateways = [state for state in states if "endpoint" in state and route.replays(state)]
        gateway_ids = {each for state in gateways for each in state.get("ids", ())}
        request, renames = with_sendable_ids(with_names(request, table), *route.ids, gateway_ids)
        request, moves = with_content(request, route)
        changes += (*renames, *moves)
        if route.turns.stand_in is not None and route.turns.stand_in(None, request["model"]) is not None:
            request = _sign(request, route, changes)
    if not plain:
        request = without_searches(request, route, changes)
    provider = BY_WIRE.get(route.wire) if route.client == "lm15" else None
    settings = provider.settings_for(dict(request)) if provider is not None else {}
    if settings:
        why = f"these tools need a setting beside them, which is sent: {compact(settings)}"
        changes.append(Change("/tools", "lowered", why))
    caveat = route.caveat(dict(request)) if route.caveat is not None else ""
    if caveat:
        changes.append(Change("", "lowered", caveat))
    return Lowered(request, table, tuple(changes), settings)


_SETTINGS = frozenset({"tool_choice", "parallel_tool_calls", "response_format"})


def _goes_as_it_is(request: Request, route: Route) -> bool:
    """Return whether one look shows that nothing has to be changed, as in questions with plain tools."""
    if not _SETTINGS.isdisjoint(request):
        return False
    for row in request["messages"]:
        content = row.get("content")
        if row["role"] not in ("user", "system") or type(content) is not str or "parts" in row:
            return False
        if not (content.isascii() or is_unicode(content)):
            return False
    tools: Any = request.get("tools")
    if not tools:
        return True
    return type(tools) is CanonicalTools and route.caveat is None and _are_sendable(tools, route)


def _are_sendable(tools: CanonicalTools, route: Route) -> bool:
    """Return whether tools are plain functions with names that the route takes."""
    key = route.names, route.tools.root_pattern
    if key not in tools.memo:
        names = names_in({"model": "", "messages": [], "tools": tools})
        fit = tools.is_plain and not aliases(names, *route.names)
        tools.memo[key] = fit and not any(lost_at_root(tool, route) for tool in tools)
    return tools.memo[key]


def _without(request: Request, *keys: str) -> Request:
    rest: Any = {key: value for key, value in request.items() if key not in keys}
    return rest


def _choice(request: Request, route: Route, changes: list[Change]) -> Request:
    choice = request.get("tool_choice")
    if choice is None:
        return request
    form = form_of(choice)
    forces = form not in ("auto", "none", "validated")
    thinking: Any = request.get("thinking")  # a setting that only LiteLLM takes
    thinks = is_object(thinking) and thinking.get("type") != "disabled"
    thinks = thinks or request.get("reasoning_effort") not in (None, "none", "off")
    if not request.get("tools") and route.client != "engine":  # providers refuse a choice without tools
        if forces:
            raise InvalidOption("it forces a call, but no tool is sent", field="tool_choice")
        why = "no tools are sent, so there is nothing to choose"
        changes.append(Change("/tool_choice", "dropped", why))
        return _without(request, "tool_choice")
    if forces and thinks and not route.choices.forces_with_thinking:
        raise InvalidOption(
            "this provider refuses a forced tool choice while thinking is on",
            field="tool_choice",
            fix="Use tool_choice='auto', or reasoning_effort=None (or no thinking=) for this call.",
        )
    return request if form in route.choices.forms else _instead_of(choice, form, request, route, changes)


def _instead_of(choice: Any, form: str, request: Request, route: Route, changes: list[Change]) -> Request:
    """Lower or drop a choice that the route has no form for."""
    if form == "none":
        changes.append(Change("/tools", "lowered", "this route has no tool choice; no tools are sent"))
        return _without(request, "tools", "tool_choice", "parallel_tool_calls")
    if form == "validated":
        why = "this route has no mode that checks calls; the model decides, and its calls are still checked"
        changes.append(Change("/tool_choice", "lowered", why))
        tools = choice["allowed_tools"]["tools"]
        several = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}}
        return _choice({**request, "tool_choice": several if tools else "auto"}, route, changes)
    if not isinstance(choice, str) and form != "own":
        request = _chosen_only(request, choice, changes)
        if "required" in route.choices.forms:
            return request
    what = "cannot name a tool that the provider runs" if form == "own" else "has no tool choice"
    changes.append(Change("/tool_choice", "dropped", f"this route {what}; the model decides"))
    return _without(request, "tool_choice")


def _chosen_only(request: Request, choice: dict[str, Any], changes: list[Change]) -> Request:
    """Lower a choice that the route has no form for: send only the chosen tools."""
    subset = choice.get("allowed_tools", {"mode": "required", "tools": [choice]})
    names = [(each.get("type"), name_in(each)) for each in subset["tools"]]
    tools = [tool for tool in request.get("tools", ()) if (tool.get("type"), name_in(tool)) in names]
    why = "this route has no such choice; only the chosen tools are sent"
    changes.append(Change("/tools", "lowered", why))
    return {**request, "tools": tools, "tool_choice": subset["mode"]}


def _settings(request: Request, route: Route, changes: list[Change]) -> Request:
    if "parallel_tool_calls" in request and not route.choices.parallel:
        why = "this route has no such setting; the model decides"
        changes.append(Change("/parallel_tool_calls", "dropped", why))
        request = _without(request, "parallel_tool_calls")
    if "response_format" in request and request.get("tools") and not route.choices.formats_beside_tools:
        why = "this provider refuses a response format beside tools; the prompt describes the format"
        changes.append(Change("/response_format", "dropped", why))
        request = _without(request, "response_format")
    return request


def _custom_calls(request: Request, route: Route, changes: list[Change]) -> Request:
    """Give each call of a custom tool the form that the route takes."""
    # A bad call of a declared custom tool gets that form too. Where there are no custom tools, a call becomes
    # that of a function, whose argument `input` is the text.
    customs = {tool["custom"]["name"] for tool in request.get("tools", ()) if "custom" in tool}
    made_custom = ("custom" in call for row in request["messages"] for call in row.get("tool_calls") or ())
    if not customs and not any(made_custom):
        return request
    rows = list(request["messages"])
    for number, row in enumerate(rows):
        originals = row.get("tool_calls") or ()
        calls = [_custom_call(call, customs, route) for call in originals]
        for place, call in enumerate(calls):
            if call is not originals[place] and "function" in call:
                why = "this route has no custom tools; the text is sent as the argument 'input'"
                changes.append(Change(f"/messages/{number}/tool_calls/{place}", "lowered", why))
        rows[number] = {**row, "tool_calls": calls} if calls else row
    return {**request, "messages": rows}


def _custom_call(call: dict[str, Any], customs: set[str], route: Route) -> dict[str, Any]:
    part = named_part(call)
    if "custom" in call and not route.tools.custom:
        function = {"name": part["name"], "arguments": compact({"input": part["input"]})}
        return {"id": call["id"], "type": "function", "function": function}
    if (
        "function" in call
        and part["name"] in customs
        and not isinstance(parse_arguments(part["arguments"]), dict)
    ):
        custom = {"name": part["name"], "input": part["arguments"]}
        return {"id": call["id"], "type": "custom", "custom": custom}
    return call


def _without_halves(request: Request, changes: list[Change]) -> Request:
    """Replace half of a surrogate pair in a text, because no request can hold it."""
    # Here that is done in questions. In turns and results, whoever writes them for the provider does it.
    rows = request["messages"]
    contents = [row.get("content") for row in rows]
    broken_rows = [n for n, text in enumerate(contents) if isinstance(text, str) and not is_unicode(text)]
    changes += (Change(f"/messages/{number}/content", "lowered", HALVES) for number in broken_rows)
    questions = {number for number in broken_rows if rows[number]["role"] in ("system", "user")}
    messages = [
        {**row, "content": as_unicode(row["content"])} if number in questions else row
        for number, row in enumerate(rows)
    ]
    return {**request, "messages": messages} if questions else request


def _foreign(request: Request, route: Route) -> Iterator[Change]:
    """Record what stays behind of turns, and failed results on a route that has no flag for them."""
    for number, row in enumerate(request["messages"]):
        state = state_of(row)
        why = None if state is None else _left_behind(state, row, route)
        if why:
            yield Change(f"/messages/{number}/turn/state", "dropped", why)
        elif state is not None and route.turns.reasoning_field is None and reasoning_in(state):
            why = "replay_reasoning=False keeps the reasoning here; only text and calls are sent"
            yield Change(f"/messages/{number}/turn/state", "dropped", why)
        if row.get("is_error") and not route.results.marks_failed:
            why = "this route has no flag for a failed result; its text begins with 'ERROR: '"
            yield Change(f"/messages/{number}/is_error", "lowered", why)


def _left_behind(state: Json, row: Json, route: Route) -> str | None:
    """Return what of a turn does not go back, and why; None if all of it goes back."""
    provider = BY_WIRE.get(state["dialect"])
    if provider is None or not route.replays(state):
        others = [*provider.extras(state)] if provider else []
        if route.turns.reasoning_of_others and reasoning_in(state) and {*others} == {"reasoning"}:
            return None
        owner = state.get("endpoint", state["dialect"])
        names = _names(others) or "the order of its blocks"
        return f"this provider state belongs to {cut(owner)}; only text and calls are sent, not {names}"
    if (route.as_chat or state["dialect"] != route.wire) and state["dialect"] != CHAT.name:
        names = _names(provider.extras(state, in_chat=True))
        return f"this route has no place for {names}" if names else None
    if state.get("lost"):
        names = _names(state["lost"])
        return f"{names} cannot be sent: nested too deep, half of a surrogate pair, or not a whole block"
    if drops_thinking(provider, row, state):
        return "reasoning is not sent without the call that it led to, which was taken out"
    return None


def _names(names: Iterable[str]) -> str:
    """Return the names of the blocks and fields that only their own provider takes, each once."""
    return listed(map(cut, dict.fromkeys(names)), _MOST_NAMES, ", ")


def _sign(request: Request, route: Route, changes: list[Change]) -> Request:
    """Add what the provider asks for in place of missing state, to the first calls of the running turn."""
    # The running turn is what follows the user's last message. LiteLLM adds the same by itself, to every
    # turn.
    rows = request["messages"]
    question = max((number for number, row in enumerate(rows) if row["role"] == "user"), default=-1)
    messages = list(rows)
    for number, row in enumerate(rows):
        if not row.get("tool_calls") or (number < question and not route.as_chat):
            continue
        state = state_of(row)
        fields = route.turns.stand_in(state, request["model"]) if route.turns.stand_in else None
        if fields is not None:
            messages[number] = {**row, "stand_in": fields}
            why = f"the turn has no state of this provider, which asks for {fields} in its place"
            changes.append(Change(f"/messages/{number}/tool_calls/0", "lowered", why))
    return {**request, "messages": messages}
