"""Read a history that was saved under DSPy's own adapter: its calls lost their ids, its results did not.

`dspy.ToolCalls` saves a call as its name and arguments. If a turn has as many results as calls, of the same
tools in the same order, each call gets the id of its result, and the request's record says so. Any other
turn stays as it is, and is refused for what is wrong with it.
"""

from collections.abc import Sequence
from typing import Any

import dspy

from sigadapt.adapters.plan import HistoryFields
from sigadapt.adapters.request.canonical import Change
from sigadapt.schemas.json_values import is_mapping, is_sequence


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
