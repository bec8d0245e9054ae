"""ToolResult: the result of one call, or the reason why it failed, as the model reads it: `Type: message`.

The model reads no traceback, and no error behind the last one. DSPy's agents write all of that: paths of the
machine, lines of source, messages. `message_in` reads the message back where a request is written, also of a
saved history. In `dspy.ReAct` no adapter sees the text, so declared tools fail without a traceback there.
"""

import logging
import re
from collections.abc import Generator
from contextlib import contextmanager
from itertools import dropwhile, takewhile
from typing import Any, Protocol

import dspy
import pydantic

from sigadapt.dspy_boundary.contract import keeps_trajectory
from sigadapt.dspy_boundary.internals import innermost_module, settings
from sigadapt.json_values import compact, is_array, is_object, without_halves
from sigadapt.signatures.saved_model import OwnErrors, in_order_of, order_of
from sigadapt.signatures.tool_results.content import as_content, content_of, is_content, json_of, text_of
from sigadapt.signatures.tool_results.tool_output import NotedValue, for_agent, output_of

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
    """A failed result that a tool, a server or a hook returned: in an agent, a tool fails by what it raises.

    Args:
        value: what the model reads of it.
        error_type: the type of the exception that was returned, if one was.
    """

    def __init__(self, value: Any, error_type: str | None = None) -> None:
        text = value if isinstance(value, str) else compact(value)
        super().__init__(text_of(content_of(value) or []) or text)
        self.value = value
        self.error_type = error_type


_FAILED_RESULT = f"{FailedResult.__module__}.{FailedResult.__name__}"
"""How DSPy's agents write its type, which nobody raised: the model reads the value alone."""


def type_of_error(error: object) -> str | None:
    """Return the type of an exception that was caught; None for what a tool or a server reported."""
    if isinstance(error, FailedResult):
        return error.error_type
    return type(error).__name__ if isinstance(error, BaseException) else None


def message_of(error: BaseException) -> str:
    """Return the type and the message of an exception."""
    return f"{type(error).__name__}: {text_of_error(error)}".removesuffix(": ")


def text_of_error(error: BaseException) -> str:
    """Return the message of an exception, as text that JSON can hold; empty if its own `__str__` raises."""
    try:
        return without_halves(str(error))  # a file's name may have half a character
    except Exception:  # noqa: BLE001  (the other calls have run, and keep their results)
        return ""


def reason_of(error: BaseException) -> str:
    """Return what the model reads of an exception that a tool returned."""
    if isinstance(error, KeyError) and error.args:  # whose text is the key alone
        return f"KeyError: {error}"
    return text_of_error(error) or type(error).__name__


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
    kind, _, text = last_lines.partition(": ")
    if kind.rstrip(":") == _FAILED_RESULT:
        return without_halves(text)
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
        options = getattr(settings.adapter, "options", None)
        wants_traceback = getattr(options, "tool_errors", "message") != "message"
        if wants_traceback or not keeps_trajectory(innermost_module()):
            raise
        _LOG.debug("a tool failed", exc_info=error)
        # An exception of which Python formats the type's name and the message alone.
        kind = type(error).__name__
        text = text_of_error(error)
        if isinstance(error, FailedResult):
            kind, text = text.replace("\0", ""), ""

        def show(_: BaseException) -> str:
            return text

        no_value = property(lambda _: None, lambda _, __: None)
        names: dict[str, Any] = dict.fromkeys(("__traceback__", "__cause__", "__context__"), no_value)
        names |= {"__module__": "builtins", "__str__": show}
        raise type(kind, (Exception,), names) from None


_SELDOM = ("altered", "note", "error_type", "blocks")


class _AnyCall(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str | None: ...


class ToolResult(OwnErrors):
    """The result of one call.

    Args:
        call_id: the id of the call that it answers.
        name: the tool's name.
        value: text, or any value that has a JSON form; also images, files and audio (DSPy's types, an MCP
            result, MCP content blocks), alone, in a list, or anywhere inside. These are kept as plain data.
            Of what a tool returned, a copy is kept, as of the return.
        is_error: whether the call failed; `value` is then the reason.
        is_mcp: whether `value` is the content of an MCP result, which Gemini gets under the key `output`.
        is_content: whether `value` is content as plain data, in the form of `content.py`. It is set by itself
            for values with images, files or audio.
        altered: what of the value JSON cannot hold: `text` for what was read as its text (bytes, an object),
            `null` for NaN or an infinite number, which was read as null, `unicode` for half of a surrogate
            pair, which was read as U+FFFD.
        note: what the model reads after the value, such as that a person edited the call.
        error_type: the type of the exception that failed the call, such as `KeyError`. None if a server or a
            tool said that it failed: the type is never read out of a text.
        blocks: content blocks in the provider's own words, sent inside the result behind its value, such as a
            file of the account. Nothing in a value becomes such a block, because anybody may have written it.
            They are put into `value`, and this is None afterwards.

    Raises:
        InvalidHistory: `unreadable_history`, for a field of another type, or if `is_content` is true and
            `value` is not content, or if `blocks` is not a list of objects.

    Example:
        >>> ToolResult(call_id="call_1", name="search", value="No network.", is_error=True).value
        'No network.'
    """

    call_id: str
    name: str
    value: Any
    is_error: bool = False
    is_mcp: bool = False
    is_content: bool = False
    altered: tuple[str, ...] = ()
    note: str | None = None
    error_type: str | None = None
    blocks: list[dict[str, Any]] | None = pydantic.Field(default=None, repr=False)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _as_plain_data(cls, data: Any) -> Any:
        if not is_object(data):
            return data
        value = without_halves(in_order_of(data.get("value"), data.get("text")))
        blocks: object = data.get("blocks")
        data = {**data, "value": value}
        if blocks is not None:
            if not is_array(blocks) or not all(map(is_object, blocks)):
                raise ValueError("blocks are a list of objects")
            own_parts = value if data.get("is_content") else content_of(value) or as_content(value)
            block_parts = [{"type": "block", "value": without_halves(block)} for block in blocks]
            data |= {"value": [*own_parts, *block_parts], "is_content": True, "blocks": None}
            return data
        if data.get("is_content"):
            if not is_content(value):
                raise ValueError("the value of a result is not content, although it says so")
            return data
        parts = content_of(value)
        if parts is not None:
            data |= {"value": parts, "is_content": True}
        output = output_of(value)
        if output is not None:
            if parts is None:
                data["value"] = json_of(output.parts)
            data |= {"is_error": data.get("is_error") or output.failed, "is_mcp": output.is_mcp}
        return data

    @pydantic.model_serializer()
    def _save(self) -> dict[str, Any]:
        text = order_of(self.value)
        fields = {key: part for key, part in vars(self).items() if key not in _SELDOM}
        fields |= {key: part for key in ("altered", "note", "error_type") if (part := getattr(self, key))}
        return fields if text is None else {**fields, "text": text}

    @classmethod
    def unanswered(cls, call: _AnyCall) -> "ToolResult":
        """Return a failed result for a call that was not run: providers refuse a call without a result.

        Example:
            >>> from sigadapt import ToolCall
            >>> ToolResult.unanswered(ToolCall(id="call_1", name="search", args={})).is_error
            True
        """
        return cls.failed(call, "This call was not answered.")

    @classmethod
    def failed(cls, call: _AnyCall, reason: str, error: BaseException | None = None) -> "ToolResult":
        """Return the result of a call that failed, for the reason that the model reads.

        Args:
            call: the call that failed.
            reason: what the model reads.
            error: the exception that was caught, if one was; the result has its type.

        Example:
            >>> from sigadapt import ToolCall
            >>> ToolResult.failed(ToolCall(id="call_1", name="search", args={}), "No network.").value
            'No network.'
        """
        name = call.name or "unnamed"
        kind = type_of_error(error)
        return cls(call_id=call.id, name=name, value=reason, is_error=True, error_type=kind)


def failure_in(value: object) -> Exception | None:
    """Return why a call failed that gave this value; None for a value that is no failure."""
    if isinstance(value, NotedValue):
        value = value.value
    if isinstance(value, Exception):
        return value
    if output_of(value) is not None:
        value = ToolResult(call_id="", name="", value=value)
    if isinstance(value, ToolResult) and value.is_error:
        return FailedResult(value_for_agent(value), value.error_type)
    return None


def value_for_agent(result: ToolResult) -> Any:
    """Return the value of a result as DSPy's agents keep it, whose records have no place for a note."""
    value = for_agent(result.value) if result.is_content else result.value
    return value if result.note is None else with_note(value, result.note)


def agent_result(result: ToolResult) -> dspy.ToolCallResults.ToolCallResult:
    """Return a result as DSPy's agents keep it."""
    return dspy.ToolCallResults.ToolCallResult(
        call_id=result.call_id,
        name=result.name,
        value=value_for_agent(result),
        is_error=result.is_error,
    )


def with_note(value: Any, note: str) -> Any:
    """Return a value with a note, as DSPy's agents keep it."""
    if isinstance(value, str):
        return f"{value}\n\n{note}"
    if is_array(value) and any(isinstance(item, dspy.Type) for item in value):  # content, in order
        return [*value, note]
    return {"result": value, "note": note}
