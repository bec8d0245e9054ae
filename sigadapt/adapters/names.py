"""Names and ids that a provider would refuse travel under an alias; names come back as declared (rule 10).

An alias depends on nothing but the name and the provider's rule, so it is the same in every turn, demo and
process. It ends in eight digits of the name's hash, so two names never share one; should a declared name
happen to look like another's alias, more digits are used.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from sigadapt.adapters.choice import Choice
from sigadapt.adapters.memo import Memo
from sigadapt.adapters.request import Request

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGITS = (8, 16, 32, 64)


def aliases(names: Sequence[str], pattern: str, longest: int) -> dict[str, str]:
    """The aliases of those names that need one.

    Args:
        names: all names of a request.
        pattern: what the provider takes, as a regular expression for the whole name.
        longest: how many characters it takes.

    Example:
        >>> aliases(["search", "files.read all"], "[a-zA-Z0-9_-]+", 64)
        {'files.read all': 'files_read_all_b01ac34e'}
    """
    misfits = [name for name in names if not _fits(name, pattern, longest)]
    if not misfits:
        return {}
    taken = {name for name in names if _fits(name, pattern, longest)}
    return {name: _alias(name, longest, taken) for name in dict.fromkeys(misfits)}


@lru_cache(maxsize=4096)
def _fits(name: str, pattern: str, longest: int) -> bool:
    return len(name) <= longest and re.fullmatch(pattern, name) is not None


def all_fit(tools: list[dict[str, Any]] | None, pattern: str, longest: int) -> bool:
    """Whether every declared name is one that the provider takes; asked once of a list of tools."""
    return tools is None or _all_fit(pattern, longest)(tools)


@cache
def _all_fit(pattern: str, longest: int) -> Memo[bool]:
    return Memo(lambda tools: all(_fits(name, pattern, longest) for name in _DECLARED(tools)))


def _alias(name: str, longest: int, taken: set[str]) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    safe = _UNSAFE.sub("_", name).strip("_-") or "tool"
    if not safe[0].isalpha():
        safe = f"t_{safe}"
    spelled = (f"{safe[: longest - digits - 1]}_{digest[:digits]}" for digits in _DIGITS)
    return next(alias for alias in spelled if alias not in taken)


def names_in(request: Request) -> list[str]:
    """Every tool name in a request: declared, called or answered (what is chosen is declared)."""
    names = list(_DECLARED(request["tools"])) if "tools" in request else []
    for row in request["messages"]:
        if row["role"] == "tool":
            names.append(row["name"])
        elif row.get("tool_calls"):
            names += [call["function"]["name"] for call in row["tool_calls"]]
    return names


_DECLARED = Memo(lambda tools: [tool["function"]["name"] for tool in tools if "function" in tool])


def renamed(request: Request, table: dict[str, str]) -> Request:
    """The request with other names for its tools, wherever they occur; the given one is not changed."""
    if not table:
        return request

    def name(place: dict[str, Any]) -> dict[str, Any]:
        return {**place, "name": table.get(place["name"], place["name"])}

    changed: Request = {**request, "messages": [_renamed_message(row, name) for row in request["messages"]]}
    if "tools" in request:
        changed["tools"] = [
            {**tool, "function": name(tool["function"])} if "function" in tool else tool
            for tool in request["tools"]
        ]
    choice = request.get("tool_choice")
    if isinstance(choice, dict):
        changed["tool_choice"] = _renamed_choice(choice, name)
    return changed


def restored(choice: Choice, table: dict[str, str]) -> Choice:
    """The choice with the declared names in its calls, good and bad."""
    calls = choice.tool_calls
    if not table or calls is None:
        return choice
    declared = {alias: name for name, alias in table.items()}

    def back(call: Any) -> Any:
        return call.model_copy(update={"name": declared[call.name]}) if call.name in declared else call

    update = {"tool_calls": [back(call) for call in calls], "invalid": tuple(map(back, calls.invalid))}
    return replace(choice, tool_calls=calls.model_copy(update=update))


def ids_in(request: Request) -> list[str]:
    """Every id of a call in a request; results bear the same."""
    return [call["id"] for row in request["messages"] for call in row.get("tool_calls") or ()]


def with_ids(request: Request, table: dict[str, str]) -> Request:
    """The request with other ids for its calls, in results and provider state too; the given one stays."""
    if not table:
        return request
    changed: Request = {**request, "messages": [_with_ids(row, table) for row in request["messages"]]}
    return changed


def _with_ids(row: dict[str, Any], table: dict[str, str]) -> dict[str, Any]:
    if row["role"] == "tool":
        return {**row, "tool_call_id": table.get(row["tool_call_id"], row["tool_call_id"])}
    if not row.get("tool_calls"):
        return row
    calls = [{**call, "id": table.get(call["id"], call["id"])} for call in row["tool_calls"]]
    turn = row.get("turn")
    if turn is not None and turn.state is not None:
        items = [
            {**item, "id": table.get(item["id"], item["id"])} if "id" in item else item
            for item in turn.state["items"]
        ]
        turn = turn.model_copy(update={"state": {**turn.state, "items": items}})
    return {**row, "tool_calls": calls, "turn": turn}


def _renamed_message(row: dict[str, Any], name: Any) -> dict[str, Any]:
    if row["role"] == "tool":
        return name(row)
    if not row.get("tool_calls"):
        return row
    return {**row, "tool_calls": [{**call, "function": name(call["function"])} for call in row["tool_calls"]]}


def _renamed_choice(choice: dict[str, Any], name: Any) -> dict[str, Any]:
    if choice["type"] == "function":
        return {**choice, "function": name(choice["function"])}
    allowed = choice["allowed_tools"]
    tools = [{**tool, "function": name(tool["function"])} for tool in allowed["tools"]]
    return {**choice, "allowed_tools": {**allowed, "tools": tools}}
