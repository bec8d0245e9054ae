"""Tool names that a provider would refuse travel under an alias, and come back as declared (rule 10).

An alias depends on nothing but the name and the provider's rule, so it is the same in every turn, demo and
process. It ends in eight digits of the name's hash, so two names never share one; should a declared name
happen to look like another's alias, more digits are used.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sigadapt.adapters.choice import Choice
from sigadapt.adapters.request import Request

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGITS = (8, 16, 32, 64)


def aliases(names: Iterable[str], pattern: str, longest: int) -> dict[str, str]:
    """The aliases of those names that need one.

    Args:
        names: all names of a request.
        pattern: what the provider takes, as a regular expression for the whole name.
        longest: how many characters it takes.

    Example:
        >>> aliases(["search", "files.read all"], "[a-zA-Z0-9_-]+", 64)
        {'files.read all': 'files_read_all_bb5ca8a2'}
    """
    known = list(dict.fromkeys(names))
    fits = re.compile(pattern)
    taken = {name for name in known if len(name) <= longest and fits.fullmatch(name)}
    found: dict[str, str] = {}
    for name in known:
        if name not in taken:
            found[name] = _alias(name, longest, taken)
    return found


def _alias(name: str, longest: int, taken: set[str]) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    safe = _UNSAFE.sub("_", name).strip("_-") or "tool"
    if not safe[0].isalpha():
        safe = f"t_{safe}"
    spelled = (f"{safe[: longest - digits - 1]}_{digest[:digits]}" for digits in _DIGITS)
    return next(alias for alias in spelled if alias not in taken)


def names_in(request: Request) -> list[str]:
    """Every tool name in a request: declared, chosen, called or answered."""
    return [place["name"] for place in _places(request)]


def renamed(request: Request, table: dict[str, str]) -> Request:
    """The request with other names for its tools, wherever they occur; the given one is not changed."""
    if not table:
        return request

    def name(place: dict[str, Any]) -> dict[str, Any]:
        return {**place, "name": table.get(place["name"], place["name"])}

    changed: Request = {**request, "messages": [_renamed_message(row, name) for row in request["messages"]]}
    if "tools" in request:
        changed["tools"] = [{**tool, "function": name(tool["function"])} for tool in request["tools"]]
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


def _places(request: Request) -> Iterable[dict[str, Any]]:
    for tool in request.get("tools", ()):
        if "function" in tool:
            yield tool["function"]
    for row in request["messages"]:
        if row["role"] == "tool":
            yield row
        for call in row.get("tool_calls") or ():
            yield call["function"]
