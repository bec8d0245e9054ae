"""A shorter history keeps its pairs and begins with a question."""

from typing import Any

import dspy
import pytest

from sigadapt import InvalidOption, ToolCall, ToolCalls, ToolResults, trim_history


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


def test_tokens_are_counted_by_a_function() -> None:
    """conversations: A history is cut before a question."""
    history = conversation(4)
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return 10

    assert len(trim_history(history, tokens=25, count=count).messages) == 6
    assert len(counted) == 3


def test_the_signature_says_what_asks() -> None:
    """conversations: A history is cut before a question."""
    events = [{"question": "Q", "answer": "A"}, {"answer": "more"}, {"question": "R", "answer": "B"}]
    history = dspy.History(messages=events)
    signature: Any = dspy.Signature("question -> answer")  # pyright: ignore[reportCallIssue]
    short = trim_history(history, turns=2, signature=signature)
    assert short.messages == events


@pytest.mark.parametrize("options", [{}, {"turns": -1}, {"turns": True}, {"characters": 1.5}, {"tokens": 5}])
def test_a_limit_that_cannot_work_is_refused(options: dict[str, Any]) -> None:
    """conversations: A history is cut before a question."""
    with pytest.raises(InvalidOption):
        trim_history(conversation(1), **options)
