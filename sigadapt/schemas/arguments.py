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
from typing import Any, NamedTuple, cast

import jiter

from sigadapt.errors import CallCode
from sigadapt.json_values import (
    ARGUMENT_LEVELS,
    Json,
    RepeatedKeys,
    compact,
    cut,
    fault_in,
    json_like,
    without_halves,
)

_HALF = re.compile(r"\\\\|\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u[dD][89a-fA-F]\w\w")
"""A backslash, a pair of surrogates, or half of one, as JSON escapes them."""

_EXPONENT = re.compile(r"[eE]\+?\d")
_LARGE = 300  # digits of a number that may be too large for a double


class CutOff(NamedTuple):
    """Arguments that may be incomplete: the part that was sent, as text or as a decoded value."""

    sent: Any


class Flaw(NamedTuple):
    """Why arguments cannot be used: a code, a sentence, and a JSON Pointer if the flaw has a place."""

    code: CallCode  # one of `errors.py`
    message: str  # what the model reads
    path: str | None = None  # a JSON Pointer into the arguments


class UnreadCall(NamedTuple):
    """The text of a call that was not read, and why."""

    text: str
    flaw: Flaw


def parse_arguments(text: str, *, cut_off: bool = False) -> "Json | Flaw":
    """Decode the JSON text of a call's arguments."""
    try:
        value: Any = jiter.from_json(text.encode(), allow_inf_nan=False, catch_duplicate_keys=True)
    except ValueError as error:  # also UnicodeEncodeError, for half of a surrogate pair
        return _undecodable(text, str(error), cut_off=cut_off)
    if value.__class__ is dict:  # `is_object` would be one more call for each tool call
        # To look at each value takes as long as to decode the text.
        if (len(text) >= _LARGE or _EXPONENT.search(text)) and _holds_infinity(value):  # 1e999
            return Flaw("invalid_json", f"a number is too large for a double: {cut(text)}")
        return value
    if value is None:
        return {}
    kinds: dict[Any, str] = {list: "an array", str: "a string", bool: "a boolean"}
    kind = kinds.get(value.__class__, "a number")
    return Flaw("not_an_object", f"the arguments are {kind}, not an object: {cut(text)}")


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


def holds_half(value: Any) -> bool:
    """Say whether arguments hold half of a surrogate pair, as text or decoded, which is read as U+FFFD."""
    text = value if isinstance(value, str) else compact(value)
    is_replaced = without_halves(text).count("\ufffd") > text.count("\ufffd")  # two halves of one are joined
    return is_replaced or any(len(escape[0]) == 6 for escape in _HALF.finditer(text))


def _undecodable(text: str, reason: str, *, cut_off: bool) -> "Json | Flaw":
    if reason.startswith("Detected duplicate key"):
        return Flaw("duplicate_key", f"{reason[9:]}: {cut(text)}")
    if cut_off:
        return Flaw("truncated", f"the answer was cut off inside the arguments: {cut(text, from_end=True)}")
    if not text.strip():
        return {}
    # Six characters are half of a pair, and no backslash and no pair.
    readable = _HALF.sub(lambda m: r"\ufffd" if len(m[0]) == 6 else m[0], without_halves(text))
    if readable != text:
        return parse_arguments(readable, cut_off=cut_off)
    return Flaw("invalid_json", f"the arguments are not JSON ({reason}): {cut(text)}")


def _holds_infinity(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_infinity, cast("Json", value).values()))
    if isinstance(value, list):
        return any(map(_holds_infinity, cast("list[Any]", value)))
    return isinstance(value, float) and math.isinf(value)
