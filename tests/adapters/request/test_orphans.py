"""A conversation that broke off is told, or healed on record."""

import json
from typing import Any

import pytest
from sending import Json, history, send

from sigadapt import ToolCall, ToolCalls, ToolResult, ToolResults
from sigadapt.errors import InvalidHistory

ONE = ToolCall(id="t1", name="look_up", args={"city": "Paris"})
TWO = ToolCall(id="t2", name="look_up", args={"city": "Rome"})
BOTH = ToolCalls(tool_calls=[ONE, TWO])
CRASHED = [{"question": "first?", "calls": BOTH}]
STRAY = [
    {"question": "hi", "answer": "hello"},
    {"results": ToolResults.of(ToolCalls(tool_calls=[ONE]), ["18 C"])},
]


def look_up(city: str) -> str:
    """Look something up."""
    raise AssertionError


def sent(
    events: list[Any], *, wire: str = "openai", orphans: Any = "heal", **inputs: Any
) -> tuple[Json, list[str]]:
    """The body that a history makes, and the record of what was healed."""
    given: Any = {"question": "next?", "tools": [look_up], **inputs}
    made = send(wire, history=history(*events), options={"orphans": orphans}, **given)
    return made.body, [change.why for change in made.changes if change.what == "healed"]


def roles(body: dict[str, Any]) -> list[str]:
    return [row["role"] for row in body["messages"]][1:]


def test_a_call_without_a_result_is_told() -> None:
    """conversations: Orphans are told."""
    with pytest.raises(InvalidHistory, match=r"'t1'.*ToolResult\.unanswered.*orphans='heal'"):
        sent(CRASHED, orphans="raise")


@pytest.mark.parametrize(
    "head",
    [{"calls": BOTH, "results": ToolResults.of(BOTH, ["18 C", "rain"])}, STRAY[1], {"answer": "Mild."}],
    ids=["calls", "results", "answer"],
)
def test_a_history_without_its_first_question_is_told(head: dict[str, Any]) -> None:
    """conversations: A history without its first question is told."""
    events = [head, {"question": "and?", "answer": "Dry."}]
    with pytest.raises(InvalidHistory, match=r"trim_history.*orphans='heal'") as caught:
        sent(events, orphans="raise")
    assert caught.value.code == "no_question"
    body, _ = sent(events)
    assert roles(body)[0] == "user"


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "gemini", "ollama"])
def test_a_call_without_a_result_gets_a_failed_one(wire: str) -> None:
    """conversations: A call without a result is healed."""
    body, record = sent(CRASHED, wire=wire)
    assert json.dumps(body).count("This call was not answered.") == 2
    assert [("t1" in why, "t2" in why) for why in record[:2]] == [(True, False), (False, True)]
    assert "not finished" in record[2]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (ToolResult(call_id="t9", name="look_up", value="x"), "no such call"),
        (ToolResult(call_id="t1", name="other", value="x"), "'other'"),
    ],
)
def test_a_result_of_another_call_is_dropped(result: ToolResult, reason: str) -> None:
    """conversations: A stray result is dropped."""
    calls = ToolCalls(tool_calls=[ONE])
    wrong = {"rounds": [{"calls": calls.model_dump(), "results": [result.model_dump()]}]}
    body, record = sent([{"question": "first?", "calls": calls}], question=None, results=wrong)
    assert reason in record[0]
    assert body["messages"][-1]["content"] == "ERROR: This call was not answered."


def test_a_question_that_was_never_answered_is_closed() -> None:
    """conversations: A turn that was never finished is closed."""
    body, record = sent([{"question": "first?"}, {"question": "second?"}])
    assert roles(body) == ["user", "assistant", "user", "assistant", "user"]
    assert len(record) == 2


def test_the_given_history_is_not_changed() -> None:
    """conversations: A whole conversation is not healed."""
    before = json.dumps([repr(event) for event in CRASHED])
    sent(CRASHED)
    assert json.dumps([repr(event) for event in CRASHED]) == before
