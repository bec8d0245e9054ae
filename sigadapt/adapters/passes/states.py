"""Provider state of earlier turns: what goes back, what stays behind, what stands in for missing state."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

from sigadapt.adapters.calling.call_record import RequestRecord
from sigadapt.adapters.request.canonical import Request
from sigadapt.errors import InvalidHistory, SigadaptError
from sigadapt.json_values import ARGUMENT_LEVELS, Json, cut, fault_in, is_array, is_object, listed
from sigadapt.providers import BY_WIRE, CHAT
from sigadapt.providers.route import Route
from sigadapt.providers.wire.reading import MOST_VALUES
from sigadapt.providers.wire.writing import drops_thinking
from sigadapt.signatures.calls import Turn

_LISTS = (("blocks", dict, "objects"), ("ids", str, "strings"), ("lost", str, "strings"))
_ENCRYPTED = "reasoning.encrypted_content"
_MOST_NAMES = 20  # of blocks, in the record of what was left out


def check_states(request: Request, record: RequestRecord) -> Request:
    """Refuse a state that has not the form in `wire/reading.py`; drop one where a hook changed the text."""
    rows = [*request["messages"]]
    for number, row in enumerate(rows):
        state = state_of(row)
        if state is None:
            continue
        if fault := _fault(state, record.route):
            raise unreadable_state(f"message {number}", fault)
        if row["content"] != row["turn"].text and record.route.replays(state):
            why = "a hook changed the text of this turn, so the provider's own blocks of it stay behind"
            record.note(f"/messages/{number}/turn/state", "dropped", why)
            rows[number] = {**row, "turn": row["turn"].model_copy(update={"state": None})}
    return {**request, "messages": rows}


def _fault(state: dict[str, Any], route: Route) -> str | None:
    if not isinstance(state.get("dialect"), str):
        return "it names no dialect"
    for key, kind, kind_name in _LISTS:
        default: list[Any] | None = None if key == "blocks" else []  # every state has blocks
        items = state.get(key, default)
        if not is_array(items) or not all(isinstance(item, kind) for item in items):
            return f"its {key} are not a list of {kind_name}"
    for key, kind, fault in (
        ("fields", dict, "fields are not an object"),
        ("endpoint", str, "endpoint is no text"),
    ):
        if not isinstance(state.get(key, kind()), kind):
            return f"its {fault}"
    if route.replays(state):
        content = [state["blocks"], state.get("fields")]
        fault = fault_in(content, levels=ARGUMENT_LEVELS + 2, most=MOST_VALUES * len(state["blocks"]) + 1_000)
        return f"a block cannot be sent: {fault.reason}, at {fault.path}" if fault else None
    return None


def ask_for_reasoning(request: Request, record: RequestRecord) -> Request:
    """Ask for encrypted reasoning where the provider stores nothing, so that it can go back."""
    encrypts = record.route.turns.encrypts
    if encrypts is None or not record.is_native or not stores_nothing(request):
        return request
    settings: Mapping[str, Any] = request
    included = list[str](settings.get("include") or ())
    reasons = encrypts(request["model"]) or settings.get("reasoning_effort") or settings.get("reasoning")
    if _ENCRYPTED in included or not reasons:
        return request
    record.note(
        "/include", "lowered", f"store=False: reasoning goes back encrypted; {_ENCRYPTED} is asked for"
    )
    asking: Any = {**request, "include": [*included, _ENCRYPTED]}
    return asking


def leave_unstored_reasoning(request: Request, record: RequestRecord) -> Request:
    """Leave out reasoning that the provider knows by its id alone, and did not store or is not to look up."""
    route = record.route
    if route.turns.encrypts is None:
        return request
    is_storing = not stores_nothing(request)
    rows = [*request["messages"]]
    for number, row in enumerate(rows):
        state = state_of(row)
        if state is None or not route.replays(state):
            continue
        is_stored = is_storing and state.get("stored") is not False
        kept = state if is_stored else BY_WIRE[route.wire].unstored(state)
        if kept is not state:
            why = (
                "the provider has not stored this reasoning and sent none of it encrypted, so it stays behind"
            )
            record.note(f"/messages/{number}/turn/state", "dropped", why)
            rows[number] = {**row, "turn": row["turn"].model_copy(update={"state": kept})}
    return {**request, "messages": rows}


def note_lost_state(request: Request, record: RequestRecord) -> Request:
    """Record what stays behind of turns, and failed results on a route that has no flag for them."""
    route = record.route
    for number, row in enumerate(request["messages"]):
        state = state_of(row)
        why = None if state is None else _left_behind(state, row, route)
        if state is not None and not why and route.turns.reasoning_field is None and CHAT.reasoning_in(state):
            why = "replay_reasoning=False keeps the reasoning here; only text and calls are sent"
        if why:
            record.note(f"/messages/{number}/turn/state", "dropped", why)
        if row.get("is_error") and not route.results.marks_failed:
            why = "this route has no flag for a failed result; its text begins with 'ERROR: '"
            record.note(f"/messages/{number}/is_error", "lowered", why)
    return request


def add_stand_ins(request: Request, record: RequestRecord) -> Request:
    """Add what the provider asks for in place of missing state, to the first calls of the running turn."""
    # The running turn is what follows the user's last message. LiteLLM adds the same by itself, to every
    # turn.
    route = record.route
    stand_in = route.turns.stand_in
    if stand_in is None or stand_in(None, request["model"]) is None:
        return request
    rows = list(request["messages"])
    question = max((number for number, row in enumerate(rows) if row["role"] == "user"), default=-1)
    for number, row in enumerate(rows):
        if not row.get("tool_calls") or (number < question and not route.as_chat):
            continue
        fields = stand_in(state_of(row), request["model"])
        if fields is not None:
            rows[number] = {**row, "stand_in": fields}
            why = f"the turn has no state of this provider, which asks for {fields} in its place"
            record.note(f"/messages/{number}/tool_calls/0", "lowered", why)
    return {**request, "messages": rows}


def _left_behind(state: Json, row: Json, route: Route) -> str | None:
    """Return what of a turn does not go back, and why; None if all of it goes back."""
    provider = BY_WIRE.get(state["dialect"])
    if provider is None or not route.replays(state):
        others = [*provider.extras(state)] if provider else []
        if route.turns.reasoning_of_others and CHAT.reasoning_in(state) and {*others} == {"reasoning"}:
            return None
        owner = state.get("endpoint", state["dialect"])
        names = _names(others) or "the order of its blocks"
        return f"this provider state belongs to {cut(owner)}; only text and calls are sent, not {names}"
    if (route.as_chat or state["dialect"] != route.wire) and state["dialect"] != CHAT.name:
        names = _names(provider.extras(state, in_chat=True))
        return f"this route can't carry {names}" if names else None
    if state.get("lost"):
        names = _names(state["lost"])
        return f"{names} cannot be sent: nested too deep, half of a surrogate pair, or not a whole block"
    if drops_thinking(provider, row, state):
        return "reasoning is not sent without the call that it led to, which was taken out"
    return None


def _names(names: Iterable[str]) -> str:
    """Return the names of the blocks and fields that only their own provider takes, each once."""
    return listed(map(cut, dict.fromkeys(names)), _MOST_NAMES, ", ")


def state_of(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the provider state of a message's turn; None if it has none."""
    turn = row.get("turn")
    return None if turn is None else turn.state


def stores_nothing(request: Request) -> bool:
    """Return whether a request asks the provider to store nothing of it, also in LiteLLM's `extra_body`."""
    settings: Mapping[str, Any] = request
    extra: Any = settings.get("extra_body")
    return settings.get("store") is False or (is_object(extra) and extra.get("store") is False)


@contextmanager
def replaying(turn: Turn) -> Generator[None]:
    """Turn what a state of the right form and the wrong content leads to into InvalidHistory."""
    try:
        yield
    except SigadaptError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        names = ", ".join(sorted(cut(str(key)) for key in turn.state or ()))
        raise unreadable_state("a turn", f"{type(error).__name__}: {error} (it holds {names})") from error


def unreadable_state(where: str, fault: str) -> InvalidHistory:
    """Make the error of a state that nobody can send back."""
    return InvalidHistory(
        f"the provider state of {where} cannot be sent back: {cut(fault)}",
        code="unreadable_state",
        fix="Load turns from what model_dump or model_dump_json wrote, or leave their state out.",
    )
