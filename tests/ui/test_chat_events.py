"""The table of a chat: which event counts in which state, and what it makes of the state."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json
from tables import table

from sigadapt.ui.log import chat_events
from sigadapt.ui.log.chat import Chat
from sigadapt.ui.log.chat_events import apply

MESSAGE = {"type": "message", "id": "m1", "text": "Hi"}
WAITS: dict[str, Any] = {"type": "waits", "run": "{}", "agent": None, "page_ids": {}}
REPLIES = {"type": "replies", "decided": {"r": None}}
STATES: dict[str, list[dict[str, Any]]] = {
    "idle": [MESSAGE, {"type": "ended", "how": "answer"}],
    "runs": [MESSAGE],
    "waits": [MESSAGE, WAITS],
    "carries_out": [MESSAGE, WAITS, REPLIES],
}
CALL: dict[str, Any] = {
    "type": "call",
    "page_id": "c1",
    "call_id": "c1",
    "name": "f",
    "input": {},
    "bad": None,
}
EVENTS: dict[str, dict[str, Any]] = table(__file__, "EVENTS")
RUNS = ("runs", "carries_out")
STAYS = {"text", "unsaid", "call", "begun", "result", "round", "base", "state", "stop"}
LEADS: dict[str, dict[str, str]] = {
    "message": {"idle": "runs"},
    "cut": {"idle": "idle"},
    "replies": {"waits": "carries_out"},
    "asked": {"runs": "runs"},
    "resolved": {"carries_out": "runs"},
    "waits": dict.fromkeys(RUNS, "waits"),
    "refused": {"carries_out": "waits"},
    "ended": dict.fromkeys(RUNS, "idle"),
    **{kind: {status: status for status in RUNS} for kind in STAYS},
}
"""By the event and the status before it: the status behind it. Elsewhere the event changes nothing."""


def chat_of(rows: list[dict[str, Any]]) -> Chat:
    chat = Chat()
    for number, row in enumerate(rows, 1):
        assert apply(chat, number, to_json(row).decode())
    return chat


def shown(chat: Chat) -> Any:
    turns = [
        (turn.number, turn.parts, turn.events, turn.asked, turn.begun, turn.decided) for turn in chat.turns
    ]
    return chat.status, str(turns), chat.base, chat.state, chat.run and chat.run.is_stopped


@pytest.mark.parametrize("status", STATES)
@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_counts_where_the_table_says(kind: str, status: str) -> None:
    """chats: A chat is a log"""
    before = [*STATES[status]]
    if kind == "result" and status in RUNS:
        before.append(CALL)
    chat = chat_of(before)
    assert chat.status == status
    earlier = shown(chat)
    assert apply(chat, len(before) + 1, to_json(EVENTS[kind]).decode())
    leads = LEADS[kind].get(status)
    assert chat.status == (leads or status)
    if leads is None:
        assert shown(chat) == earlier


def test_the_table_and_its_docstring_have_the_same_events() -> None:
    """chats: A chat is a log"""
    rows = [line.split("|")[1].strip() for line in (chat_events.__doc__ or "").splitlines() if "|" in line]
    assert [row.strip("`") for row in rows[2:]] == [*EVENTS]


@pytest.mark.parametrize(("result", "next_id"), [([], "c1"), ([EVENTS["result"]], "c1-2")])
def test_the_id_of_a_call_is_taken_when_it_has_its_result(result: list[dict[str, Any]], next_id: str) -> None:
    """chats: A chat is a log"""
    # A call that waits takes over its id when it runs.
    waits = {**WAITS, "page_ids": {"c1": "c1"}}
    assert chat_of([MESSAGE, CALL, *result, waits]).page_ids().begin("c1") == next_id


@given(st.lists(st.sampled_from([*EVENTS.values()]), max_size=30))
def test_any_log_leads_to_a_chat(rows: list[dict[str, Any]]) -> None:
    """chats: A chat is a log"""
    chat = Chat()
    for number, row in enumerate(rows, 1):
        apply(chat, number, to_json(row).decode())
    assert chat.number == len(rows)
    again = Chat()
    for number, row in enumerate(rows, 1):
        apply(again, number, to_json(row).decode())
    assert shown(again) == shown(chat)


def test_a_cut_takes_turns_from_the_page_and_the_model() -> None:
    """chats: Another answer, or other words, cut the chat"""
    ended = {"type": "ended", "how": "answer"}
    rounds = [{"type": "round", "at": 0, "event": {"question": text}} for text in ("one", "two")]
    rows = [MESSAGE, rounds[0], ended, {**MESSAGE, "id": "m2"}, rounds[1], ended]
    chat = chat_of(rows)
    assert chat.history().messages == [{"question": "one"}, {"question": "two"}]
    apply(chat, 7, '{"type":"cut","turn":4}')
    assert chat.history().messages == [{"question": "one"}]
    assert [turn.message_id for turn in chat.turns] == ["m1"]


def test_a_shortened_history_stands_before_its_turn_alone() -> None:
    """chats: A turn is its own"""
    ended = {"type": "ended", "how": "answer"}
    base = {"type": "base", "events": [{"question": "short"}]}
    rounds = [{"type": "round", "at": 0, "event": {"question": text}} for text in ("one", "two")]
    chat = chat_of([MESSAGE, rounds[0], ended, MESSAGE, base, rounds[1], ended, MESSAGE])
    assert from_json(to_json(chat.earlier_events())) == [{"question": "short"}, {"question": "two"}]
