"""Whether the result of a recorded call says that the call failed.

A flag says so, or a text that begins as errors do, or a JSON object with a member that says so. What a tool
says in words of its own is no failure, unless `failed=` knows them: a guess would take good calls away.
"""

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import Json, is_array, is_object
from sigadapt.signatures.tool_results.results import text_of_result
from sigadapt.signatures.tool_results.tool_result import ToolResult

FailurePattern: TypeAlias = str | re.Pattern[str] | Callable[[ToolResult], Any]
"""What else is a failure: a regular expression in the result's text, or a function of the result."""

_FAILURE_TEXT = re.compile(
    r"(?:ERROR|Error:|Exception\b|Traceback\b|\b[A-Za-z_][\w.]{0,80}?(?:Error|Exception):)"
)
# What says nothing about the arguments: the same call may succeed later.
_OUTAGE = re.compile(
    r"\b(?:408|429|50[0-4]|529)\b|timed? ?out|unavailable|rate.?limit|too many requests|overloaded|temporar"
    r"|connection (?:error|refused|reset|aborted|closed)|gateway",
    re.IGNORECASE,
)
_LONGEST_OUTAGE = 500  # characters of a failure in which its reason is looked for
_FAILURE_MEMBERS = ("error", "errors", "exception")  # which are a failure if they hold anything
_FAILURE_FLAGS = ("isError", "is_error")
_SUCCESS_FLAGS = ("success", "ok")
_FAILURE_WORDS = ("error", "failed")
_FIRST_ERROR_STATUS = 400
_WRAPPERS = ("result", "output", "content", "return_value")  # an object with one of these alone wraps it
_MOST_WRAPPERS = 3


class FailureRule:
    """Says which results are failures.

    Args:
        pattern: what is a failure besides what every tool says: a regular expression, which is searched in
            the result's text, or a function of the result.

    Raises:
        InvalidOption: if the pattern is neither, or no regular expression.
    """

    def __init__(self, pattern: FailurePattern | None = None) -> None:
        self._function: Callable[[ToolResult], Any] | None = None
        self._expression: re.Pattern[str] | None = None
        if isinstance(pattern, str):
            try:
                self._expression = re.compile(pattern)
            except re.error as error:
                raise InvalidOption(
                    f"{pattern!r} is no regular expression: {error}", field="failed"
                ) from error
        elif isinstance(pattern, re.Pattern):
            self._expression = pattern
        elif callable(pattern):
            self._function = pattern
        elif pattern is not None:
            reason = f"expected a regular expression or a function, got {type(pattern).__name__}"
            raise InvalidOption(reason, field="failed")

    def __call__(self, result: ToolResult) -> bool:
        """Return whether a result is a failure."""
        value = text_of_result(result) if result.is_content else result.value
        if result.is_error or _says_failure(value, _MOST_WRAPPERS):
            return True
        if self._function is not None:
            return bool(self._function(result))
        return self._expression is not None and bool(self._expression.search(text_of_result(result)))


def is_outage(result: ToolResult | None) -> bool:
    """Return whether a failure is of the tool and not of the arguments: it was out of reach or too busy."""
    return result is not None and bool(_OUTAGE.search(text_of_result(result)[:_LONGEST_OUTAGE]))


def _says_failure(value: Any, wrappers: int) -> bool:
    """Return whether a value is an error text, or an object with a member that says so."""
    if is_array(value) and value and all(is_object(part) and part.get("type") == "text" for part in value):
        value = "".join(str(part.get("text")) for part in value)
    if isinstance(value, str):
        if _FAILURE_TEXT.match(value.lstrip()):
            return True
        value = object_in(value)
    if not is_object(value):
        return False
    if len(value) == 1 and wrappers:
        [(name, inner)] = value.items()
        if name in _WRAPPERS:
            return _says_failure(inner, wrappers - 1)
    return _has_failed_member(value)


def object_in(text: str) -> Json | None:
    """Return the JSON object that a text is."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def _has_failed_member(value: Json) -> bool:
    if any(value.get(name) for name in _FAILURE_MEMBERS):
        return True
    if any(value.get(name) is True for name in _FAILURE_FLAGS):
        return True
    if any(value.get(name) is False for name in _SUCCESS_FLAGS):
        return True
    status = value.get("status")
    if isinstance(status, str):
        return status.lower() in _FAILURE_WORDS
    if isinstance(status, bool) or not isinstance(status, (int, float)):
        return False
    return status >= _FIRST_ERROR_STATUS
