"""Names travel: one that the provider would refuse goes out as an alias, and comes back as declared.

An alias depends only on the name and on the provider's limits, so it is the same in every turn, demo and
process. It ends in digits of the name's hash, so that two names do not share one.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.calling.request_record import RequestRecord
from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.response.typed_calls import with_declared_names
from sigadapt.providers.route import SIGNED_ID, IdentifierRules
from sigadapt.providers.wire.values import name_in, named_part
from sigadapt.schemas.json_values import Json, is_unicode
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
