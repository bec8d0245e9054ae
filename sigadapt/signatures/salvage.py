"""Salvage of bad calls, where asked for by name: broken JSON repaired, wrapped JSON unwrapped, always marked.

Off by default (rule 3). A call changed here says so in `altered`, keeps the text that was sent in
`arguments`, and is checked against its declaration afterwards like any other. Nothing here brings back what
was never sent: a call that is `truncated`, or that gives a key twice, stays a bad call.
"""

from collections.abc import Callable
from typing import Any, cast

import json_repair

from sigadapt.schemas.arguments import Flaw, parse_arguments
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls

_MOST_REPAIRED = 50_000  # characters; json_repair takes up to 80 us each


def repair(calls: ToolCalls) -> ToolCalls:
    """Make bad calls good whose arguments json_repair makes an object of; marked `repaired`.

    Example:
        >>> bad = InvalidToolCall(
        ...     id="c", name="f", arguments="{'a': 1}", index=0, code="invalid_json", message=""
        ... )
        >>> repair(ToolCalls(tool_calls=[], invalid=(bad,)))[0].args
        {'a': 1}
    """
    return _salvaged(calls, lambda call: _repaired(call) if call.code == "invalid_json" else None, "repaired")


def unwrap(calls: ToolCalls, decls: ToolDecls) -> ToolCalls:
    """Decode arguments that were encoded once too often, where the result fits; marked `unwrapped`.

    Two shapes: the whole object sent as a JSON string, and single arguments sent as a JSON string although
    their schema takes no string.

    Example:
        >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        >>> calls = ToolCalls(tool_calls=[ToolCall(id="c", name="f", args={"n": "3"})])
        >>> unwrap(calls, ToolDecls({"name": "f", "parameters": schema}))[0].args
        {'n': 3}
    """
    calls = _salvaged(calls, lambda call: _decoded(call, decls), "unwrapped")
    return calls.model_copy(update={"tool_calls": [_unwrapped(call, decls) for call in calls]})


def _salvaged(
    calls: ToolCalls, salvage: Callable[[InvalidToolCall], dict[str, Any] | None], mark: str
) -> ToolCalls:
    good, bad = list(calls.tool_calls), list[InvalidToolCall]()
    for call in calls.invalid:
        args = salvage(call) if call.name else None
        if args is None:
            bad.append(call)
        else:
            good.append(_marked(call, args, mark, calls))
    if len(bad) == len(calls.invalid):
        return calls
    good.sort(key=lambda call: call.index)
    return calls.model_copy(update={"tool_calls": good, "invalid": tuple(bad)})


def _marked(call: InvalidToolCall, args: dict[str, Any], mark: str, calls: ToolCalls) -> ToolCall:
    return ToolCall(
        id=call.id,
        name=call.name or "",
        args=args,
        arguments=call.arguments,
        index=call.index,
        altered=(*call.altered, mark),
        turn=calls.turn,
    )


def _repaired(call: InvalidToolCall) -> dict[str, Any] | None:
    if len(call.arguments) > _MOST_REPAIRED:
        return None
    try:
        value: Any = json_repair.loads(call.arguments)
    except (RecursionError, ValueError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) and value else None


def _decoded(call: InvalidToolCall, decls: ToolDecls) -> dict[str, Any] | None:
    """The object inside a JSON string that holds one, if its tool takes it."""
    if call.code != "not_an_object" or not isinstance(_decoded_text(call.arguments), str):
        return None
    inner = parse_arguments(_decoded_text(call.arguments))
    return None if isinstance(inner, Flaw) or decls.flaw_of(call.name or "", inner) else inner


def _unwrapped(call: ToolCall, decls: ToolDecls) -> ToolCall:
    if call.name not in decls or decls.flaw_of(call.name, call.args) is None:
        return call
    decl = decls[call.name]
    texts = {name: _decoded_text(call.args[name]) for name in decl.misfits(call.args)}
    decoded = {name: value for name, value in texts.items() if value is not None}
    misfits = decl.misfits({**call.args, **decoded}) if decoded else frozenset(decoded)
    fitting = {name: value for name, value in decoded.items() if name not in misfits}
    if not fitting:
        return call
    args = {**call.args, **fitting}
    return call.model_copy(update={"args": args, "altered": (*call.altered, "unwrapped")})


def _decoded_text(value: Any) -> Any:
    """The value that a text holds as JSON; None where it holds none (and null is nothing to unwrap)."""
    wrapped = parse_arguments(f'{{"_":{value}}}') if isinstance(value, str) else None
    return wrapped["_"] if isinstance(wrapped, dict) and wrapped.keys() == {"_"} else None
