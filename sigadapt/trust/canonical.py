"""Write JSON in one form only (RFC 8785), so that a hash survives storage and a browser's JSON.

JavaScript reads every number as a double: it writes 18.0 as 18, and 2**53 + 1 as another number. RFC 8785
covers the first, and refuses the second, which is written here as a decimal text.
"""

import json
import math
from typing import Any

import rfc8785

from sigadapt.schemas.json_values import is_object, is_sequence
from sigadapt.signatures.tool_results.results import result_text

_LARGEST = 2**53 - 1  # JavaScript's `Number.MAX_SAFE_INTEGER`


def canonical(value: Any) -> bytes:
    """Return the one text of a value that has a JSON form.

    Raises:
        ValueError, TypeError, RecursionError: for a value without a JSON form.
    """
    # What a value is after it was saved as JSON and loaded.
    plain = value if isinstance(value, str) else json.loads(result_text(value))
    return rfc8785.dumps(_within(plain))


def has_large_number(value: Any) -> bool:
    """Return whether a value of JSON holds a number that JavaScript may change."""
    if is_object(value):
        return any(map(has_large_number, value.values()))
    if is_sequence(value):
        return any(map(has_large_number, value))
    return isinstance(value, (int, float)) and abs(value) > _LARGEST


def as_a_browser_reads(value: Any) -> Any:
    """Return a value of JSON with every number as a double."""

    def as_double(digits: str) -> float | None:
        # What is too large, JavaScript reads as Infinity and writes as null.
        number = float(digits)
        return number if math.isfinite(number) else None

    return json.loads(json.dumps(value), parse_int=as_double)


def _within(value: Any) -> Any:
    """Return a value of JSON that RFC 8785 can write, and another one for another value."""
    if is_object(value):
        return {key: _within(member) for key, member in value.items()}
    if is_sequence(value):
        return [_within(item) for item in value]
    if isinstance(value, str) and value.startswith("\0"):  # so that no text is taken for a number
        return f"\0{value}"
    if isinstance(value, float) and not math.isfinite(value):  # saved as null
        return None
    if not isinstance(value, (int, float)) or abs(value) <= _LARGEST:
        return value
    digits = str(value) if isinstance(value, int) else rfc8785.dumps(value).decode()
    return f"\0{digits}"
