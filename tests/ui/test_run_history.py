"""What a run adds to the model's history: whose turn an event is, and nothing twice."""

from typing import Any

import pytest
from pydantic_core import from_json

from sigadapt.ui.log.chat import Chat, ChatTurn, RunUnderWay
from sigadapt.ui.run.run_history import RunHistory


def chat_of(*turns: tuple[str, list[Any]]) -> Chat:
    """A chat whose last turn runs."""
    chat = Chat()
    chat.turns = [ChatTurn(n, f"m{n}", text, events=events) for n, (text, events) in enumerate(turns, 1)]
    chat.run = RunUnderWay(len(turns))
    return chat


def rows_of(rows: list[Any]) -> list[Any]:
    return [from_json(row) if isinstance(row, str) else row for row in rows]


def test_a_turn_begins_with_its_message_though_the_program_changed_earlier_ones() -> None:
    """chats: A turn is its own"""
    chat = chat_of(("one", [{"question": "one"}]), ("two", [{"question": "two"}]), ("three", []))
    last = [{"question": "three", "calls": "some"}, {"answer": "3"}]
    events = [{"question": "two", "answer": "in short"}, *last]
    assert rows_of(RunHistory(chat, "question").whole(events)) == [
        {"type": "base", "events": events[:1]},
        {"type": "round", "at": 0, "event": last[0]},
        {"type": "round", "at": 1, "event": last[1]},
    ]


EARLIER = [{"question": "pay", "answer": "paid once"}]
LAST = [{"question": "pay", "answer": "paid twice"}]


@pytest.mark.parametrize(
    ("events", "base"),
    [
        (LAST, []),
        ([*EARLIER, *LAST], None),
        ([{"question": "pay", "answer": "in short"}, *LAST], [{"question": "pay", "answer": "in short"}]),
    ],
)
def test_a_turn_of_the_words_of_the_one_before_keeps_its_events(events: list[Any], base: Any) -> None:
    """chats: A turn is its own"""
    rows = rows_of(RunHistory(chat_of(("pay", EARLIER), ("pay", [])), "question").whole(events))
    bases = [] if base is None else [{"type": "base", "events": base}]
    assert rows == [*bases, {"type": "round", "at": 0, "event": LAST[0]}]


def test_nothing_is_written_twice() -> None:
    history = RunHistory(chat_of(("go", [])), "question")
    one: Any = {"question": "go", "calls": "c1"}
    two: Any = {"calls": "c2"}
    assert rows_of(history.asked([one])) == [{"type": "asked", "at": 0, "event": one}]
    done = {**one, "results": "r1"}
    assert rows_of(history.asked([done, two])) == [
        {"type": "round", "at": 0, "event": done},
        {"type": "asked", "at": 1, "event": two},
    ]
    history.leave_out_asked()
    assert history.grown([done]) == []
    assert history.whole([done]) == []
