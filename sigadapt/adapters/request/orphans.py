"""Make a history whole: calls without the ids of their results, and, under `orphans="heal"`, a broken end.

`dspy.ToolCalls` saves a call as its name and arguments. If a turn has as many results as calls, of the same
tools in the same order, each call gets the id of its result, and the request's record says so. Any other
turn stays as it is, and is refused for what is wrong with it.

A crash between a call and its result, or a history that was cut, leaves a conversation that every provider
refuses from then on. Each repair is on the request's record (nothing silent):

 a. A call without a result gets a failed result that says so.
 b. A result of no call, a second one, and one of another tool are dropped. So is a round, calls and results,
    that answers no question: its calls were made by nobody in this history.
 c. What is before the first question is dropped, since its own question was cut off.
 d. A question that was never answered, and a healed round before a new question, are closed with a sentence.

The given history and results are not changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dspy
from dspy.signatures.signature import Signature

from sigadapt.adapters.plan import HistoryFields, Plan
from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.request.messages import refuse_strange
from sigadapt.errors import InvalidHistory
from sigadapt.json_values import cut, is_mapping, is_sequence
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.tool_results.pairing import unanswered
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.signatures.transcript import (
    Event,
    answering,
    answers,
    collection_in,
    is_saved,
    later_round,
    own_round,
    read,
    rows_of,
)

_HEALED = "sigadapt_results"  # the key under which a healed event holds its rounds

_UNFINISHED = "(This turn was not finished.)"


def heal(plan: Plan, inputs: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Change, ...]]:
    """Return the inputs with orphans healed, and what was changed."""
    healing = _Healing(plan.text_signature)
    fields = plan.history_fields
    history = inputs.get(fields.history) if fields.history else None
    results = inputs.get(fields.results) if fields.results else None
    rows = read(dspy.History, history, fields.history).messages if history is not None else []
    for event in rows:
        refuse_strange(event, plan.text_signature.model_fields, fields)
    asks = any(inputs.get(name) is not None for name in plan.text_signature.input_fields)
    events, rounds = healing.conversation([*map(dict, rows)], healing.rounds_of(results), asks=asks)
    whole = dict(inputs)
    if history is not None:
        whole[str(fields.history)] = dspy.History(messages=events)
    if results is not None:
        whole[str(fields.results)] = ToolResults(rounds=tuple(rounds)) if rounds else None
    return whole, tuple(healing.changes)


class _Healing:
    """One conversation on its way to be whole."""

    def __init__(self, signature: type[Signature]) -> None:
        self._inputs = tuple(signature.input_fields)
        self._outputs = tuple(signature.output_fields)
        self.changes: list[Change] = []

    def conversation(
        self, events: list[Event], last_rounds: list[Round], *, asks: bool
    ) -> tuple[list[Event], list[Round]]:
        """Return the events and the request's rounds, with every call answered and every result asked."""
        rounds = [*map(self._take_rounds, events), last_rounds]
        whole: list[Event] = []
        has_begun = not self._inputs  # providers want a user's message first
        is_open = False  # whether rounds of calls that no event made may follow
        loose_end = ""  # what it has left open, if a sentence has to close it before the next question
        for number, event in enumerate(events):
            collection = collection_in(event)
            calls = collection or None
            words = collection.text if collection is not None and calls is None else None
            before = rounds[number]
            has_begun = has_begun or self._asks(event)
            if not has_begun:
                self._record_dropped(event, collection, before)
                continue
            if self._asks(event):
                self._close(whole, loose_end)
                is_open = True
                loose_end = "a question that was never answered"
            last = self._last_rounds(calls, before)
            before = self._follow(before, is_open=is_open)
            if before or calls is not None:
                is_open = True
                loose_end = ""
            if words or (calls is None and any(event.get(name) is not None for name in self._outputs)):
                is_open = False
                loose_end = ""
            elif calls is not None and not last and not self._is_answered_later(calls, rounds[number + 1 :]):
                # What comes next instead of their results are results of somebody else's calls.
                last = [self._whole(calls, ())]
                is_open = False
                loose_end = "a round that was never finished"
            event_rounds = (*before, *last)
            new_event = {**event, _HEALED: ToolResults(rounds=event_rounds)} if event_rounds else event
            whole.append(new_event)
        if asks:
            self._close(whole, loose_end)
        return whole, self._follow(last_rounds, is_open=is_open or asks or not events)

    def rounds_of(self, value: Any) -> list[Round]:
        """Return the rounds of ToolResults, whole, also of saved ones that do not pair."""
        if value is None:
            return []
        if isinstance(value, ToolResults):
            return list(value.rounds)
        rounds = value.get("rounds") if is_mapping(value) else None
        if not is_sequence(rounds):
            return list(read(ToolResults, value, None).rounds)
        return [self._round_of(item) for item in rounds]

    def _round_of(self, value: object) -> Round:
        """Return an entry of ToolResults as a round; a saved one is made whole."""
        if isinstance(value, Round):
            return value
        fields: Mapping[str, Any] = value if is_mapping(value) else {}
        results = [read(ToolResult, each, None) for each in fields.get("results") or ()]
        return self._whole(read(ToolCalls, fields.get("calls"), None), results)

    def _take_rounds(self, event: Event) -> list[Round]:
        """Take the rounds out of an event, whole."""
        for key, value in list(event.items()):
            if isinstance(value, ToolResults) or is_saved(value):
                del event[key]
                return self.rounds_of(value)
        return []

    def _last_rounds(self, calls: ToolCalls | None, rounds: list[Round]) -> list[Round]:
        """Take the rounds of an event's calls off its rounds, as one; or make one of DSPy's results."""
        if calls is None:
            return []
        results = [result for each in answering(calls, rounds) for result in each.results]
        if not results and calls.tool_call_results is not None:
            # DSPy's results may have no ids: they are in the order of the calls.
            ids = iter([call.id for call in calls])
            for each in read(dspy.ToolCallResults, calls.tool_call_results, None).tool_call_results:
                call_id = next(ids, "") if each.call_id is None else each.call_id
                outcome: Any = {"value": each.value, "is_error": each.is_error}
                results.append(ToolResult(call_id=call_id, name=each.name or "", **outcome))
        return [self._whole(calls, results)] if results else []

    def _is_answered_later(self, calls: ToolCalls, later: list[list[Round]]) -> bool:
        """Return whether the next rounds are of these calls; each call that they miss is healed there."""
        following = next(filter(None, later), None)
        if following is None or not answers(following[0], calls):
            return False
        following[0] = self._whole(calls, following[0].results)
        return True

    def _follow(self, rounds: list[Round], *, is_open: bool) -> list[Round]:
        """Return the rounds, unless they follow nothing that they could answer."""
        if is_open:
            return rounds
        for result in [result for each in rounds for result in each.results]:
            self._record(f"the result of call {_show(result.call_id)} is dropped: nothing here asked for it")
        return []

    def _record_dropped(self, event: Event, calls: ToolCalls | None, rounds: list[Round]) -> None:
        """Record an event before the first question, whose beginning was cut off."""
        self._follow(rounds, is_open=False)
        for call in calls.in_order() if calls is not None else ():
            self._record(f"call {_show(call.id)} is dropped: no question is before it")
        turns = [each_round.calls for each_round in rounds] + ([calls] if calls is not None else [])
        for text in filter(None, (each.text for each in turns)):
            self._record(f"the text {_show(text)} is dropped: no question is before it")
        for name in self._outputs:
            if event.get(name) is not None:
                self._record(f"the output {name!r} is dropped: no question is before it")

    def _whole(self, calls: ToolCalls, results: Sequence[ToolResult]) -> Round:
        """Return a round with one result for each call."""
        by_id: dict[str, ToolResult] = {}
        names = {call.id: call.name or "unnamed" for call in calls.in_order()}
        for result in results:
            tool = names.get(result.call_id)
            if tool is None:
                reason = "there is no such call"
            elif result.call_id in by_id:
                reason = "the call has another"
            elif result.name not in ("", tool):
                reason = f"it is of {_show(result.name)}, and the call of {_show(tool)}"
            else:
                by_id[result.call_id] = result.model_copy(update={"name": tool})
                continue
            self._record(f"the result of call {_show(result.call_id)} is dropped: {reason}")
        for call in calls.in_order():
            if call.id not in by_id:
                by_id[call.id] = unanswered(call)
                self._record(f"call {_show(call.id)} of {_show(call.name)} gets a failed result: it had none")
        return Round(calls=calls, results=tuple(by_id[call.id] for call in calls.in_order()))

    def _asks(self, event: Event) -> bool:
        return any(event.get(name) is not None for name in self._inputs)

    def _close(self, events: list[Event], loose_end: str) -> None:
        if loose_end and self._outputs:
            events.append({self._outputs[0]: _UNFINISHED})
            self._record(f"{loose_end} is closed with {_UNFINISHED!r}")

    def _record(self, why: str) -> None:
        self.changes.append(Change("/messages", "healed", why))


def _show(text: str | None) -> str:
    return cut(repr(text))


def with_lost_ids(fields: HistoryFields, inputs: dict[str, Any]) -> tuple[dict[str, Any], tuple[Change, ...]]:
    """Return the inputs of a request with these ids in their history, and what was changed."""
    history = inputs.get(fields.history) if fields.history else None
    events: Any = history.messages if isinstance(history, dspy.History) else None
    if events is None and is_mapping(history):
        events = history.get("messages")
    if not is_sequence(events):
        return inputs, ()
    whole, changes = paired_events(events)
    if not changes:
        return inputs, ()
    return {**inputs, str(fields.history): dspy.History(messages=whole)}, changes


def paired_events(events: Sequence[Any]) -> tuple[list[Any], tuple[Change, ...]]:
    """Return the events of a history with the ids of their results on calls that have none."""
    # {"question": "?", "tool_calls": {"tool_calls": [{"name": "now", "args": {}}],
    #  "tool_call_results": {"tool_call_results": [{"call_id": "call_7", "name": "now", "value": "noon"}]}}}
    whole: list[Any] = []
    changes: list[Change] = []
    for number, event in enumerate(events):
        copy = event
        for key, value in event.items() if is_mapping(event) else ():
            calls = value.get("tool_calls") if is_mapping(value) else None
            outcome = value.get("tool_call_results") if is_mapping(value) else None
            results = outcome.get("tool_call_results") if is_mapping(outcome) else outcome
            if not (is_sequence(calls) and is_sequence(results) and calls and len(calls) == len(results)):
                continue
            pairs = [*zip(calls, results, strict=True)]
            results_ids = [result.get("call_id") for _, result in pairs if is_mapping(result)]
            ids = {call_id for call_id in results_ids if isinstance(call_id, str)}
            if len(ids) == len(calls) and all(_is_lost(*pair) for pair in pairs):
                calls_with_ids = [{**call, "id": result["call_id"]} for call, result in pairs]
                copy = {**copy, key: {**value, "tool_calls": calls_with_ids}}
                why = f"the calls of event {number} have no ids; they get those of their results, in order"
                changes.append(Change("/messages", "healed", why))
        whole.append(copy)
    return whole, tuple(changes)


def _is_lost(call: Any, result: Any) -> bool:
    """Return whether a saved call without an id and a result are of one tool."""
    return is_mapping(call) and not call.get("id") and "name" in call and call["name"] == result.get("name")


def rounds_of(events: Sequence[Any]) -> Iterator[Round]:
    """Yield the rounds of a history, the earliest first; a call without a result has one that says so."""
    rows = rows_of(paired_events(events)[0])
    for number, (_, calls, rounds) in enumerate(rows):
        last = answering(calls, rounds) if calls else []
        yield from rounds
        if not calls:
            continue
        try:
            yield own_round(calls, last) or later_round(calls, [], (row.rounds for row in rows[number + 1 :]))
        except InvalidHistory as error:
            if error.code != "unanswered_call":
                raise
            yield Round(calls=calls, results=tuple(map(unanswered, calls.in_order())))
