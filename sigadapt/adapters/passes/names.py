"""Names of tools and ids of calls: what a provider would refuse goes out as an alias.

An answer's names come back as declared. An alias depends only on the name and on the provider's limits, so it
is the same in every turn, demo and process. It ends in digits of the name's hash, so that two names do not
share one.

Every call has an id of its own that the provider takes, and a result has the id of its call. An id stays with
the first call that has it. A call of a later turn with the same id is sent under an alias, and its result and
its place in the turn's state follow (results pair by id).
"""

import hashlib
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sigadapt.adapters.calling.call_record import CallRecord, RequestRecord
from sigadapt.adapters.passes.states import state_of
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.response.typed_calls import with_declared_names, with_request_hash
from sigadapt.json_values import Json, cut, is_unicode
from sigadapt.providers.route import SIGNED_ID, IdentifierRules, Route
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.calls.salvage import name_before_token, without_leaked_tokens
from sigadapt.signatures.tool_decls import made_once

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGITS = (8, 16, 32, 64)


def aliases(names: Sequence[str], pattern: str, longest: int) -> dict[str, str]:
    """Return the aliases of the names that need one, by name."""
    if not names:
        return {}
    fullmatch = re.compile(pattern).fullmatch
    misfits = [name for name in names if len(name) > longest or not fullmatch(name) or not is_unicode(name)]
    if not misfits:
        return {}
    # An alias must not be the name of another tool either.
    reserved = set(names).difference(misfits)
    return {name: alias_of(name, longest, reserved) for name in dict.fromkeys(misfits)}


def alias_of(name: str, longest: int, reserved: set[str], use: int = 1) -> str:
    """Return the alias of a name, of those that are not reserved; `use` counts the calls with this id."""
    # The digest is of the name alone, so every request has the same alias, and the prompt cache stays.
    seed = name if use == 1 else f"{name}\n{use}"
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
    if longest <= _DIGITS[0] + 1:  # there is no room for a word, and no place for an underscore
        short = digest[:longest]
        return alias_of(name, longest, reserved, use + 1) if short in reserved else short
    safe = _UNSAFE.sub("_", name.partition(SIGNED_ID)[0]).strip("_-") or "tool"
    # Gemini wants a letter or an underscore first.
    if not safe[0].isalpha():
        safe = f"t_{safe}"
    candidates = (
        f"{safe[: longest - digits - 1]}_{digest[:digits]}" for digits in _DIGITS if digits < longest - 1
    )
    free = next((alias for alias in candidates if alias not in reserved), "")
    return free or alias_of(name, longest, reserved, use + 1)


def choose_aliases(request: Request, record: RequestRecord) -> Request:
    """Choose an alias for each tool that needs one."""
    record.names = _aliases_in(request, record.route.names)
    if not record.names:
        return request
    for number, tool in enumerate(request.get("tools", ())):
        name = named_part(tool).get("name")
        if name in record.names:
            why = f"the provider would refuse {name!r}; it is sent as {record.names[name]!r}"
            record.note(f"/tools/{number}/{tool['type']}/name", "renamed", why)
    return request


def _aliases_in(request: Request, rules: IdentifierRules) -> dict[str, str]:
    """Return the aliases for the tool names in a Request: of declarations, calls and results."""
    pattern, longest, _ = rules
    # The tool choice can only name declared tools.
    tools = request.get("tools", ())
    names: list[str] = []
    for row in request["messages"]:
        names += [row["name"]] if row["role"] == "tool" else map(name_in, row.get("tool_calls") or ())
    what = "aliases", pattern, longest
    in_tools = made_once(tools, what, lambda: aliases(_names_in(tools), pattern, longest))
    if not in_tools and not aliases(names, pattern, longest):
        return {}
    return aliases([*_names_in(tools), *names], pattern, longest)


def _names_in(tools: Iterable[Json]) -> list[str]:
    return [part["name"] for tool in tools if (part := named_part(tool))]


def write_aliases(request: Request, record: RequestRecord) -> Request:
    """Write the aliases in place of the names, everywhere."""
    table = record.names
    if not table:
        return request

    def part(entry: dict[str, Any]) -> dict[str, Any]:
        """A tool, a call or a choice with its part renamed; one that the provider runs has none."""
        kind = next((kind for kind in ("function", "custom") if kind in entry), None)
        return {**entry, kind: name(entry[kind])} if kind else entry

    def name(place: dict[str, Any]) -> dict[str, Any]:
        return {**place, "name": table.get(place["name"], place["name"])}

    def message(row: dict[str, Any]) -> dict[str, Any]:
        if row["role"] == "tool":
            return name(row)
        return {**row, "tool_calls": [*map(part, row["tool_calls"])]} if row.get("tool_calls") else row

    copy: Request = {**request, "messages": [*map(message, request["messages"])]}
    if "tools" in request:
        copy["tools"] = [*map(part, request["tools"])]
    choice = request.get("tool_choice")
    if isinstance(choice, dict):
        subset = choice.get("allowed_tools")
        several = {"allowed_tools": {**subset, "tools": [*map(part, subset["tools"])]}} if subset else {}
        copy["tool_choice"] = {**part(choice), **several}
    return copy


def restore_names(calls: ToolCalls, record: CallRecord) -> ToolCalls:
    """Write the declared names in place of the aliases.

    Where repairs are allowed, cut the template's tokens that a model wrote behind a known name.
    """
    if record.call.adapter.options.repair:
        calls = without_leaked_tokens(calls, _known_names(record))
    return with_declared_names(calls, record.names) if record.names else calls


def name_restorer(record: CallRecord) -> Callable[[str], str]:
    """Return what does both with one name, which a stream has before its call is whole."""
    declared = {alias: name for name, alias in record.names.items()}
    if not record.call.adapter.options.repair:
        return lambda name: declared.get(name, name)
    known = _known_names(record)

    def restore(name: str) -> str:
        name = name_before_token(name, known)
        return declared.get(name, name)

    return restore


def _known_names(record: CallRecord) -> set[str]:
    """Return the names that a call can have: of declared tools, their aliases, the adapter's tools."""
    tool_names = map(name_in, record.canonical.get("tools", ()))
    return {*map(str, tool_names), *record.text_schemas(), *record.names.values()}


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
