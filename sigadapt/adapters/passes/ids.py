"""Every call has an id of its own that the provider takes, and a result the id of its call.

An id stays with the first call that has it. A call of a later turn with the same id is sent under an alias,
and its result and its place in the turn's state follow (results pair by id).
"""

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.passes.names import alias_of, aliases
from sigadapt.adapters.passes.states import state_of
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.response.typed_calls import with_request_hash
from sigadapt.providers.route import SIGNED_ID, Route
from sigadapt.schemas.json_values import cut
from sigadapt.signatures.calls import ToolCalls


def write_ids(request: Request, record: RequestRecord) -> Request:
    """Give every call an id of its own that the provider takes."""
    pattern, longest, _ = record.route.ids
    ids = [call["id"] for row in request["messages"] for call in row.get("tool_calls") or ()]
    exempt = _ids_of_gateway(request, record.route)
    misfits = aliases([each for each in ids if each not in exempt], pattern, longest)
    if not misfits and len(set(ids)) == len(ids):
        return request
    reserved = {*ids, *misfits.values()}
    uses: Counter[str] = Counter()
    rows = list(request["messages"])
    changes: list[Change] = []
    turn: dict[str, deque[str]] = {}
    for number, row in enumerate(rows):
        if row["role"] == "tool":
            rows[number] = {**row, "tool_call_id": _next_id(turn, row["tool_call_id"])}
            continue
        calls: list[dict[str, Any]] = row.get("tool_calls") or []
        new_ids: list[str] = []
        for place, call in enumerate(calls):
            old: str = call["id"]
            uses[old] += 1
            new = misfits.get(old, old) if uses[old] == 1 else alias_of(old, longest, reserved, uses[old])
            reserved.add(new)
            new_ids.append(new)
            if new != old:
                reason = "a provider's signature is in" if SIGNED_ID in old else "the provider would refuse"
                reason = "an earlier call has" if uses[old] > 1 else reason
                why = f"{reason} the id {cut(repr(old))}; it is sent as {new!r}"
                changes.append(Change(f"/messages/{number}/tool_calls/{place}/id", "renamed", why))
        if new_ids:
            turn = _by_given_id(calls, new_ids)
            rows[number] = _with_ids(row, new_ids)
    record.extend(changes)
    return {**request, "messages": rows}


def _ids_of_gateway(request: Request, route: Route) -> set[str]:
    """Return the ids that the gateway made which gets them; LiteLLM takes signatures off them."""
    ids: set[str] = set()
    if route.client != "lm15" or not route.ids.own:
        return ids
    for state in map(state_of, request["messages"]):
        if state is not None and "endpoint" in state and route.replays(state):
            ids.update(state.get("ids", ()))
    return ids


def _by_given_id(calls: Iterable[dict[str, Any]], new_ids: Iterable[str]) -> dict[str, deque[str]]:
    """The new ids of a turn's calls by those they had, of which a hook's turn may have one twice."""
    table: dict[str, deque[str]] = {}
    for call, new in zip(calls, new_ids, strict=True):
        table.setdefault(call["id"], deque()).append(new)
    return table


def _next_id(table: dict[str, deque[str]], old: str) -> str:
    """The new id of the next call that had this one; the last such call's once they have all been named."""
    waiting = table.get(old)
    if waiting is None:
        return old
    return waiting.popleft() if len(waiting) > 1 else waiting[0]


def _with_ids(row: dict[str, Any], new_ids: list[str]) -> dict[str, Any]:
    calls = [{**call, "id": new} for call, new in zip(row["tool_calls"], new_ids, strict=True)]
    turn = row.get("turn")
    if turn is not None and turn.state is not None:
        table = _by_given_id(row["tool_calls"], new_ids)
        ids = [_next_id(table, old) for old in turn.state.get("ids", ())]
        turn = turn.model_copy(update={"state": {**turn.state, "ids": ids}})
    return {**row, "tool_calls": calls, "turn": turn}


def add_request_hash(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Let a turn say which request it answered, if a call of it may need confirmation."""
    if record.decls.may_ask:
        return with_request_hash(calls, record.made_ids.request_hash)
    return calls
