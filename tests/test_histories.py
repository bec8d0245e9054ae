"""A shorter history keeps its pairs and begins with a question."""

from typing import Any

import dspy
import pytest
from support import Talk, turn_of

from sigadapt import ToolCall, ToolCalls, ToolResults, trim_history
from sigadapt.errors import InvalidOption


def conversation(turns: int, *, saved: bool = False) -> dspy.History:
    """Turns of a question with calls, their results with more calls, and an answer."""
    events: list[dict[str, Any]] = []
    for number in range(turns):
        first, second = (
            ToolCalls(tool_calls=[ToolCall(id=f"t{number}{part}", name="look_up", args={"x": "y" * 50})])
            for part in "ab"
        )
        events += [
            {"question": f"Q{number}", "calls": first},
            {"results": ToolResults.of(first, ["z" * 50]), "calls": second},
            {"results": ToolResults.of(second, ["z" * 50]), "answer": f"A{number}"},
        ]
    history = dspy.History(messages=events)
    return dspy.History.model_validate_json(history.model_dump_json()) if saved else history


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 2, 9])
def test_turns_are_whole(turns: int, saved: bool) -> None:
    """conversations: A history is cut before a question."""
    history = conversation(4, saved=saved)
    short = trim_history(history, turns=turns)
    assert len(short.messages) == 3 * min(turns, 4)
    assert len(history.messages) == 12
    assert [*short.messages] == history.messages[12 - len(short.messages) :]


@pytest.mark.parametrize("most", range(0, 5000, 173))
def test_characters_are_those_of_the_json(most: int) -> None:
    """conversations: A history is cut before a question."""
    history = conversation(4)
    short = trim_history(history, characters=most)
    size = len(short.model_dump_json())
    assert not short.messages or (size <= most and "question" in short.messages[0])
    longer = trim_history(history, turns=len(short.messages) // 3 + 1)
    assert len(longer.messages) == len(short.messages) or len(longer.model_dump_json()) > most


@pytest.mark.parametrize("options", [{}, {"turns": -1}, {"turns": True}, {"characters": 1.5}, {"tokens": 5}])
def test_a_limit_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    """conversations: A history is cut before a question."""
    with pytest.raises(InvalidOption):
        trim_history(conversation(1), **options)


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("in_results", [False, True])
def test_what_stands_before_a_compaction_is_left_out_on_request(saved: bool, in_results: bool) -> None:
    """conversations: What a provider compacted is left out on request."""
    state = {
        "dialect": "anthropic",
        "blocks": [{"type": "compaction", "content": "So far."}, {"type": "tool_use"}],
    }
    turn = turn_of(state=state)
    calls = ToolCalls(tool_calls=[ToolCall(id="t9", name="look_up", args={}, turn=turn)])
    event: dict[str, Any] = {"question": "Q9", "results": ToolResults.of(calls, ["x"]), "answer": "Done."}
    events = [event] if in_results else [{"question": "Q9", "calls": calls}, {**event, "question": None}]
    history = dspy.History(messages=[*conversation(2).messages, *events, *conversation(1).messages])
    if saved:
        history = dspy.History.model_validate_json(history.model_dump_json())
    short = trim_history(history, compacted=True)
    assert short.messages[0]["question"] == "Q9"
    assert len(short.messages) == len(events) + 3
    assert len(trim_history(conversation(2), compacted=True).messages) == 6


def test_a_long_turn_is_read_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """conversations: A long history is cut in linear time."""
    made = [ToolCalls([{"id": f"c{number}", "name": "f", "args": {}}]) for number in range(200)]
    pairs = [event for calls in made for event in ({"calls": calls}, {"results": ToolResults.of(calls, [1])})]
    history = dspy.History(messages=[{"question": "q"}, *pairs])
    counted = 0
    in_order = ToolCalls.in_order

    def counting(calls: ToolCalls) -> Any:
        nonlocal counted
        counted += 1
        return in_order(calls)

    monkeypatch.setattr(ToolCalls, "in_order", counting)
    assert len(trim_history(history, turns=1).messages) == 401
    assert counted < 10 * 200


def test_in_doubt_a_turn_is_longer() -> None:
    """conversations: A history is cut before a question."""
    events = [{"question": "1", "answer": "A"}, {"question": "2"}, {"answer": "B"}]
    assert trim_history(dspy.History(messages=events), turns=1).messages == events
    asked = trim_history(dspy.History(messages=events), turns=1, signature=Talk)
    assert asked.messages == events[1:]
