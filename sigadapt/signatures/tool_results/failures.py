"""What the model reads of a tool that failed: `Type: message`, no traceback, and no error behind it.

DSPy's agents write the whole traceback: paths of the machine, lines of source, and the message of each error
behind the last one. `message_in` reads the message back where a request is written, also of a saved history.
In `dspy.ReAct` no adapter sees the text, so declared tools fail without a traceback there.
"""

import logging
import re
from collections.abc import Generator
from contextlib import contextmanager
from itertools import dropwhile, takewhile
from typing import Any

from sigadapt.dspy_boundary.contract import keeps_trajectory
from sigadapt.dspy_boundary.internals import settings
from sigadapt.schemas.json_values import compact, without_halves

_LOG = logging.getLogger("sigadapt")

# "Execution error in find: \nTraceback (most recent call last):\n  File ..., line 3, in find\n    raise ...\n
# ValueError: password=...\n\nThe above exception was the direct cause of the following exception:\n\n
# Traceback (most recent call last):\n  File ...\nLookupError: There is no such city."
_STARTS = "Execution error in {}: \n"
_TRACEBACK = "Traceback (most recent call last):"
_GROUP = "+ Exception Group Traceback (most recent call last):"
_BEHIND = re.compile(
    r"\n\n(?:The above exception was the direct cause of the following exception|"
    r"During handling of the above exception, another exception occurred):\n\n"
    rf"(?={re.escape(_TRACEBACK)}\n|  {re.escape(_GROUP)}\n)"
)
_MODULE = re.compile(r"(?:(?:\w+|<\w+>)\.)+(?=\w+(?:: |:?\Z|\n))")


class FailedResult(RuntimeError):
    """A failed result that a tool or a hook returned: in an agent, a tool fails by what it raises.

    Args:
        value: what the model reads of it.
    """

    def __init__(self, value: Any) -> None:
        super().__init__(value if isinstance(value, str) else compact(value))
        self.value = value


class ReportedFailure(RuntimeError):
    """What a server says of a call that failed there: the text is its own, and names no exception of ours."""


# The model reads the names of their types in DSPy's agents, which keep no failed results.
for _kind in (FailedResult, ReportedFailure):
    _kind.__name__ = _kind.__qualname__ = "RuntimeError"
    _kind.__module__ = "builtins"


def type_of_error(error: object) -> str | None:
    """Return the type of an exception that was caught; None for what a tool or a server reported."""
    is_caught = isinstance(error, BaseException) and not isinstance(error, (FailedResult, ReportedFailure))
    return type(error).__name__ if is_caught else None


def message_of(error: BaseException) -> str:
    """Return the type and the message of an exception."""
    return f"{type(error).__name__}: {text_of(error)}".removesuffix(": ")


def text_of(error: BaseException) -> str:
    """Return the message of an exception, as text that JSON can hold; empty if its own `__str__` raises."""
    try:
        return without_halves(str(error))  # a file's name may have half a character
    except Exception:  # noqa: BLE001  (the other calls have run, and keep their results)
        return ""


def reason_of(error: BaseException) -> str:
    """Return what the model reads of an exception that a tool returned."""
    if isinstance(error, KeyError) and error.args:  # whose text is the key alone
        return f"KeyError: {error}"
    return text_of(error) or type(error).__name__


def message_in(value: Any, tool: str) -> Any:
    """Return the type and the message in what DSPy's agents write of a failed tool; else the value."""
    start = _STARTS.format(tool)
    if not isinstance(value, str) or not value.startswith(start):
        return value
    lines = _BEHIND.split(value[len(start) :])[-1].split("\n")
    if lines[0] == _TRACEBACK:
        lines = lines[1:]
    elif lines[0].lstrip() == _GROUP:
        lines = [line[4:] for line in takewhile(lambda line: line.startswith("  | "), lines[1:])]
    last_lines = "\n".join(dropwhile(lambda line: line.startswith("  "), lines))
    place = _MODULE.match(last_lines)
    if place:
        last_lines = last_lines[place.end() :]
    message = without_halves(last_lines)
    return message[:-1] if re.fullmatch(r"\w+:", message) else message  # of a message that is space alone


@contextmanager
def plain_failures() -> Generator[None]:
    """In `dspy.ReAct`, let a tool fail with what the model may read, unless `tool_errors` says otherwise."""
    try:
        yield
    except Exception as error:
        callers: list[Any] = settings.caller_modules or []
        options = getattr(settings.adapter, "options", None)
        wants_traceback = getattr(options, "tool_errors", "message") != "message"
        if wants_traceback or not (callers and keeps_trajectory(callers[-1])):
            raise
        _LOG.debug("a tool failed", exc_info=error)
        # An exception of which Python formats the type's name and the message alone.
        text = text_of(error)
        no_value = property(lambda _: None, lambda _, __: None)
        names: dict[str, Any] = dict.fromkeys(("__traceback__", "__cause__", "__context__"), no_value)
        names |= {"__module__": "builtins", "__str__": lambda _: text}  # pyright: ignore[reportUnknownLambdaType]
        raise type(type(error).__name__, (Exception,), names) from None
