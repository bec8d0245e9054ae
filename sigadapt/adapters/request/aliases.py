"""Aliases for tool names and call ids that a provider would refuse (names travel), and ids that it left out.

An alias depends only on the name and on the provider's limits, so it is the same in every turn, demo and
process. It ends in digits of the name's hash, so that two names do not share one. An id stays with the first
call that has it; a call of a later turn with the same id is sent under an alias, and its result and its place
in the turn's state follow (results pair by id).
"""

import hashlib
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.providers.route import SIGNED_ID
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.schemas.json_values import Json, compact, cut, is_unicode, short_hash
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
    return {name: _alias(name, longest, reserved) for name in dict.fromkeys(misfits)}


def _alias(name: str, longest: int, reserved: set[str], use: int = 1) -> str:
    # The digest is of the name alone, so every request has the same alias, and the prompt cache stays.
    seed = name if use == 1 else f"{name}\n{use}"
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
    if longest <= _DIGITS[0] + 1:  # there is no room for a word, and no place for an underscore
        short = digest[:longest]
        return _alias(name, longest, reserved, use + 1) if short in reserved else short
    safe = _UNSAFE.sub("_", name.partition(SIGNED_ID)[0]).strip("_-") or "tool"
    # Gemini wants a letter or an underscore first.
    if not safe[0].isalpha():
        safe = f"t_{safe}"
    candidates = (
        f"{safe[: longest - digits - 1]}_{digest[:digits]}" for digits in _DIGITS if digits < longest - 1
    )
    free = next((alias for alias in candidates if alias not in reserved), "")
    return free or _alias(name, longest, reserved, use + 1)


def aliases_in(request: Request, pattern: str, longest: int) -> dict[str, str]:
    """Return the aliases for the tool names in a Request: of declarations, calls and results."""
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


def with_names(request: Request, table: dict[str, str]) -> Request:
    """Return a copy of the Request with its tools renamed everywhere."""
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


_SAID = ("role", "content", "tool_calls", "tool_call_id", "name")


@dataclass
class MadeIds:
    """The ids of calls that came without one, by their index: those of this request and candidate alone.

    They are known before an answer comes, so that every piece of a stream has the id of the whole call. They
    are the same for a cached answer, and other ones in the next turn and in another conversation.
    """

    request: Request
    candidate: int = 0

    def __call__(self, index: int) -> str:
        """Return the id of the call at an index of the answer."""
        return f"call_{short_hash(f'{self.request_hash} {index}')}"

    @cached_property
    def request_hash(self) -> str:
        """A hash of the request and the candidate."""
        # Settings and the tools of providers may hold credentials, and tell no two conversations apart.
        rows = [{key: row.get(key) for key in _SAID} for row in self.request["messages"]]
        tools = [tool for tool in self.request.get("tools", ()) if "function" in tool or "custom" in tool]
        identity = [self.request["model"], rows, tools, self.request.get("tool_choice"), self.candidate]
        return short_hash(compact(identity))


def ids_in(request: Request) -> list[str]:
    """Return the ids of all calls in a Request; results have the same ids."""
    return [call["id"] for row in request["messages"] for call in row.get("tool_calls") or ()]


def with_sendable_ids(
    request: Request, pattern: str, longest: int, exempt: Collection[str] = ()
) -> tuple[Request, list[Change]]:
    """Give every call an id of its own that the provider takes; it gave out the `exempt` ones itself."""
    ids = ids_in(request)
    misfits = aliases([each for each in ids if each not in exempt], pattern, longest)
    if not misfits and len(set(ids)) == len(ids):
        return request, []
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
            new = misfits.get(old, old) if uses[old] == 1 else _alias(old, longest, reserved, uses[old])
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
    return {**request, "messages": rows}, changes


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
