"""A call's arguments: what the provider sent, as an object or as a reason. The one judge of arguments.

Providers send arguments as JSON text (`parse_arguments`) or decoded (`check_decoded`). Both are judged alike:

 a. A JSON object is the object, number for number: integers of any size, no key twice, no NaN or Infinity.
 b. No text, white space or `null` is the empty object: providers send these for a call without arguments.
 c. Anything else is a `Flaw` with its code. Nothing is repaired, and nothing that was left open is closed.
 d. Text that cannot be decoded, or is missing, in an answer that was cut off is `truncated`.
 e. Arguments nest at most `ARGUMENT_LEVELS` levels, so hostile nesting ends in a Flaw (rule 11).
"""

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import jiter

from sigadapt.errors import CallCode
from sigadapt.schemas.json_values import ARGUMENT_LEVELS, Json, compact, cut, fault_in, is_object, spelled

# A double overflows by an exponent of three digits, by hundreds of digits, or by both.
_EXPONENT = re.compile(r"e\+?[0-9]{3}")
_UPPER_EXPONENT = re.compile(r"E\+?[0-9]{3}")
_ALL_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_MANY_DIGITS = b"0" * 200


class Flaw(NamedTuple):
    """Why arguments cannot be used: a code, a sentence, and a JSON Pointer if the flaw has a place."""

    code: CallCode
    message: str
    path: str | None = None


def parse_arguments(text: str, *, cut_off: bool = False) -> "Json | Flaw":
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
    except ValueError as error:  # UnicodeEncodeError, of half a surrogate pair, is one
        return _undecodable(text, str(error), cut_off=cut_off)
    if is_object(value):
        if _may_overflow(text, encoded) and _holds_infinity(value.values()):
            return Flaw("invalid_json", f"a number is too large for a double: {cut(text)}")
        return value
    if value is None:
        return {}
    return Flaw("not_an_object", f"the arguments are {_kind(value)}, not an object: {cut(text)}")


def check_decoded(value: Any) -> "tuple[str, Json | Flaw]":
    """Check arguments that the provider sent decoded (Anthropic, Gemini, Ollama, Bedrock).

    Args:
        value: what the provider or its SDK gave; None where it sent none, which is the empty object.

    Returns:
        The arguments as compact JSON text (empty for none), and the object itself or the `Flaw` that keeps it
        from being arguments. Never raises.

    Example:
        >>> check_decoded({"city": "Paris"})
        ('{"city":"Paris"}', {'city': 'Paris'})
        >>> check_decoded([1, 2])[1].code, check_decoded({"a": float("nan")})[1].path
        ('not_an_object', '/a')
    """
    if value is None:
        return "", {}
    fault = fault_in(value, levels=ARGUMENT_LEVELS)
    if fault is not None:
        text = spelled(value)
        return text, Flaw(
            "invalid_json", f"the arguments are not JSON ({fault.reason}): {cut(text)}", fault.path
        )
    text = compact(value)
    if isinstance(value, dict):
        return text, cast("Json", value)
    return text, Flaw("not_an_object", f"the arguments are not an object: {cut(text)}")


def _may_overflow(text: str, encoded: bytes) -> bool:
    """Whether a number may be too large. Many digits are found in bytes ten times faster than by a regex."""
    return bool(
        _EXPONENT.search(text)
        or ("E" in text and _UPPER_EXPONENT.search(text))
        or (len(text) > 200 and _MANY_DIGITS in encoded.translate(_ALL_ZEROS))
    )


def _undecodable(text: str, reason: str, *, cut_off: bool) -> "Json | Flaw":
    if reason.startswith("Detected duplicate key"):
        return Flaw("duplicate_key", f"{reason[9:]}: {cut(text)}")
    if cut_off:
        return Flaw("truncated", f"the answer was cut off inside the arguments: {cut(text, from_end=True)}")
    if not text.strip():
        return {}
    return Flaw("invalid_json", f"the arguments are not JSON ({reason}): {cut(text)}")


def _holds_infinity(values: Iterable[Any]) -> bool:
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, float) and math.isinf(value):
            return True
        if isinstance(value, dict):
            pending.extend(cast("Json", value).values())
        elif isinstance(value, list):
            pending.extend(cast("list[Any]", value))
    return False


def _kind(value: object) -> str:
    kinds: dict[type[Any], str] = {list: "an array", str: "a string", bool: "a boolean"}
    return kinds.get(type(value), "a number")
