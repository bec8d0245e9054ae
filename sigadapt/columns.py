"""Columns: calls and errors as rows of plain values, for Arrow, Parquet and data frames.

A table that holds pickled objects can be read by one version of one library. These rows hold texts and
numbers, and always have the same keys, so that a column has one type even if no row of a batch has a call.
`call_type` and `error_type` are those types for pyarrow, which is imported only there. Rules:

 a. Every call is a row, good and bad, in the order in which the model made them (nothing silent).
 b. `arguments` is the text exactly as sent. `args_json` is what the program gets, as JSON; None for a bad
    call.
 c. Half of a surrogate pair, which no UTF-8 text can hold, is written as its JSON escape.
"""

import importlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import dspy
import jiter

from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import Json, compact
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls

_CALL = {
    **dict.fromkeys(("id", "name", "args_json", "arguments"), "text"),
    "index": "number",
    "altered": "texts",
    **dict.fromkeys(("code", "message", "path"), "text"),
}
_TEXTS_OF_ERROR = ("type", "code", "message", "field", "tool", "path", "reason", "fix")
_ERROR = {**dict.fromkeys(_TEXTS_OF_ERROR, "text"), "status": "number"}


def call_rows(calls: dspy.ToolCalls | None) -> list[Json]:
    """Return every call of an answer as a row.

    Args:
        calls: the value of a calls field; None for no calls.

    Returns:
        For each call `id`, `name`, `args_json`, `arguments`, `index`, `altered`, `code`, `message`, `path`.
        The last three are None for a good call.

    Example:
        >>> rows = call_rows(ToolCalls([{"name": "get_weather", "args": {"city": "Paris"}}]))
        >>> rows[0]["name"], rows[0]["args_json"], rows[0]["code"]
        ('get_weather', '{"city":"Paris"}', None)
    """
    if calls is None:
        return []
    if not isinstance(calls, ToolCalls):
        calls = ToolCalls(calls)
    rows: list[Json] = []
    for item in calls.in_order():
        call = item.as_invalid() if isinstance(item, RefusedToolCall) else item
        args = compact(call.args) if isinstance(call, ToolCall) else None
        rows.append(_row(call, _CALL, args_json=args))
    return rows


def calls_from_rows(rows: Iterable[Mapping[str, Any]] | None) -> ToolCalls:
    """Return the calls of rows that `call_rows` made, also after Arrow, Parquet or a data frame held them.

    What belongs to the turn (`text`, `reasoning`, the provider's state) is not in the rows. To go on with a
    conversation, keep `calls.model_dump_json()` too.

    Example:
        >>> calls = ToolCalls([{"name": "get_weather", "args": {"city": "Paris"}}])
        >>> calls_from_rows(call_rows(calls)) == calls
        True
    """
    good: list[ToolCall] = []
    bad: list[InvalidToolCall] = []
    for row in () if rows is None else rows:
        call = _call_of(row)
        if isinstance(call, ToolCall):
            good.append(call)
        else:
            bad.append(call)
    return ToolCalls(tool_calls=good, invalid=bad)


def error_row(error: BaseException | None) -> Json | None:
    """Return an error as a row.

    Args:
        error: any exception; None for no error. A `ToolCallParseError` also has calls: `call_rows` takes its
            `choice.tool_calls`.

    Returns:
        `type`, `code`, `message`, `field`, `tool`, `path`, `reason`, `fix` and `status`, the HTTP status of a
        provider's refusal. None for no error.

    Example:
        >>> error_row(ValueError("no city"))["message"], error_row(None)
        ('no city', None)
        >>> error_row(InvalidOption("is negative", field="max_reasks"))["code"]
        'invalid_option'
    """
    if error is None:
        return None
    return _row(error, _ERROR, type=type(error).__name__, message=str(error))


def call_type() -> Any:
    """Return the pyarrow type of a column of `call_rows`: a list of structs.

    Raises:
        InvalidOption: `missing_extra`, without pyarrow.

    Example:
        >>> call_type().value_type.names[:3]  # doctest: +SKIP
        ['id', 'name', 'args_json']
    """
    return _pyarrow().list_(_struct(_CALL))


def error_type() -> Any:
    """Return the pyarrow type of a column of `error_row`s: a struct.

    Raises:
        InvalidOption: `missing_extra`, without pyarrow.

    Example:
        >>> error_type().names[:3]  # doctest: +SKIP
        ['type', 'code', 'message']
    """
    return _struct(_ERROR)


def _row(source: object, kinds: Mapping[str, str], **derived: str | None) -> Json:
    """Return the attributes of a call or an error, and what is derived from it, as values of their kinds."""
    row: Json = {}
    for name, kind in kinds.items():
        value: Any = derived.get(name, getattr(source, name, None))
        if kind == "texts":
            row[name] = [*map(_utf8, value)]
        elif kind == "text":
            row[name] = _utf8(value) if isinstance(value, str) else None
        else:
            row[name] = value if type(value) is int else None
    return row


def _utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _call_of(row: Mapping[str, Any]) -> ToolCall | InvalidToolCall:
    values: Json = {}
    for name, value in row.items():
        values[name] = None if _is_null(value) else value
    values["altered"] = tuple(values["altered"])
    values["index"] = int(values["index"])
    text: str | None = values.pop("args_json")
    if text is None:
        return InvalidToolCall.model_validate(values)
    fields = {name: values[name] for name in ("id", "name", "arguments", "index", "altered")}
    return ToolCall.model_validate({**fields, "args": jiter.from_json(text.encode())})


def _is_null(value: Any) -> bool:
    """Whether a value is what a data frame holds in the place of None: NaN, or pandas' NA."""
    return (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType"


def _struct(fields: Mapping[str, str]) -> Any:
    pa = _pyarrow()
    types = {"text": pa.string(), "texts": pa.list_(pa.string()), "number": pa.int64()}
    return pa.struct([(name, types[kind]) for name, kind in fields.items()])


def _pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        fix = "Install the extra: `sigadapt[ray]`."
        raise InvalidOption("Arrow types need pyarrow", code="missing_extra", fix=fix) from error
