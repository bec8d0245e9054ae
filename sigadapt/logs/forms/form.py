"""The contract of a form: what tells a row of a log that has it, and the exchanges that such a row holds.

A row is a JSON object: a line of a log, or an entry of an array in it.
"""

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from math import isfinite
from typing import Any, NamedTuple

from sigadapt.errors import InvalidHistory
from sigadapt.schemas.json_values import Json, is_object

_LATEST_SECONDS = 1e11  # a number above it counts milliseconds or nanoseconds
_LONGEST_NUMBER = 25


class RawExchange(NamedTuple):
    """A request and its answer as a row has them; None for one that is on another row.

    Args:
        request: the request's body.
        response: the answer: a body, its text, or that of a stream.
        name: the id that the log gives the conversation; None without one.
        time: when it was, in seconds; 0 if the row does not say.
        key: what joins a request and its answer, wherever they are; None if they follow each other.
        digest: a hash of all that was said, if other rows may hold the same exchange; else None.
        failure: what the row says if the request had no answer; else None.
        answer_ids: the ids of answers that are of the same conversation, if the log's server keeps that.
    """

    request: Any = None
    response: Any = None
    name: str | None = None
    time: float = 0.0
    key: str | None = None
    digest: str | None = None
    failure: str | None = None
    answer_ids: tuple[str, ...] = ()


class LogForm(NamedTuple):
    """One form that rows of a log have. The first form of the table that knows a row reads it."""

    knows: Callable[[Json], bool]
    read: Callable[[Json], Iterable[RawExchange]]


def missing(form: str, what: str) -> InvalidHistory:
    """Return the error for a row that looks like a form and lacks something."""
    return InvalidHistory(f"it looks like {form}, but {what}", code="unreadable_request")


def value_in(text: str) -> Any:
    """Return the value that a JSON text holds; ValueError for NaN and infinity too, which no JSON has."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def decoded_text(value: Any) -> Any:
    """Return what a JSON text of an object or an array holds; any other value unchanged."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return value_in(value)
    except ValueError:
        return value


def first_of(row: Json, *names: str) -> Any:
    """Return the first member that is not None."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def seconds_of(value: Any) -> float:
    """Return a time in seconds: of a number, also in milliseconds or nanoseconds, or of an ISO text."""
    if isinstance(value, str) and value.isdecimal() and len(value) < _LONGEST_NUMBER:
        value = int(value)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return 0.0
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    if type(value) not in (int, float) or not isfinite(value):
        return 0.0
    while value > _LATEST_SECONDS:
        value /= 1_000
    return float(value)


def answer_of(message: Json, finish: Any = None) -> Json:
    """Return a message of the model as a chat completion."""
    has_calls = bool(message.get("tool_calls") or message.get("function_call"))
    reason = finish or ("tool_calls" if has_calls else "stop")
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": reason}]}


def text_or_none(value: Any) -> str | None:
    """Return an id as a text; None without one."""
    return None if value is None or is_object(value) else str(value)
