"""Transcript: a history read once, as one row for each event.

Whatever sends, heals, trims, signs or shows a conversation reads these rows. An event of a `dspy.History` is
a dict by field. Any of its fields may say what the model called, and which results the event brings: those of
an earlier event's calls, or of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import dspy
import pydantic

from sigadapt.errors import InvalidHistory
from sigadapt.json_values import compact, cut, is_mapping, pointer
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.signatures.tool_results.pairing import no_result_error
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.signatures.tool_results.tool_result import message_in

_M = TypeVar("_M", bound=pydantic.BaseModel)
Event = dict[str, Any]


class Row(NamedTuple):
    """One event: what the model called in it, and the rounds that it brings."""

    event: Event
    calls: ToolCalls | None  # an empty collection has the text of an answer without calls
    rounds: list[Round]  # those of earlier calls first, those of its own calls last

    @property
    def plain(self) -> set[str]:
        """The names of the fields that hold neither calls nor results."""
        return {
            name
            for name, value in self.event.items()
            if value is not None and not collection_in({name: value}) and not rounds_in({name: value}, None)
        }


def rows_of(
    events: Iterable[Event], results_field: str | None = None, calls_field: str | None = None
) -> list[Row]:
    """Return a row for each event; what stands in the two fields may be plain JSON."""
    return [
        Row(event, collection_in(event, calls_field), rounds_in(event, results_field)) for event in events
    ]


_MAKES: dict[type[Any], str] = {ToolResults: "ToolResults.of(calls, values)", ToolCalls: "ToolCalls(calls)"}


def read(kind: type[_M], value: Any, field: str | None) -> _M:
    """Return a saved value as what it is."""
    try:
        return kind.model_validate(value)
    except (pydantic.ValidationError, TypeError, RecursionError) as error:
        raise InvalidHistory(
            f"a {kind.__name__} cannot be read from this {type(value).__name__}: {cut(_reason_of(error))}",
            code="unreadable_history",
            field=field,
            fix=f"Give {_MAKES.get(kind, kind.__name__)}, or what {kind.__name__}.model_dump() wrote.",
        ) from error


def _reason_of(error: Exception) -> str:
    if isinstance(error, pydantic.ValidationError):
        for fault in error.errors(include_url=False)[:1]:
            return f"{pointer(fault['loc'])} {fault['msg']}".strip() or str(error)
    return str(error)


def with_events(history: dspy.History, *events: Event) -> dspy.History:
    """Return a copy of a history with events of its own, and more of them: agents append to what they get."""
    return history.model_copy(update={"messages": [*map(dict, history.messages), *events]})


def without_tracebacks(history: dspy.History) -> dspy.History:
    """Return a copy of a history with the messages of failed tools, where DSPy's agents keep tracebacks."""
    events = [{name: _with_messages(value) for name, value in event.items()} for event in history.messages]
    return history.model_copy(update={"messages": events})


def _with_messages(value: Any) -> Any:
    """Return the calls of an event with the messages of those that failed; any other value as it is."""
    results = getattr(value, "tool_call_results", None)
    if not isinstance(value, dspy.ToolCalls) or results is None:
        return value
    rows: list[dspy.ToolCallResults.ToolCallResult] = []
    for row in results.tool_call_results:
        text = message_in(row.value, row.name or "unnamed") if row.is_error else row.value
        rows.append(row if text is row.value else row.model_copy(update={"value": text}))
    return value.model_copy(
        update={"tool_call_results": results.model_copy(update={"tool_call_results": rows})}
    )


def collection_in(event: Mapping[str, Any], field: str | None = None) -> ToolCalls | None:
    """Return the calls in an event; an empty collection has the text of an answer without calls."""
    for key, value in event.items():
        is_calls = isinstance(value, dspy.ToolCalls) or (isinstance(value, Mapping) and "tool_calls" in value)
        if is_calls or (key == field and value):  # an example of data has the calls as dicts
            return read(ToolCalls, value, key)
    return None


def rounds_in(event: Mapping[str, Any], field: str | None) -> list[Round]:
    """Return the rounds in an event: of its field of results, or wherever else ToolResults stand."""
    for key, value in event.items():
        if value is not None and (key == field or isinstance(value, ToolResults) or is_saved(value)):
            return list(read(ToolResults, value, key).rounds)
    return []


def is_saved(value: Any) -> bool:
    """Return whether a value is ToolResults as JSON has them, and not a user's input with such a key."""
    return is_mapping(value) and set(value) == {"rounds"} and isinstance(value["rounds"], Sequence)


def answering(calls: ToolCalls, rounds: list[Round]) -> list[Round]:
    """Take the last rounds off the list, as many as answer these calls, each of them once."""
    answers_to: list[Round] = []
    ids_so_far: set[str] = set()
    while rounds and answers(rounds[-1], calls):
        ids = {result.call_id for result in rounds[-1].results}
        if not ids_so_far.isdisjoint(ids):
            break
        ids_so_far |= ids
        answers_to.insert(0, rounds.pop())
    return answers_to


def answers(candidate: Round, calls: ToolCalls) -> bool:
    """Return whether a round is about some of these calls; servers use ids again, so names count too."""
    identities = {call.id: call_of(call) for call in calls.in_order()}
    shared = [call for call in candidate.calls.in_order() if call.id in identities]
    return bool(shared) and all(call_of(call) == identities[call.id] for call in shared)


def call_of(call: ToolCall | InvalidToolCall) -> tuple[str | None, str]:
    """Return what two calls of one id have in common if they are one."""
    return call.name, compact(call.args) if isinstance(call, ToolCall) else call.arguments


def going_on(rows: list[Row]) -> Iterator[bool]:
    """Yield of each event whether it brings results of calls that an earlier one made."""
    # An earlier call is looked up: a long turn has many, and each event would be compared with all of them.
    identities: dict[str, set[Any]] = {}
    for _, calls, rounds in rows:
        if rounds and not (calls and answers(rounds[0], calls)):
            earlier = [call for call in rounds[0].calls.in_order() if call.id in identities]
            yield bool(earlier) and all(call_of(call) in identities[call.id] for call in earlier)
        else:
            yield False
        for call in calls.in_order() if calls else ():
            identities.setdefault(call.id, set()).add(call_of(call))


def own_round(calls: ToolCalls, last: list[Round]) -> Round | None:
    """Return the calls with the results that their own event holds; None if it holds none."""
    if last:
        results = [result for turn in last for result in turn.results]
        return ToolResults.of(calls, results).rounds[0]
    if calls.tool_call_results is None:
        return None
    results = read(dspy.ToolCallResults, calls.tool_call_results, "tool_call_results")
    return ToolResults.of(calls, results).rounds[0]


def later_round(calls: ToolCalls, earlier: list[Round], later_rounds: Iterable[list[Round]]) -> Round:
    """Return the calls with the results that the next event that brings any, or the request, goes on from."""
    following = next(filter(None, later_rounds), list[Round]())
    if following and answers(following[0], calls):
        first = following.pop(0)
        ids = [call.id for call in first.calls.in_order()]
        is_whole_turn = ids == [call.id for call in calls.in_order()]
        return first if is_whole_turn else ToolResults.of(calls, first.results).rounds[0]
    if calls.tool_calls and earlier:
        foreign = next(iter(earlier[-1].results))
        waiting = calls[0]
        raise InvalidHistory(
            f"there is a result of call {cut(repr(foreign.call_id))} of {cut(repr(foreign.name))}, and "
            f"none of call {cut(repr(waiting.id))}",
            code="unknown_call",
            tool=waiting.name,
            fix="Give the results of these calls, with them or with the next event, or use orphans='heal'.",
        )
    for call in calls:
        raise no_result_error(call)
    return ToolResults.of(calls, []).rounds[0]
