"""Aliases for tool names and call ids that a provider would refuse (rule 10).

An alias depends only on the name and on the provider's limits, so it is the same in every turn, demo and
process. It ends in eight digits of the name's hash, so that two names do not share an alias. If another
declared name equals the alias, the alias gets more digits. `response/typed_calls.py` restores the names.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from sigadapt.adapters.request.canonical import Request

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGITS = (8, 16, 32, 64)


def aliases(names: Sequence[str], pattern: str, longest: int) -> dict[str, str]:
    """Return the aliases of the names that need one, by name.

    Args:
        names: all tool names, or all call ids, of a Request.
        pattern: the regular expression that a whole name must match.
        longest: the most characters that a name may have.

    Example:
        >>> aliases(["search", "files.read all"], "[a-zA-Z0-9_-]+", 64)
        {'files.read all': 'files_read_all_b01ac34e'}
    """
    fullmatch = re.compile(pattern).fullmatch
    misfits = [name for name in names if len(name) > longest or not fullmatch(name)]
    if not misfits:
        return {}
    taken = set(names).difference(misfits)
    return {name: _alias(name, longest, taken) for name in dict.fromkeys(misfits)}


def _alias(name: str, longest: int, taken: set[str]) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    safe = _UNSAFE.sub("_", name).strip("_-") or "tool"
    if not safe[0].isalpha():
        safe = f"t_{safe}"
    spelled = (f"{safe[: longest - digits - 1]}_{digest[:digits]}" for digits in _DIGITS)
    return next(alias for alias in spelled if alias not in taken)


def names_in(request: Request) -> list[str]:
    """Return all tool names in a Request: of declarations, calls and results.

    The tool choice can only name declared tools.
    """
    names = [tool["function"]["name"] for tool in request.get("tools", ()) if "function" in tool]
    for row in request["messages"]:
        if row["role"] == "tool":
            names.append(row["name"])
        elif row.get("tool_calls"):
            names += [call["function"]["name"] for call in row["tool_calls"]]
    return names


def renamed(request: Request, table: dict[str, str]) -> Request:
    """Return a copy of the Request with its tools renamed everywhere.

    Args:
        request: the Request; not changed.
        table: the new names, by name.
    """
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


def ids_in(request: Request) -> list[str]:
    """Return the ids of all calls in a Request; results have the same ids."""
    return [call["id"] for row in request["messages"] for call in row.get("tool_calls") or ()]


def with_ids(request: Request, table: dict[str, str]) -> Request:
    """Return a copy of the Request with other ids for its calls, in results and provider state too.

    Args:
        request: the Request; not changed.
        table: the new ids, by id.
    """
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
