"""What a tool returned, as JSON can hold it: what the model reads now is what it reads after saving.

| value | becomes | in `altered` |
|---|---|---|
| bytes that are no text, an object, an exception | its text | `text` |
| NaN, an infinite number | null | `null` |
| a text with half of a surrogate pair | the text with U+FFFD | `unicode` |
| a date, a UUID, a pydantic model, and what else is saved as the JSON that is read | stays | |
| a set, an array of NumPy, a container of another class | plain JSON | |

What has no text of its own, and what has to be awaited or iterated first, cannot be a result. Where
`check_result=True` asks for it, what was returned is checked against the schema that the tool declares.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from copy import deepcopy
from enum import Enum
from inspect import isawaitable
from math import isfinite
from typing import Any, NoReturn, cast

import dspy
import jiter
import orjson
from dspy.adapters import utils
from pydantic_core import to_jsonable_python
from typing_extensions import Self

from sigadapt.errors import InvalidHistory, InvalidToolDecl, SigadaptError
from sigadapt.json_values import (
    ARGUMENT_LEVELS,
    Json,
    as_unicode,
    compact,
    is_large_integer,
    is_object,
    is_sequence,
    is_unicode,
    type_of,
    without_halves,
)
from sigadapt.schemas.arguments import Flaw
from sigadapt.schemas.checking import check
from sigadapt.signatures.tool_results.content import PLAIN, content_of
from sigadapt.signatures.tool_results.tool_output import output_of, structured_content

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
_DEFINITIONS = ("$defs", "definitions")
_TO_RETURN = "Return text or JSON, such as str(value)."


class AlteredText(str):
    """The text of what JSON cannot hold, in the records of DSPy's agents, which have no field to say so."""

    __slots__ = ("reason",)

    def __new__(cls, text: str, reason: str) -> Self:
        """Make the text, with the word that `ToolResult.altered` has for it."""
        altered = super().__new__(cls, text)
        altered.reason = reason
        return altered

    def __reduce__(self) -> tuple[Any, ...]:
        return AlteredText, (str(self), self.reason)


def plain_value(value: Any, tool: str) -> tuple[Any, tuple[str, ...]]:
    """Return a value as JSON can hold it, and what of it was altered.

    Raises:
        InvalidHistory: `unsendable_content`, for a value without a text of its own, one that has to be
            awaited or iterated, or one that no store could give back.
    """
    if type(value) is str and is_unicode(value):
        return value, ()
    if isinstance(value, dspy.Type) and not isinstance(value, dspy.ToolCalls.ToolCall):
        return value, ()
    output = output_of(value)
    if output is not None:
        _refuse_unreadable(output.parts, tool)
        return value, ("unicode",) if output.had_halves else ()
    if _is_json(value):
        return value, ()
    _refuse_unreadable(value, tool)
    reasons: set[str] = set()
    try:
        plain: Any = value if content_of(value) is not None else _plain(value, tool, reasons)
    except SigadaptError:
        raise
    except Exception as error:  # noqa: BLE001  (of the methods by which it is written)
        _refuse(tool, f"is {type_of(value)}, which cannot be written: {type(error).__name__}", _TO_RETURN)
    return plain, tuple(sorted(reasons))


def snapshot_of(value: Any) -> Any:
    """Return a value as it is now: a tool may change later what it returned, and the past stays."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if type(value) in (list, tuple):
        return type(value)(map(snapshot_of, value))
    if is_object(value) and type(value) is dict:
        return {key: snapshot_of(member) for key, member in value.items()}
    try:
        return deepcopy(value)
    except Exception:  # noqa: BLE001  (it holds a lock or a connection, or refuses)
        return utils.serialize_for_json(value)


def result_text(value: Any) -> str:
    """Return a result's value as text: text as it is, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    text = _json_text(value)
    # A UUID or an Enum is read as the text that it is saved as, without quotes.
    return json.loads(text) if text.startswith('"') else text


def result_json(value: Any) -> Any:
    """Return a result's value as the JSON that it is saved as."""
    return str(value) if isinstance(value, str) else jiter.from_json(as_unicode(_json_text(value)).encode())


def _json_text(value: Any) -> str:
    try:
        return orjson.dumps(value, option=PLAIN, default=_as_sorted_list).decode()
    except TypeError:  # not plain JSON: DSPy builds a pydantic adapter for it
        return compact(utils.serialize_for_json(value))


def _as_sorted_list(value: Any) -> list[Any]:
    """Return a set as a list in the same order in every process, or the caches of prompts would miss."""
    if isinstance(value, (set, frozenset)):
        return sorted(cast("set[Any]", value), key=repr)
    raise TypeError


def _is_json(value: Any) -> bool:
    """Return whether a value is plain JSON, with no number that JSON lacks."""
    try:
        text = orjson.dumps(value, option=PLAIN)
        if b"null" in text:  # which orjson also writes for NaN
            json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return text.count(b"[") + text.count(b"{") <= ARGUMENT_LEVELS  # else it may be too deep


def _plain(value: Any, tool: str, reasons: set[str]) -> Any:
    if type(value) in (list, tuple):
        return _plain_items(value, tool, reasons)
    if is_object(value) and type(value) is dict:
        return _plain_members(value, tool, reasons)
    if value is None or isinstance(value, (str, int, float)):
        return _plain_scalar(value, reasons)
    if isinstance(value, (set, frozenset)):  # which JSON saves in another order each time
        return _plain_items(_as_sorted_list(value), tool, reasons)
    _refuse_unfinished(value, tool)
    if isinstance(value, BaseException):
        return _altered_text(_text_of(value, tool), "text", reasons)
    return _plain_object(value, tool, reasons)


def _plain_scalar(value: str | float | None, reasons: set[str]) -> Any:
    if isinstance(value, AlteredText):
        reasons.add(value.reason)
    elif isinstance(value, str) and not is_unicode(value):
        return _altered_text(without_halves(str(value)), "unicode", reasons)
    elif isinstance(value, float) and not isfinite(value):
        reasons.add("null")
        return float(value)  # which is read and saved as null
    elif isinstance(value, (int, float)) and not isinstance(value, (bool, Enum)):
        return float(value) if isinstance(value, float) else int(value)  # NumPy's float is one
    return value


def _plain_items(items: Any, tool: str, reasons: set[str]) -> Any:
    """Return a list with plain items; the same object if all of them are."""
    plain = [_plain(item, tool, reasons) for item in items]
    is_same = all(new is old for new, old in zip(plain, items, strict=True))
    return items if is_same else plain


def _plain_members(members: dict[Any, Any], tool: str, reasons: set[str]) -> Any:
    """Return a dict with plain keys and values; the same object if all of them are."""
    keys, values = list(members), list(members.values())
    plain_keys = _plain_items(keys, tool, reasons)
    plain_values = _plain_items(values, tool, reasons)
    if len(to_jsonable_python(dict.fromkeys(plain_keys))) < len(members):
        _refuse(tool, "has two keys that are one in JSON, such as 1 and '1'", "Give each a name of its own.")
    is_same = plain_keys is keys and plain_values is values
    return members if is_same else dict(zip(plain_keys, plain_values, strict=True))


def _plain_object(value: Any, tool: str, reasons: set[str]) -> Any:
    """Return an object that is read and saved as the same JSON; any other as plain JSON, or as its text."""
    to_list = getattr(value, "tolist", None)  # of NumPy and pandas, whose texts leave out what is long
    if callable(to_list):
        return _plain(to_list(), tool, reasons)
    try:
        json_value = to_jsonable_python(value, inf_nan_mode="constants")
    except (ValueError, TypeError):
        return _altered_text(_text_of(value, tool), "text", reasons)
    _refuse_unreadable(json_value, tool)
    own_reasons: set[str] = set()
    plain = _plain(json_value, tool, own_reasons)
    reasons |= own_reasons
    if not own_reasons and result_text(value) == result_text(plain):
        return value
    return plain


def _altered_text(text: str, reason: str, reasons: set[str]) -> AlteredText:
    reasons.add(reason)
    return AlteredText(as_unicode(text), reason)


def _text_of(value: Any, tool: str) -> str:
    """Return the text that a value has of itself."""
    text = str(value)
    if _ADDRESS.search(text) and not isinstance(value, BaseException):
        _refuse(tool, f"is {type_of(value)}, which has no text of its own", _TO_RETURN)
    return text


def _refuse_unfinished(value: Any, tool: str) -> None:
    """Refuse what DSPy would send as the text of a Python object, such as `<coroutine object ...>`."""
    if isawaitable(value):
        _refuse(tool, "was not awaited", "Give what it returns: `await` it.")
    if isinstance(value, type):
        _refuse(tool, f"is the class {value.__qualname__}", _TO_RETURN)
    if isinstance(value, dspy.ToolCalls.ToolCall):
        _refuse(tool, "is a call, which was not run", "Give what it returns: call.execute(decls).")
    if isinstance(value, (Iterator, AsyncIterator)):
        kind = type_of(cast("object", value))
        _refuse(tool, f"is {kind}, an iterator whose items are not there yet", "Give a list of them.")


def _refuse_unreadable(value: Any, tool: str) -> None:
    """Refuse a value that a store writes and cannot read again: each later load of the run would fail."""
    fix = "Return less, or return it as text."
    pending: list[tuple[Any, int]] = [(value, 0)]
    while pending:
        item, levels = pending.pop()
        if is_large_integer(item):
            _refuse(tool, "holds an integer of more than 4,300 digits", fix)
        members = item.values() if is_object(item) else item if is_sequence(item) else ()
        if members and levels >= ARGUMENT_LEVELS:
            _refuse(tool, f"is nested deeper than {ARGUMENT_LEVELS} levels", fix)
        pending += [(member, levels + 1) for member in members]


def _refuse(tool: str, reason: str, fix: str) -> NoReturn:
    reason = f"the result {reason}"
    raise InvalidHistory(reason, code="unsendable_content", tool=tool, fix=fix)


def refuse_uncheckable(returns: Json | None, tool: str) -> None:
    """Refuse `check_result` for a tool whose declaration says nothing of its result."""
    if returns is not None:
        check_value_schema(returns, tool)
        return
    raise InvalidToolDecl(
        "its check_result has no schema to check by",
        code="invalid_field",
        tool=tool,
        fix="Annotate what the function returns, or give returns=... .",
    )


def check_value_schema(schema: Json, tool: str) -> None:
    """Refuse a schema by which no value can be checked.

    Raises:
        InvalidToolDecl: as for the schema of a declaration.
    """
    check(_as_member(schema), tool=tool)


def unfit_error(decl: Any, value: Any, output: Any) -> InvalidHistory | None:
    """Return the error of a value that does not fit the schema of its tool: `unfit_result`, with the path.

    Args:
        decl: the ToolDecl.
        value: what the model would read of the result.
        output: what the tool returned. Of an MCP server's, the structured content is judged.
    """
    if not decl.check_result:
        return None
    structured = structured_content(output)
    judged = result_json(value) if structured is None else structured
    flaw = flaw_of_value(judged, decl.returns, decl.name)
    if flaw is None:
        return None
    return InvalidHistory(
        f"the result does not fit the declared schema: {flaw.message}",
        code="unfit_result",
        tool=decl.name,
        path=flaw.path,
    )


def flaw_of_value(value: Any, schema: Json, tool: str) -> Flaw | None:
    """Return why a JSON value of any type does not fit a schema; None if it fits."""
    flaw = check(_as_member(schema), tool=tool).flaw_of({"result": value}, tool)
    return None if flaw is None else flaw._replace(message=flaw.message.partition(": ")[2])


def _as_member(returns: Json) -> Json:
    """Return the schema of an object whose member `result` is what the tool returns, of any type."""
    definitions = {key: returns[key] for key in _DEFINITIONS if key in returns}
    schema = {key: part for key, part in returns.items() if key not in _DEFINITIONS}
    return {"type": "object", "properties": {"result": schema}, "required": ["result"], **definitions}
