"""Pairing: which of the values that a caller gives belongs to which call (results pair by id).

Rules it enforces:

 a. A plain value belongs to the good call in its place. What bears a call id belongs to that call, wherever
    it stands: a ToolResult, DSPy's ToolCallResult, and a mapping that was saved of either.
 b. Each call gets one value. An id of no call, an id twice, and a tool's name that is not the call's are
    errors that name both sides.
 c. A bad call that was kept may be given a result by its id; without one, it gets a failed result that says
    what was wrong.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from inspect import isawaitable
from typing import Any, NamedTuple, TypeAlias

import dspy
import pydantic_core

from sigadapt.errors import InvalidHistory
from sigadapt.schemas.json_values import cut, is_iterable, is_mapping, listed, without_halves
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.sources.mcp import is_mcp_result
from sigadapt.signatures.tool_results.content import content_of, is_content
from sigadapt.signatures.tool_results.key_order import in_order_of
from sigadapt.signatures.tool_results.tool_result import ToolResult

AnyCall: TypeAlias = ToolCall | InvalidToolCall

_MOST_NAMED = 8
_MOST_QUOTED = 4_000  # characters of an invalid call's arguments, for the model to see what it wrote
_RESULTS = (ToolResult, dspy.ToolCallResults.ToolCallResult)
_SAVED = (
    ("call_id", "value", frozenset({"call_id", "name", "value", "is_error", "is_mcp", "is_content", "text"})),
    ("tool_call_id", "content", frozenset({"tool_call_id", "name", "content", "role"})),
)
"""The shapes of a result as a mapping, saved by `model_dump` or a chat's tool message: where the id and the
value stand, and all the keys it may have."""


class _Bearing(NamedTuple):
    """A value that says which call it answers; `call_id` is None where DSPy's result says nothing."""

    call_id: str | None
    name: str | None
    value: Any
    is_error: bool = False
    is_mcp: bool = False
    is_content: bool = False


def results_by_id(turn: ToolCalls, values: Any, errors: Any = None) -> dict[str, ToolResult]:
    """Pair a turn's calls with what they gave.

    Raises:
        InvalidHistory: for what does not pair.
    """
    calls: dict[str, AnyCall] = {call.id: call for call in turn.in_order()}
    given, reasons = _by_id(turn, calls, values, "value"), _by_id(turn, calls, errors, "error")
    for call in turn:
        if call.id not in given and not reasons.get(call.id):
            raise no_result_error(call)
    answered = (call_id for call_id in calls if call_id in given or reasons.get(call_id))
    return {each: _result(calls[each], given.get(each), reasons.get(each)) for each in answered}


def in_order(turn: ToolCalls, results: Sequence[ToolResult]) -> tuple[ToolResult, ...]:
    """Return a turn's results in the order of its calls.

    Raises:
        InvalidHistory: unless each call, good or bad, has one result, and each result a call.
    """
    calls: dict[str, AnyCall] = {call.id: call for call in turn.in_order()}
    by_id = {result.call_id: result for result in results}
    _by_id(turn, calls, results, "result")
    for call in calls.values():
        if call.id not in by_id:
            raise no_result_error(call)
    return tuple(by_id[call_id] for call_id in calls)


def no_result_error(call: AnyCall) -> InvalidHistory:
    """Make the error that says a call has no result."""
    return InvalidHistory(
        f"call {cut(repr(call.id))} has no value",
        code="unanswered_call",
        tool=call.name,
        fix="Give one, or use ToolResult.unanswered(call). An adapter does so with orphans='heal'.",
    )


def _by_id(turn: ToolCalls, calls: dict[str, AnyCall], given: Any, what: str) -> dict[str, Any]:
    """What was given, by the id of the call it belongs to."""
    found: dict[str, Any] = {}
    for call_id, item in _place(turn, calls, given, what):
        if isinstance(item, _Bearing):
            _check(item, calls, call_id, what)
        elif call_id not in calls:
            raise _unknown(call_id, None, calls, what)
        if call_id in found:
            raise InvalidHistory(
                f"call {cut(repr(call_id))} is given two {what}s: {_show(found[call_id])} and {_show(item)}",
                code="repeated_result",
                tool=calls[call_id].name,
                fix=f"Give one {what} a call. {_names(calls)}",
            )
        found[call_id] = item
    return found


def _place(turn: ToolCalls, calls: dict[str, AnyCall], given: Any, what: str) -> Iterable[tuple[str, Any]]:
    """Each thing that was given, with the id that it goes by: its own, its key, or that of its place."""
    if given is None:
        return []
    if is_mapping(given):
        return [(call_id, _bearing(item, calls) or item) for call_id, item in given.items()]
    items = [_bearing(item, calls) or item for item in _items(given, what)]
    by_place = [item for item in items if not isinstance(item, _Bearing) or item.call_id is None]
    if by_place and len(items) != len(turn):
        ids = listed((cut(call.id) for call in turn), _MOST_NAMED, ", ")
        raise InvalidHistory(
            f"{len(items)} {what}s were given for {len(turn)} calls: {ids}",
            code="unanswered_call" if len(items) < len(turn) else "unknown_call",
            fix="Give one for each call, in order, or a mapping by call id.",
        )
    return [
        (item.call_id if isinstance(item, _Bearing) and item.call_id is not None else turn[place].id, item)
        for place, item in enumerate(items)
    ]


def _items(given: object, what: str) -> list[Any]:
    if isinstance(given, dspy.ToolCallResults):
        return list(given.tool_call_results)
    if isinstance(given, _RESULTS):
        return [given]
    if not is_iterable(given) or isinstance(given, (str, bytes, AbstractSet)):
        raise InvalidHistory(
            f"a {type(given).__name__} holds no {what}s in the order of the calls",
            code="unknown_call",
            fix="Give a list with one for each call, or a mapping by call id.",
        )
    return list(given)


def _bearing(item: Any, calls: Mapping[str, AnyCall]) -> _Bearing | None:
    """The value as one that bears a call id; None for a plain one."""
    if isinstance(item, _RESULTS):
        flags = (item.is_mcp, item.is_content) if isinstance(item, ToolResult) else ()
        return _Bearing(item.call_id, item.name, item.value, item.is_error, *flags)
    if not is_mapping(item):
        return None
    for id_key, value_key, keys in _SAVED:
        call_id = item.get(id_key)
        if not isinstance(call_id, str):
            continue
        if value_key in item and keys.issuperset(item):
            flags = (bool(item.get(flag)) for flag in ("is_error", "is_mcp", "is_content"))
            value = in_order_of(item[value_key], item.get("text"))
            return _Bearing(call_id, item.get("name"), value, *flags)
        if call_id in calls:  # a tool's own object, which says for which call it is
            return _Bearing(call_id, None, item)
    return None


def _check(item: _Bearing, calls: dict[str, AnyCall], call_id: str, what: str) -> None:
    own = call_id if item.call_id is None else item.call_id
    if own not in calls:
        raise _unknown(own, item.name, calls, what)
    if own != call_id:
        raise InvalidHistory(
            f"the {what} for call {cut(repr(call_id))} is a result of call {cut(repr(own))}",
            code="unknown_call",
            tool=calls[own].name,
            fix="Put it under its own id.",
        )
    name = calls[call_id].name or "unnamed"
    if item.name is not None and item.name != name:
        raise InvalidHistory(
            f"the {what} for call {cut(repr(call_id))} of {cut(repr(name))} is a result of tool "
            f"{cut(repr(item.name))}",
            code="wrong_tool",
            tool=name,
            fix="Give the result of the call that has this id.",
        )


def _unknown(call_id: Any, name: str | None, calls: dict[str, AnyCall], what: str) -> InvalidHistory:
    tool = f" of {cut(repr(name))}" if name else ""
    return InvalidHistory(
        f"there is a {what} for call {cut(repr(call_id))}{tool}, and no such call",
        code="unknown_call",
        fix=_names(calls),
    )


def _names(calls: dict[str, AnyCall]) -> str:
    named = (f"{cut(repr(call.id))} ({cut(call.name or 'unnamed')})" for call in calls.values())
    return f"The turn's calls: {listed(named, _MOST_NAMED, ', ') if calls else 'none'}."


def _show(item: Any) -> str:
    return cut(repr(item.value if isinstance(item, _Bearing) else item))


def _result(call: AnyCall, value: Any, error: Any) -> ToolResult:
    if isinstance(call, RefusedToolCall):  # a loop that is not sigadapt's own ran into it: a traceback
        reason = complaint(call.as_invalid())
        return ToolResult(call_id=call.id, name=call.name, value=reason, is_error=True)
    if not isinstance(value, _Bearing):
        _check_sendable(call, value)
    if isinstance(error, _Bearing):
        error = error.value or True
    if isinstance(value, _Bearing) and error and not value.is_error:
        raise InvalidHistory(
            f"call {cut(repr(call.id))} is given a result that did not fail, {_show(value)}, and an error, "
            f"{cut(repr(error))}",
            code="conflicting_result",
            tool=call.name,
            fix="State it once: ToolResult(..., is_error=True), or errors by call id.",
        )
    outcome = _outcome(value, error)
    name = call.name or "unnamed"
    if outcome.is_content and not is_content(outcome.value):
        raise InvalidHistory(
            f"the result of call {cut(repr(call.id))} is marked as content, but is not: "
            f"{_show(outcome.value)}",
            code="unreadable_history",
            tool=name,
            fix="Give what ToolResult.model_dump() wrote, or the value without is_content.",
        )
    return ToolResult(
        call_id=call.id,
        name=name,
        value=outcome.value,
        is_error=outcome.is_error,
        is_mcp=outcome.is_mcp,
        is_content=outcome.is_content,
    )


def _check_sendable(call: AnyCall, value: Any) -> None:
    """Refuse what DSPy would send as the text of a Python object, such as `<coroutine object ...>`."""
    if isawaitable(value):
        reason, fix = "was not awaited", "Give what it returns: `await` it."
    elif isinstance(value, dspy.ToolCalls.ToolCall):
        reason, fix = "is a call, which nobody ran", "Give what it returns: call.execute(decls)."
    elif isinstance(value, (Iterator, AsyncIterator)):
        reason, fix = "is an iterator, whose items are not there yet", "Give a list of them."
    else:
        if value is None or isinstance(value, (str, BaseException, dspy.Type)) or is_mcp_result(value):
            return
        try:
            pydantic_core.to_jsonable_python(without_halves(value))
        except (ValueError, TypeError, RecursionError) as error:
            if content_of(value) is not None:
                return
            reason, fix = (
                f"is neither text nor JSON ({cut(str(error))})",
                "Give its text, such as str(value).",
            )
        else:
            return
    raise InvalidHistory(
        f"the result of call {cut(repr(call.id))} {reason}",
        code="unsendable_content",
        tool=call.name,
        fix=fix,
    )


def complaint(call: InvalidToolCall) -> str:
    """Return what is wrong with a call, for the model that made it to read."""
    place = f" at {call.path}" if call.path else ""
    return f"{call.code}{place}: {call.message}\nYou sent: {call.arguments[:_MOST_QUOTED]}"


def _outcome(value: Any, error: Any) -> _Bearing:
    if isinstance(value, _Bearing):
        return value
    if error is True or (not error and isinstance(value, BaseException)):
        error = value
    elif not error:
        return _Bearing(None, None, value)
    reason = error
    if isinstance(error, KeyError) and error.args:  # whose text is the key alone
        reason = f"KeyError: {error}"
    elif isinstance(error, BaseException):
        reason = str(error) or type(error).__name__
    return _Bearing(None, None, reason, is_error=True)
