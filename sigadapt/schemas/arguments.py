"""Parse a call's arguments: either the arguments object comes out, or a `Flaw` that says what is wrong.

Providers send arguments as JSON text (`parse_arguments`) or decoded (`check_decoded`). The rules for both:

 a. A JSON object becomes that object. Integers may have any size; duplicate keys, NaN and Infinity are flaws.
 b. Empty text, white space and `null` become the empty object: providers send them for a call without
    arguments.
 c. Anything else is a `Flaw`. Nothing is repaired, and no open bracket is closed (nothing silent).
 d. If the answer was cut off, text that cannot be decoded, or is empty, is `truncated`.
 e. At most `ARGUMENT_LEVELS` objects and arrays may be around a value; more are a Flaw (no network).
"""

import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import jiter

from sigadapt.errors import CallCode
from sigadapt.schemas.json_values import (
    ARGUMENT_LEVELS,
    Json,
    RepeatedKeys,
    compact,
    cut,
    fault_in,
    is_array,
    is_object,
    json_like,
    without_halves,
)

# A number can overflow a double only with an exponent of three digits or with hundreds of digits.
_exponent_in = re.compile(r"e\+?[0-9]{3}").search
_upper_exponent_in = re.compile(r"E\+?[0-9]{3}").search
_ALL_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_MANY_DIGITS = b"0" * 200


class CutOff(NamedTuple):
    """Arguments that may be incomplete: the part that was sent, as text or as a decoded value."""

    sent: Any


class Flaw(NamedTuple):
    """Why arguments cannot be used.

    Args:
        code: the kind of flaw, for programs.
        message: the flaw in a sentence, for the model and for people.
        path: a JSON Pointer into the arguments; None where the flaw has no place.
    """

    code: CallCode
    message: str
    path: str | None = None


class Unread(NamedTuple):
    """The text of a call that was not read, and why."""

    text: str
    flaw: Flaw


def parse_arguments(text: str, *, cut_off: bool = False) -> "Json | Flaw":
    """Decode the JSON text of a call's arguments."""
    try:
        encoded = text.encode()
        value: Any = jiter.from_json(encoded, allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:  # also UnicodeEncodeError, for half of a surrogate pair
        return _undecodable(text, str(error), cut_off=cut_off)
    if value.__class__ is dict:  # `is_object` would be one more call for each tool call
        may_overflow = (
            _exponent_in(text)
            or ("E" in text and _upper_exponent_in(text))
            or (
                len(text) > 200 and _MANY_DIGITS in encoded.translate(_ALL_ZEROS)
            )  # ten times a regex's speed
        )
        if may_overflow and _holds_infinity(value.values()):
            return Flaw("invalid_json", f"a number is too large for a double: {cut(text)}")
        return value
    if value is None:
        return {}
    return Flaw("not_an_object", f"the arguments are {_kind(value)}, not an object: {cut(text)}")


def check_decoded(value: Any) -> "tuple[str, Json | Flaw]":
    """Check arguments that the provider sent decoded (Anthropic, Gemini, Ollama, Bedrock), and copy them."""
    if value is None:
        return "", {}
    if type(value) is RepeatedKeys:
        text = json_like(value)
        return text, parse_arguments(text)
    fault = fault_in(value, levels=ARGUMENT_LEVELS)
    if fault is not None and "surrogate" in fault.reason:
        value = without_halves(value)
        fault = fault_in(value, levels=ARGUMENT_LEVELS)
    if fault is not None:
        text = json_like(value)
        reason = f"the arguments are not JSON ({fault.reason}): {cut(text)}"
        return text, Flaw("invalid_json", reason, fault.path)
    text = compact(value)
    if isinstance(value, dict):
        return text, jiter.from_json(text.encode())  # the body may be one that DSPy's cache holds
    return text, Flaw("not_an_object", f"the arguments are not an object: {cut(text)}")


def _undecodable(text: str, reason: str, *, cut_off: bool) -> "Json | Flaw":
    if reason.startswith("Detected duplicate key"):
        return Flaw("duplicate_key", f"{reason[9:]}: {cut(text)}")
    if cut_off:
        return Flaw("truncated", f"the answer was cut off inside the arguments: {cut(text, from_end=True)}")
    if not text.strip():
        return {}
    whole = _HALF.sub(_whole, without_halves(text))
    if whole != text:
        return parse_arguments(whole, cut_off=cut_off)
    return Flaw("invalid_json", f"the arguments are not JSON ({reason}): {cut(text)}")


_HALF = re.compile(r"\\\\|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u[dD][89a-fA-F]\w\w")


def _whole(escape: re.Match[str]) -> str:
    is_half = len(escape[0]) == 6  # not a backslash, nor a pair
    return r"\ufffd" if is_half else escape[0]


def _holds_infinity(values: Iterable[Any]) -> bool:
    pending = list(values)
    while pending:
        value = pending.pop()
        if isinstance(value, float) and math.isinf(value):
            return True
        if is_object(value):
            pending.extend(value.values())
        elif is_array(value):
            pending.extend(value)
    return False


def _kind(value: object) -> str:
    kinds: dict[type[Any], str] = {list: "an array", str: "a string", bool: "a boolean"}
    return kinds.get(type(value), "a number")
