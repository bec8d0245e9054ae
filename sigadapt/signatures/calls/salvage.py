"""Salvage invalid calls: repair JSON and names, and unwrap JSON that was encoded twice. Off by default.

A salvaged call is marked in `altered`, and is then checked like any other call. A call that is `truncated`,
has a duplicate key or holds two objects in a row stays invalid: the text does not show what was meant.
"""

import re
from collections import Counter
from collections.abc import Callable, Container
from typing import Any

import json_repair

from sigadapt.json_values import compact, is_array, is_object
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.signatures.calls.tool_call import ToolCall
from sigadapt.signatures.calls.tool_calls import ToolCalls, with_each
from sigadapt.signatures.calls.turn import InvalidToolCall
from sigadapt.signatures.tool_decls import ToolDecls

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_ROW = re.compile(r"\}[^{}\"':=]*\{")
"""The end of an object and the beginning of the next, which has no key."""
_TEMPLATE_TOKEN = re.compile(r"<[|\uff5c][^<>|\uff5c]{1,40}[|\uff5c]>")  # DeepSeek's bars are wide
_MOST_REPAIRED = 50_000  # characters; json_repair takes up to 80 microseconds for each


def repair(calls: ToolCalls) -> ToolCalls:
    """Repair the arguments of `invalid_json` calls with json_repair. Repaired calls are marked `repaired`."""
    return _salvage(calls, _repair, "repaired")


def without_leaked_tokens(calls: ToolCalls, names: Container[str]) -> ToolCalls:
    """Cut off the template's tokens that a server left in names. Such calls are marked `repaired`."""

    def repair_name(call: Any) -> Any:
        name = name_before_token(call.name, names) if call.name else call.name
        if name == call.name:
            return call
        return call.model_copy(update={"name": name, "altered": (*call.altered, "repaired")})

    return with_each(calls, repair_name)


def name_before_token(name: str, names: Container[str]) -> str:
    """Return the declared name before a template's token, as in `ls<|channel|>commentary`; else the name."""
    token = None if name in names else _TEMPLATE_TOKEN.search(name)
    declared = name[: token.start()].rstrip() if token else name
    return declared if declared in names else name


def unwrap(calls: ToolCalls, decls: ToolDecls) -> ToolCalls:
    """Decode arguments that were encoded as JSON twice. Decoded calls are marked `unwrapped`."""
    # Two cases: the whole object was sent as a JSON string, or one argument was sent as a JSON string
    # although its schema does not allow a string. Only a value that fits the schema after decoding is
    # changed.

    def decode_arguments(call: InvalidToolCall) -> dict[str, Any] | None:
        text = _decoded_text(call.arguments) if call.code == "not_an_object" else None
        args = parse_arguments(text) if isinstance(text, str) else None
        return args if isinstance(args, dict) and not decls.flaw_of(call.name or "", args) else None

    calls = _salvage(calls, decode_arguments, "unwrapped")
    return calls.model_copy(update={"tool_calls": [_unwrap(call, decls) for call in calls]})


def _salvage(
    calls: ToolCalls, salvage: Callable[[InvalidToolCall], dict[str, Any] | None], mark: str
) -> ToolCalls:
    good = list(calls.tool_calls)
    bad = list[InvalidToolCall]()
    for call in calls.invalid:
        args = salvage(call) if call.name else None
        if args is None:
            bad.append(call)
            continue
        altered = call.altered if mark in call.altered else (*call.altered, mark)
        fields = {**dict(call), "args": args, "altered": altered, "turn": calls.turn}
        good.append(ToolCall.model_validate(fields))
    if len(bad) == len(calls.invalid):
        return calls
    good.sort(key=lambda call: call.index)
    return calls.model_copy(update={"tool_calls": good, "invalid": tuple(bad)})


def _repair(call: InvalidToolCall) -> dict[str, Any] | None:
    if call.code != "invalid_json" or len(call.arguments) > _MOST_REPAIRED:
        return None
    try:
        value: Any = json_repair.loads(call.arguments)
    except (RecursionError, ValueError):
        return None
    return value if is_object(value) and value and not _is_choice(call.arguments, value) else None


def _is_choice(text: str, value: dict[str, Any]) -> bool:
    """Return whether a text holds a key, or an object in a row, more often than the object made of it."""
    # json_repair keeps the last of two in silence. Its strict mode refuses only some of them.
    object_text = text[max(text.find("{"), 0) :]
    repaired_text = compact(value)
    if len(_ROW.findall(object_text)) > len(_ROW.findall(repaired_text)):
        return True
    original_counts = _token_counts(object_text)
    repaired_counts = _token_counts(repaired_text)
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if is_array(item):
            pending.extend(item)
        elif is_object(item):
            for key in item:
                if any(original_counts[token] > repaired_counts[token] for token in _TOKEN.findall(key)):
                    return True
            pending.extend(item.values())
    return False


def _token_counts(text: str) -> Counter[str]:
    return Counter(_TOKEN.findall(_ESCAPE.sub(lambda escape: chr(int(escape[1] or "20", 16)), text)))


def _unwrap(call: ToolCall, decls: ToolDecls) -> ToolCall:
    if call.name not in decls:
        return call
    decl = decls[call.name]
    texts = {name: _decoded_text(call.args[name]) for name in decl.misfits(call.args)}
    values = {name: value for name, value in texts.items() if value is not None}
    if not values:
        return call
    misfits = decl.misfits({**call.args, **values})
    fitting = {name: value for name, value in values.items() if name not in misfits}
    if not fitting:
        return call
    args = {**call.args, **fitting}
    return call.model_copy(update={"args": args, "altered": (*call.altered, "unwrapped")})


def _decoded_text(value: Any) -> Any:
    """Return the value of a JSON text; None if the argument is not one. `null` gives None too."""
    if not isinstance(value, str):
        return None
    wrapper = parse_arguments(f'{{"_":{value}}}')
    return wrapper["_"] if isinstance(wrapper, dict) and wrapper.keys() == {"_"} else None
