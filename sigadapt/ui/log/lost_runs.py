"""End a run whose process has died: each of its calls gets a result that says what is known of it."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import pydantic
from pydantic_core import from_json

from sigadapt.errors import InputNeeded
from sigadapt.json_values import Json, is_array, is_object
from sigadapt.signatures.tool_results.tool_result import ToolResult
from sigadapt.turns.decisions import rejection_in
from sigadapt.turns.resumed_turn import with_results
from sigadapt.ui.log.chat import Chat, ChatTurn
from sigadapt.ui.log.chat_store import text_of

UNKNOWN_OUTCOME = (
    "It is not known whether this ran: the process that ran it has ended. Check before you run it again."
)
_NOT_RUN = "This call was not run: it had no decision when the process that ran the turn ended."


def rows_of_lost_run(chat: Chat, question: str) -> list[Json]:
    """Return the events that end the run under way.

    Args:
        chat: a chat that runs.
        question: the input that takes the user's text.
    """
    rounds = _round_of_lost_run(chat, question)
    known = {result["call_id"]: result for row in rounds for result in _results_in(row["event"])}
    unseen = [*_unseen_calls(chat, rounds)]
    open_calls = {
        part.page_id: (part.call_id, part.name) for part in chat.last.calls.values() if part.is_open
    }
    open_calls |= {row["page_id"]: (row["call_id"], row["name"]) for row in unseen}
    rows = [*rounds, *unseen]
    for page_id, (call_id, name) in open_calls.items():
        result = known.get(call_id) or {"value": UNKNOWN_OUTCOME, "is_error": True}
        kept = {"call_id": call_id, "name": name}
        kept |= {"value": result["value"], "is_error": bool(result["is_error"])}
        rows.append({"type": "result", "page_id": page_id, "result": kept})
    return [*rows, {"type": "ended", "how": "lost"}]


def _unseen_calls(chat: Chat, rounds: Iterable[Json]) -> Iterator[Json]:
    """Yield the calls that the page does not show: the process died before they were written."""
    calls = {
        call["id"]: {"name": call["name"], "input": call["args"]}
        for row in rounds
        for call in _rows_in(row["event"], "tool_calls")
    }
    seen = {part.call_id for part in chat.last.calls.values()}
    ids = chat.page_ids()
    for call_id, call in {**calls, **chat.last.begun}.items():
        if call_id not in seen:
            yield {"type": "call", "page_id": ids.begin(call_id), "call_id": call_id, **call}


def _round_of_lost_run(chat: Chat, question: str) -> list[Json]:
    """Return the event that the model's history lacks, if there is one."""
    turn = chat.last
    error = chat.error()
    if error is not None and chat.run is not None:
        event = _event_of_waiting_turn(error, chat.run.decided or {}, turn.results)
        at = len(error.history.messages) - len(chat.earlier_events())
        return [{"type": "round", "at": max(0, min(at, len(turn.events))), "event": event}]
    if turn.asked is not None:
        return [{"type": "round", "at": turn.asked, "event": _asked_event(turn, turn.events[turn.asked])}]
    if not turn.events:
        return [{"type": "round", "at": 0, "event": {question: turn.text}}]
    return []


def _asked_event(turn: ChatTurn, asked: Json) -> Json:
    """Return the event of a round with what is known of its calls."""
    event = deepcopy(asked)
    for row in _results_in(event):
        result = turn.results.get(row["call_id"])
        if result is not None:
            row |= {"value": result["value"], "is_error": result["is_error"]}
        elif row["call_id"] in turn.begun:
            row |= {"value": UNKNOWN_OUTCOME, "is_error": True}
    return event


def _event_of_waiting_turn(
    error: InputNeeded, decided: Mapping[str, str | None], results: Mapping[str, Json]
) -> Json:
    """Return the event of a turn that waited and was carried out, each call with what is known of it."""
    by_id = {result.call_id: result for result in error.results}
    by_id |= {call_id: ToolResult.model_validate(row) for call_id, row in results.items()}
    for request in error.requests:
        reason = rejection_in(request, decided.get(request.id))
        if request.id not in decided:
            by_id.setdefault(request.call.id, ToolResult.failed(request.call, _NOT_RUN))
        elif reason is not None:
            by_id.setdefault(request.call.id, ToolResult.failed(request.call, reason))
    for call in error.calls.in_order():
        by_id.setdefault(call.id, ToolResult.failed(call, UNKNOWN_OUTCOME))
    event: Json = from_json(text_of(with_results(error, by_id).messages[-1]))
    return event


def _results_in(event: Mapping[str, Any]) -> list[Json]:
    """Return the results in an event of a history, as DSPy's agents keep them."""
    for row in _members(event):
        if is_object(row.get("tool_call_results")):
            return _rows_in(row, "tool_call_results")
    return []


def _rows_in(event: Mapping[str, Any], member: str) -> list[Json]:
    """Return the rows that a value of an event has under a name."""
    for value in _members(event):
        rows = value.get(member)
        if is_array(rows):
            return rows
    return []


def _members(event: Mapping[str, Any]) -> Iterator[Json]:
    """Yield the values of an event that have members."""
    for value in event.values():
        members: Any = value.model_dump() if isinstance(value, pydantic.BaseModel) else value
        if is_object(members):
            yield members
