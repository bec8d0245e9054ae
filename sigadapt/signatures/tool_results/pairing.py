"""Pairing: which of the values that a caller gives belongs to which call (results pair by id).

Rules it enforces:

 a. A plain value belongs to the good call in its place. What bears a call id belongs to that call, wherever
    it stands: a ToolResult, DSPy's ToolCallResult, and a mapping that was saved of either.
 b. Each call gets one value. An id of no call, an id twice, and a tool's name that is not the call's are
    errors that name both sides.
 c. A bad call that was kept may be given a result by its id; without one, it gets a failed result that says
    what was wrong.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeAlias

import dspy

from sigadapt.errors import InvalidHistory
from sigadapt.json_values import cut, is_iterable, is_mapping, listed, type_of
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.saved_model import in_order_of
from sigadapt.signatures.tool_results.content import is_content, refers
from sigadapt.signatures.tool_results.plain_values import plain_value, snapshot_of
from sigadapt.signatures.tool_results.tool_output import NotedValue, program_outputs
from sigadapt.signatures.tool_results.tool_result import ToolResult, reason_of, type_of_error

AnyCall: TypeAlias = ToolCall | InvalidToolCall

_MOST_NAMED = 8
_MOST_QUOTED = 4_000  # characters of an invalid call's arguments, for the model to see what it wrote
_RESULTS = (ToolResult, dspy.ToolCallResults.ToolCallResult)
_SAVED = (
    ("call_id", "value", frozenset({*ToolResult.model_fields, "text"}) - {"blocks"}),
    ("tool_call_id", "content", frozenset({"tool_call_id", "name", "content", "role"})),
)
"""The shapes of a result as a mapping, saved by `model_dump` or a chat's tool message: where the id and the
value stand, and all the keys it may have."""


class _ResultItem(NamedTuple):
    """A value, which is plain unless it says which call it answers; DSPy's result may leave that out."""

    call_id: str | None
    name: str | None
    value: Any
    is_error: bool = False
    is_mcp: bool = False
    is_content: bool = False
    altered: tuple[str, ...] = ()
    note: str | None = None
    error_type: str | None = None
    is_plain: bool = False

    def result(self, call_id: str, name: str) -> ToolResult:
        """Return it as the result of a call."""
        fields = self._replace(call_id=call_id, name=name)._asdict()
        is_plain = fields.pop("is_plain")
        result = ToolResult(**fields)
        return result.model_copy(update={"value": snapshot_of(result.value)}) if is_plain else result


def results_of(turn: ToolCalls, values: Any, errors: Any) -> Iterator[ToolResult]:
    """Yield the result of each call of a turn, good and bad, in order, from what the calls gave."""
    by_id = _by_id(turn, values, "value")
    reasons = _by_id(turn, errors, "error")
    failures = {call_id: item.value or not item.is_plain for call_id, item in reasons.items()}
    for call in turn:
        if call.id not in by_id and not failures.get(call.id):
            raise no_result_error(call)
    for call in turn.in_order():
        value = by_id.get(call.id)
        error = failures.get(call.id)
        if isinstance(call, InvalidToolCall) and not value and not error:
            yield failed_result(call)
        else:
            yield _result(call, value, error)


def result_of(call: AnyCall, value: Any) -> ToolResult:
    """Return what one call gave, or the exception that it ended in, as its result."""
    if isinstance(value, NotedValue):
        return result_of(call, value.value).model_copy(update={"note": value.note})
    if isinstance(value, ToolResult):  # the tool itself says what its value is
        update = {"call_id": call.id, "name": call.name or "unnamed", "value": snapshot_of(value.value)}
        return value.model_copy(update=update)
    return _result(call, _ResultItem(None, None, value, is_plain=True), None)


def in_order(turn: ToolCalls, results: Sequence[ToolResult]) -> tuple[ToolResult, ...]:
    """Return a turn's results in the order of its calls, good and bad, of which each has one."""
    _by_id(turn, results, "result")
    by_id = {result.call_id: result for result in results}
    for call in turn.in_order():
        if call.id not in by_id:
            raise no_result_error(call)
    return tuple(by_id[call.id] for call in turn.in_order())


def no_result_error(call: AnyCall) -> InvalidHistory:
    """Make the error that says a call has no result."""
    return InvalidHistory(
        f"call {cut(repr(call.id))} has no value",
        code="unanswered_call",
        tool=call.name,
        fix="Give one, or use ToolResult.unanswered(call). An adapter does so with orphans='heal'.",
    )


def _by_id(turn: ToolCalls, items: Any, noun: str) -> dict[str, _ResultItem]:
    """Return the values, by the id of the call that each belongs to."""
    calls: dict[str, AnyCall] = {call.id: call for call in turn.in_order()}
    by_id: dict[str, _ResultItem] = {}
    for key, item in _keyed_items(turn, calls, items, noun):
        call_id = key if item.call_id is None else item.call_id
        if call_id not in calls:
            tool = f" of {cut(repr(item.name))}" if item.name else ""
            reason = f"there is a {noun} for call {cut(repr(call_id))}{tool}, and no such call"
            raise InvalidHistory(reason, code="unknown_call", fix=_names(calls))
        _check_subject(key, item, calls[call_id], noun)
        if call_id in by_id:
            values = f"{cut(repr(by_id[call_id].value))} and {cut(repr(item.value))}"
            raise InvalidHistory(
                f"call {cut(repr(key))} is given two {noun}s: {values}",
                code="repeated_result",
                tool=calls[call_id].name,
                fix=f"Give one {noun} a call. {_names(calls)}",
            )
        by_id[call_id] = item
    return by_id


def _check_subject(key: str, item: _ResultItem, call: AnyCall, noun: str) -> None:
    """Refuse a value under the id of another call, or of another tool."""
    name = call.name or "unnamed"
    subject = f"call {cut(repr(key))}"
    if call.id != key:
        raise InvalidHistory(
            f"the {noun} for {subject} is a result of call {cut(repr(call.id))}",
            code="unknown_call",
            tool=call.name,
            fix="Put it under its own id.",
        )
    if item.name is not None and item.name != name:
        raise InvalidHistory(
            f"the {noun} for {subject} of {cut(repr(name))} is a result of tool {cut(repr(item.name))}",
            code="wrong_tool",
            tool=name,
            fix="Give the result of the call that has this id.",
        )


def _names(calls: dict[str, AnyCall]) -> str:
    if not calls:
        return "The turn's calls: none."
    names = (f"{cut(repr(call.id))} ({cut(call.name or 'unnamed')})" for call in calls.values())
    return f"The turn's calls: {listed(names, _MOST_NAMED, ', ')}."


def _keyed_items(
    turn: ToolCalls, calls: dict[str, AnyCall], items: Any, noun: str
) -> Iterable[tuple[str, _ResultItem]]:
    """Return each value, with the id that it goes by: its own, its key, or that of the call in its place."""
    if items is None:
        return []
    if is_mapping(items):
        return [(call_id, _read(item, calls)) for call_id, item in items.items()]
    if isinstance(items, dspy.ToolCallResults):
        items = items.tool_call_results
    elif isinstance(items, _RESULTS):
        items = [items]
    elif not is_iterable(items) or isinstance(items, (str, bytes, AbstractSet)):
        raise InvalidHistory(
            f"{type_of(items)} holds no {noun}s in the order of the calls",
            code="unknown_call",
            fix="Give a list with one for each call, or a mapping by call id.",
        )
    readings = [_read(item, calls) for item in items]
    if any(item.call_id is None for item in readings) and len(readings) != len(turn):
        ids = listed((cut(call.id) for call in turn), _MOST_NAMED, ", ")
        code = "unanswered_call" if len(readings) < len(turn) else "unknown_call"
        raise InvalidHistory(
            f"{len(readings)} {noun}s were given for {len(turn)} calls: {ids}",
            code=code,
            fix="Give one for each call, in order, or a mapping by call id.",
        )
    keyed: list[tuple[str, _ResultItem]] = []
    for number, item in enumerate(readings):
        key = turn[number].id if item.call_id is None else item.call_id
        keyed.append((key, item))
    return keyed


def _read(item: Any, calls: Mapping[str, AnyCall]) -> _ResultItem:
    if isinstance(item, ToolResult):
        return _ResultItem(
            **{name: getattr(item, name) for name in _ResultItem._fields if name != "is_plain"}
        )
    if isinstance(item, _RESULTS):
        value, altered = plain_value(item.value, item.name or "unnamed")
        return _ResultItem(item.call_id, item.name, value, item.is_error, altered=altered)
    if not is_mapping(item):
        return _ResultItem(None, None, item, is_plain=True)
    for id_key, value_key, keys in _SAVED:
        call_id = item.get(id_key)
        if not isinstance(call_id, str):
            continue
        if value_key in item and keys.issuperset(item):
            return _saved_result(item, call_id, item[value_key])
        if call_id in calls:  # a tool's own object, which says for which call it is
            return _ResultItem(call_id, None, item)
    return _ResultItem(None, None, item, is_plain=True)


def _saved_result(fields: Mapping[str, Any], call_id: str, value: Any) -> _ResultItem:
    """Return a result that was saved as a mapping."""
    value = in_order_of(value, fields.get("text"))
    # A tool may return such a mapping, which names no file of the account and no address.
    is_content = bool(fields.get("is_content")) and not refers(value)
    return _ResultItem(
        call_id,
        fields.get("name"),
        value,
        is_error=bool(fields.get("is_error")),
        is_mcp=bool(fields.get("is_mcp")),
        is_content=is_content,
        altered=fields.get("altered") or (),
        note=fields.get("note"),
        error_type=fields.get("error_type"),
    )


def _result(call: AnyCall, item: _ResultItem | None, error: Any) -> ToolResult:
    name = call.name or "unnamed"
    if isinstance(call, RefusedToolCall):  # a loop that is not sigadapt's own ran into it: a traceback
        return failed_result(call)
    if item is None or item.is_plain:
        value = None if item is None else item.value
        item = _plain_reading(value, error, name)
    elif error and not item.is_error:
        raise InvalidHistory(
            f"call {cut(repr(call.id))} is given a result that did not fail, {cut(repr(item.value))}, "
            f"and an error, {cut(repr(error))}",
            code="conflicting_result",
            tool=call.name,
            fix="State it once: ToolResult(..., is_error=True), or errors by call id.",
        )
    if item.is_content and not is_content(item.value):
        raise InvalidHistory(
            f"the result of call {cut(repr(call.id))} is marked as content, but is not: "
            f"{cut(repr(item.value))}",
            code="unreadable_history",
            tool=name,
            fix="Give what ToolResult.model_dump() wrote, or the value without is_content.",
        )
    return item.result(call.id, name)


def _plain_reading(value: Any, error: Any, tool: str) -> _ResultItem:
    """Return what a tool gave, or the exception or reason that it failed with."""
    value = program_outputs(value)
    altered = ()
    is_error = bool(error) or isinstance(value, BaseException)
    if not isinstance(value, BaseException):
        value, altered = plain_value(value, tool)
    if error and error is not True:
        value = error
    kind = type_of_error(value)
    if isinstance(value, BaseException):
        value = reason_of(value)
    return _ResultItem(None, None, value, is_error, altered=altered, error_type=kind, is_plain=True)


def failed_result(call: InvalidToolCall | RefusedToolCall) -> ToolResult:
    """Return the result of a bad call: what is wrong with it, for the model that made it."""
    bad = call.as_invalid() if isinstance(call, RefusedToolCall) else call
    return ToolResult.failed(bad, complaint(bad))


def unanswered(call: AnyCall) -> ToolResult:
    """Return a failed result for a call that has none: providers refuse a call without a result."""
    return failed_result(call) if isinstance(call, InvalidToolCall) else ToolResult.unanswered(call)


def complaint(call: InvalidToolCall) -> str:
    """Return what is wrong with a call, for the model that made it to read."""
    path = f" at {call.path}" if call.path else ""
    quote = f"\nYou sent: {call.arguments[:_MOST_QUOTED]}" if call.arguments else ""
    return f"{call.code}{path}: {call.message}{quote}"
