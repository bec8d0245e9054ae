"""Make a canonical Request fit for its route, and record every change (nothing silent).

A `Route` (`providers/provider.py`) says what does not reach the provider. Such a part is renamed, lowered
(the same intent by other means) or dropped, or the call is refused if the program depends on it. Hooks get
the record, and the language model's history entry keeps it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from sigadapt.adapters.request.aliases import aliases, names_in, with_names, with_sendable_ids
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.result_content import has_content, with_content
from sigadapt.adapters.request.sendable_tools import lost_at_root, sendable, unsearched
from sigadapt.adapters.request.states import refuse_unreadable_states, state_of
from sigadapt.adapters.request.tool_choice import form_of
from sigadapt.errors import InvalidOption
from sigadapt.providers import CHAT, provider_of
from sigadapt.providers.openai_chat import reasoning_in
from sigadapt.providers.provider import ANY, SIGNED_ID, Route
from sigadapt.providers.wire.values import named_part
from sigadapt.providers.writing import drops_thinking
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, as_unicode, compact, cut, is_object, is_unicode, listed
from sigadapt.schemas.strict import strict_tool
from sigadapt.signatures.rendering import Rendered
from sigadapt.signatures.tool_decls import CanonicalTools

_MOST_NAMES = 20  # of blocks, in the record of what was left out


class Change(NamedTuple):
    """One difference between the canonical Request and what the provider gets.

    Args:
        where: a JSON Pointer into the canonical Request.
        what: `renamed`, `lowered` (the same intent by other means), `dropped`, or `healed` (`orphans.py`).
        why: the reason, and what is sent instead.
    """

    where: str
    what: Literal["renamed", "lowered", "dropped", "healed"]
    why: str

    def _rendered(self) -> Rendered:
        return Rendered(f"Change: {self.what}", lines=[("where", self.where), ("why", self.why)])

    def _repr_html_(self) -> str:
        return self._rendered().html()

    def __rich__(self) -> Any:
        return self._rendered().rich()


class Lowered(NamedTuple):
    """A Request made fit for a route.

    Args:
        request: the changed Request.
        names: the aliases of its tools, by declared name.
        changes: what was changed.
        settings: the fields of the body that its tools need together.
    """

    request: Request
    names: dict[str, str]
    changes: tuple[Change, ...]
    settings: Mapping[str, Json] | None = None


def lower(request: Request, route: Route) -> Lowered:
    """Return a Request made fit for a route, with a record of the changes.

    Raises:
        InvalidOption: for a forced tool choice without tools, or while thinking is on if the provider refuses
            this.
        InvalidToolDecl: `not_portable`, for a schema that cannot be sent on this route.
        InvalidHistory: `unreadable_state`, for saved provider state that is none; `unsendable_content`, for a
            result with something that the route cannot send.
    """
    if _goes_as_it_is(request, route):
        return Lowered(request, {}, ())
    changes: list[Change] = []
    request = _choice(request, route, changes)
    request = _settings(request, route, changes)
    tools = request.get("tools")
    plain = not tools or (route.root_pattern == ANY and getattr(tools, "is_plain", False))
    if not plain:
        request = _sendable(request, route, changes)
        request = _strict(request, route, changes)
    request = _without_halves(request, changes)
    table = aliases(names_in(request), route.name_pattern, route.longest_name)
    if table or any(row["role"] in ("assistant", "tool") for row in request["messages"]):
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
        own = {each for state in gateways for each in state["ids"]}
        request, ids = with_sendable_ids(with_names(request, table), route.id_pattern, route.longest_id, own)
        for new in ids:
            reason = "a provider's signature is in" if SIGNED_ID in new.given else "the provider would refuse"
            reason = "an earlier call has" if new.repeated else reason
            why = f"{reason} the id {cut(repr(new.given))}; it is sent as {new.sent!r}"
            changes.append(Change(f"/messages/{new.message}/tool_calls/{new.call}/id", "renamed", why))
        if has_content(request):
            request, moved = with_content(request, route)
            changes += (Change(where, "lowered", why) for where, why in moved)
        if route.stand_in is not None and route.stand_in(None, request["model"]) is not None:
            request = _sign(request, route, changes)
    if not plain:
        request = _without_searches(request, route, changes)
    wire = provider_of(route.dialect) if route.client == "lm15" else None
    needed = wire.settings_for(dict(request)) if wire is not None else {}
    if needed:
        why = f"these tools are taken together only with a setting, which is sent: {compact(needed)}"
        changes.append(Change("/tools", "lowered", why))
    caveat = route.caveat(dict(request)) if route.caveat is not None else ""
    if caveat:
        changes.append(Change("", "lowered", caveat))
    return Lowered(request, table, tuple(changes), needed)


_SETTINGS = frozenset({"tool_choice", "parallel_tool_calls", "response_format"})


def _goes_as_it_is(request: Request, route: Route) -> bool:
    """Return whether one look shows that nothing has to be changed, as in questions with plain tools."""
    if not _SETTINGS.isdisjoint(request):
        return False
    for row in request["messages"]:
        content = row.get("content")
        if row["role"] not in ("user", "system") or type(content) is not str:
            return False
        if not (content.isascii() or is_unicode(content)):
            return False
    tools: Any = request.get("tools")
    if not tools:
        return True
    return type(tools) is CanonicalTools and route.caveat is None and _are_sendable(tools, route)


def _are_sendable(tools: CanonicalTools, route: Route) -> bool:
    """Return whether tools are plain functions with names that the route takes."""
    key = route.name_pattern, route.longest_name, route.root_pattern
    known = tools.kept.get(key)
    if known is None:
        request: Request = {"model": "", "messages": [], "tools": tools}
        known = tools.is_plain and not aliases(names_in(request), route.name_pattern, route.longest_name)
        known = known and not any(lost_at_root(tool, route) for tool in tools)
        tools.kept[key] = known
    return known


def _without(request: Request, *keys: str) -> Request:
    kept: Any = {key: value for key, value in request.items() if key not in keys}
    return kept


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
    if forces and thinks and not route.forces_with_thinking:
        raise InvalidOption(
            "this provider refuses a forced tool choice while thinking is on",
            field="tool_choice",
            fix="Use tool_choice='auto', or reasoning_effort=None (or no thinking=) for this call.",
        )
    return request if form in route.tool_choices else _instead_of(choice, form, request, route, changes)


def _instead_of(choice: Any, form: str, request: Request, route: Route, changes: list[Change]) -> Request:
    """Lower or drop a choice that the route has no form for."""
    if form == "none":
        changes.append(Change("/tools", "lowered", "this route has no tool choice; no tools are sent"))
        return _without(request, "tools", "tool_choice", "parallel_tool_calls")
    if form == "validated":
        return _without_validation(request, route, changes)
    if not isinstance(choice, str) and form != "own":
        request = _chosen_only(request, choice, changes)
        if "required" in route.tool_choices:
            return request
    what = "cannot name a tool that the provider runs" if form == "own" else "has no tool choice"
    changes.append(Change("/tool_choice", "dropped", f"this route {what}; the model decides"))
    return _without(request, "tool_choice")


def _without_validation(request: Request, route: Route, changes: list[Change]) -> Request:
    """Lower a choice whose calls the provider would check: sigadapt checks them."""
    choice: Any = request.get("tool_choice")
    why = "this route has no mode that checks calls; the model decides, and its calls are still checked"
    changes.append(Change("/tool_choice", "lowered", why))
    tools = choice["allowed_tools"]["tools"]
    several = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}}
    lowered_choice: Request = {**request, "tool_choice": several if tools else "auto"}
    return _choice(lowered_choice, route, changes)


def _chosen_only(request: Request, choice: dict[str, Any], changes: list[Change]) -> Request:
    """Lower a choice that the route has no form for: send only the chosen tools."""
    allowed = choice.get("allowed_tools", {"mode": "required", "tools": [choice]})
    chosen, every = (
        [(each.get("type"), named_part(each).get("name") or each.get("name")) for each in entries]
        for entries in (allowed["tools"], request.get("tools", ()))
    )
    tools = [tool for tool, own in zip(request.get("tools", ()), every, strict=True) if own in chosen]
    why = "this route has no such choice; only the chosen tools are sent"
    changes.append(Change("/tools", "lowered", why))
    narrowed: Request = {**request, "tools": tools, "tool_choice": allowed["mode"]}
    return narrowed


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
    if not tools or not any("strict" in tool.get("function", ()) for tool in tools):
        return request
    fitted: list[dict[str, Any]] = []
    for number, tool in enumerate(tools):
        function = tool.get("function", {})
        if "strict" not in function or (route.strict and not function["strict"]):
            fitted.append(tool)
        elif route.strict:
            strict = strict_tool(tool, route.strict_rules)
            fitted.append(strict.tool)
            if strict.closed:
                places = listed((f"'{place}'" for place in strict.closed), 8, ", ")
                why = f"strict mode takes closed objects only; sent as closed: {places}"
                changes.append(Change(f"/tools/{number}/function/parameters", "lowered", why))
        else:
            why = "this route cannot send a strict flag; the calls are still checked"
            changes.append(Change(f"/tools/{number}/function/strict", "dropped", why))
            function = {key: value for key, value in function.items() if key != "strict"}
            fitted.append({**tool, "function": function})
    changed: Request = {**request, "tools": fitted}
    return changed


def _sendable(request: Request, route: Route, changes: list[Change]) -> Request:
    sent, losses = sendable(request.get("tools", ()), route)
    changes += [Change(f"/tools{loss.where}", loss.what, loss.why) for loss in losses]
    changed: Request = {**request, "tools": sent}
    return changed


def _without_searches(request: Request, route: Route, changes: list[Change]) -> Request:
    """Drop searches for tools where the route has none. It comes last, so that places stay what they are."""
    tools = request.get("tools", [])
    dropped = set(unsearched(tools, route))
    if not dropped:
        return request
    why = "this route has no search for tools; all tools are sent at once"
    changes += [Change(f"/tools/{number}", "dropped", why) for number in sorted(dropped)]
    kept: Request = {**request, "tools": [tool for n, tool in enumerate(tools) if n not in dropped]}
    return kept


def _custom_calls(request: Request, route: Route, changes: list[Change]) -> Request:
    """Give each call of a custom tool the form that the route takes."""
    # A bad call of a declared custom tool gets that form too. Where there are no custom tools, a call becomes
    # that of a function, whose argument `input` is the text.
    customs = {tool["custom"]["name"] for tool in request.get("tools", ()) if "custom" in tool}
    made_custom = ("custom" in call for row in request["messages"] for call in row.get("tool_calls") or ())
    if not customs and not any(made_custom):
        return request
    messages: list[dict[str, Any]] = []
    for number, row in enumerate(request["messages"]):
        made = row.get("tool_calls")
        if made:
            calls = [_custom_call(call, customs, route) for call in made]
            for place, call in enumerate(calls):
                if call is not made[place] and "function" in call:
                    why = "this route has no custom tools; the text is sent as the argument 'input'"
                    changes.append(Change(f"/messages/{number}/tool_calls/{place}", "lowered", why))
            messages.append({**row, "tool_calls": calls})
        else:
            messages.append(row)
    changed: Request = {**request, "messages": messages}
    return changed


def _custom_call(call: dict[str, Any], customs: set[str], route: Route) -> dict[str, Any]:
    part = named_part(call)
    if "custom" in call and not route.custom_tools:
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
    halved = [n for n, text in enumerate(contents) if isinstance(text, str) and not is_unicode(text)]
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


def _foreign(request: Request, route: Route) -> Iterator[Change]:
    """Record what stays behind of turns, and failed results on a route that has no flag for them."""
    for number, row in enumerate(request["messages"]):
        state = state_of(row)
        why = None if state is None else _left_behind(state, row, route)
        if why:
            yield Change(f"/messages/{number}/turn/state", "dropped", why)
        elif state is not None and not route.replays_reasoning and reasoning_in(state):
            why = "this route does not take `reasoning_content` back; only text and calls are sent"
            yield Change(f"/messages/{number}/turn/state", "dropped", why)
        if row.get("is_error") and not route.marks_failed_results:
            why = "this route has no flag for a failed result; its text begins with 'ERROR: '"
            yield Change(f"/messages/{number}/is_error", "lowered", why)


def _left_behind(state: Json, row: Json, route: Route) -> str | None:
    """Return what of a turn does not go back, and why; None if all of it goes back."""
    provider = provider_of(state["dialect"])
    if provider is None or not route.replays(state):
        others = [*provider.extras(state)] if provider else []
        if route.reasoning_of_others and reasoning_in(state) and {*others} == {"reasoning"}:
            return None
        owner = state.get("endpoint", state["dialect"])
        named = _names(others) or "the order of its blocks"
        return f"this provider state belongs to {cut(owner)}; only text and calls are sent, not {named}"
    if (route.as_chat or state["dialect"] != route.dialect) and state["dialect"] != CHAT.name:
        named = _names(provider.extras(state, in_chat=True))
        return f"this route has no place for {named}" if named else None
    if state.get("lost"):
        named = _names(state["lost"])
        return f"{named} cannot be sent: nested too deep, half of a surrogate pair, or not a whole block"
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
    asked = max((number for number, row in enumerate(rows) if row["role"] == "user"), default=-1)
    sent = list(rows)
    for number, row in enumerate(rows):
        if not row.get("tool_calls") or (number < asked and not route.as_chat):
            continue
        state = state_of(row)
        fields = route.stand_in(state, request["model"]) if route.stand_in else None
        if fields is not None:
            sent[number] = {**row, "stand_in": fields}
            why = f"the turn has no state of this provider, which asks for {fields} in its place"
            changes.append(Change(f"/messages/{number}/tool_calls/0", "lowered", why))
    changed: Request = {**request, "messages": sent}
    return changed
