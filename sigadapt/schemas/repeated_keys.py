"""Decode JSON without losing that an object has a key twice.

JSON decoders keep the last value of a repeated key and say nothing, so a call would get arguments that nobody
can tell from good ones (nothing silent). Here an object with a repeated key becomes a `RepeatedKeys`, and so
does each object around it: a dict like any other, with the last values, that also knows all pairs.
`check_decoded` refuses it as arguments; everywhere else in an event it is read as a dict.
"""

import json
from collections.abc import Iterable
from typing import Any, cast

import jiter

from sigadapt.schemas.json_values import Json, RepeatedKeys


class _FoundRepeat(Exception):
    """Ends the first of two passes."""


def _once(pairs: list[tuple[str, Any]]) -> Json:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _FoundRepeat
    return made


def object_of(pairs: list[tuple[str, Any]]) -> Json:
    """Return the object that pairs make: a `RepeatedKeys` if a key stands twice in it or in a value."""
    made = dict(pairs)
    return RepeatedKeys(pairs) if len(made) < len(pairs) or _holds_repeat(made.values()) else made


def _holds_repeat(values: Iterable[Any]) -> bool:
    pending = list(values)
    while pending:
        value = pending.pop()
        if type(value) is RepeatedKeys:
            return True
        if isinstance(value, list):
            pending.extend(cast("list[Any]", value))
    return False


_FAST = json.JSONDecoder(object_pairs_hook=_once)
_MARKING = json.JSONDecoder(object_pairs_hook=object_of)


def decode_at(text: str, at: int = 0) -> tuple[Any, int]:
    """Decode the JSON value at a place in a text, and return it with the place behind it.

    Raises:
        ValueError: for text that is not JSON.
        RecursionError: for text that is nested too deep.
    """
    try:
        return _FAST.raw_decode(text, at)
    except _FoundRepeat:
        return _MARKING.raw_decode(text, at)


def decoded_if_plain(text: str) -> Any:
    """Decode a text that is one JSON value without a repeated key; return None for any other text."""
    # This is twice as fast as `decode_at`.
    try:
        return jiter.from_json(text.encode(), catch_duplicate_keys=True)
    except ValueError:
        return None


def decode(text: str) -> Any:
    """Decode a text that is one JSON value, after white space.

    Raises:
        ValueError: for text that is not JSON, or that is nested too deep.
    """
    value = decoded_if_plain(text)
    if value is not None:
        return value
    try:
        value, end = decode_at(text, len(text) - len(text.lstrip()))
    except RecursionError:
        raise ValueError("nested too deep") from None
    if text[end:].strip():
        raise ValueError("text after the value")
    return value
