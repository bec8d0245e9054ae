"""Reading a call's arguments: JSON text in, an object or a reason out. The one parser of arguments.

Rules it enforces (DESIGN 3 and 11):

 a. A JSON object is the object, number for number: integers of any size, no key twice, no NaN or Infinity.
 b. No text, white space or `null` is the empty object: providers send these for a call without arguments.
 c. Anything else is a `Flaw` with its code. Nothing is repaired and nothing is closed that was left open.
 d. Text that cannot be decoded, or is missing, in an answer that was cut off is `truncated`.
 e. Depth is limited by the decoder (200 levels), so hostile nesting ends in a Flaw.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import jiter
import orjson

from sigadapt.errors import CallCode

# A double overflows by an exponent of three digits, by hundreds of digits, or by both.
_EXPONENT = re.compile(r"e\+?[0-9]{3}")
_UPPER_EXPONENT = re.compile(r"E\+?[0-9]{3}")
_ALL_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_MANY_DIGITS = b"0" * 200
_MOST_SHOWN = 120


class Flaw(NamedTuple):
    """Why arguments cannot be used: a code, a sentence, and where (a JSON Pointer) if known."""

    code: CallCode
    message: str
    path: str | None = None


def parse_arguments(text: str, *, cut_off: bool = False) -> "dict[str, Any] | Flaw":
    """Decode the JSON text of a call's arguments.

    Args:
        text: the arguments exactly as the provider sent them.
        cut_off: whether the answer ended at its length limit in this very call.

    Returns:
        The arguments object, or the `Flaw` that keeps the text from being one. Never raises.

    Example:
        >>> parse_arguments('{"city": "Paris"}')
        {'city': 'Paris'}
        >>> parse_arguments("")
        {}
        >>> parse_arguments('{"city": "Par', cut_off=True).code
        'truncated'
        >>> parse_arguments('{"a": 1, "a": 2}').code
        'duplicate_key'
    """
    try:
        encoded = text.encode()
        value: Any = jiter.from_json(encoded, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:  # UnicodeEncodeError, of a lone surrogate, is one
        return _undecodable(text, str(error), cut_off=cut_off)
    if type(value) is dict:
        args = cast("dict[str, Any]", value)
        if _may_overflow(text, encoded) and _holds_infinity(args.values()):
            return Flaw("invalid_json", f"a number is too large for a double: {shown(text)}")
        return args
    if value is None:
        return {}
    return Flaw("not_an_object", f"the arguments are {_kind(value)}, not an object: {shown(text)}")


def _may_overflow(text: str, encoded: bytes) -> bool:
    """Whether a number may be too large. Many digits are found in bytes ten times faster than by a regex."""
    return bool(
        _EXPONENT.search(text)
        or ("E" in text and _UPPER_EXPONENT.search(text))
        or (len(text) > 200 and _MANY_DIGITS in encoded.translate(_ALL_ZEROS))
    )


def _undecodable(text: str, reason: str, *, cut_off: bool) -> "dict[str, Any] | Flaw":
    if reason.startswith("Detected duplicate key"):
        return Flaw("duplicate_key", f"{reason[9:]}: {shown(text)}")
    if cut_off:
        return Flaw("truncated", f"the answer was cut off inside the arguments: {shown(text, from_end=True)}")
    if not text.strip():
        return {}
    return Flaw("invalid_json", f"the arguments are not JSON ({reason}): {shown(text)}")


def compact(value: Any) -> str:
    """The compact JSON text of a value a provider sent decoded; key order as sent.

    Example:
        >>> compact({"city": "Zürich", "days": [1, 2]})
        '{"city":"Zürich","days":[1,2]}'
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer over 64 bits, or a lone surrogate
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def shown(text: str, *, from_end: bool = False) -> str:
    """Text cut to a length that a message or a log line can carry; the whole stays in the object.

    Example:
        >>> shown("x" * 500).endswith("… (500 characters)")
        True
    """
    if len(text) <= _MOST_SHOWN:
        return text or "(nothing)"
    part = f"…{text[-_MOST_SHOWN:]}" if from_end else f"{text[:_MOST_SHOWN]}…"
    return f"{part} ({len(text)} characters)"


def _holds_infinity(values: Iterable[Any]) -> bool:
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, float) and math.isinf(value):
            return True
        if isinstance(value, dict):
            pending.extend(cast("dict[str, Any]", value).values())
        elif isinstance(value, list):
            pending.extend(cast("list[Any]", value))
    return False


def _kind(value: object) -> str:
    kinds: dict[type[Any], str] = {list: "an array", str: "a string", bool: "a boolean"}
    return kinds.get(type(value), "a number")
