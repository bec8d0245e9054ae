"""A shorter history keeps its pairs and begins with a question."""

import json
from functools import partial
from typing import Any

import dspy
import pytest
from internals import Turn
from support import Talk, lm_of

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolResults, trim_history
from sigadapt.errors import InvalidOption
from sigadapt.testing import Answer, Call, LoopbackProvider, Received


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


def agent_events(*numbers: int) -> list[dict[str, Any]]:
    """Runs as `dspy.ReActV2` writes them: results inside of calls, the question in a run's first event."""
    events: list[dict[str, Any]] = []
    for number in numbers:
        for step in range(3):
            calls = ToolCalls(tool_calls=[ToolCall(id=f"t{number}{step}", name="look_up", args={})])
            calls = calls.model_copy(
                update={"tool_call_results": dspy.ToolCallResults.from_tool_calls_and_values(calls, ["x"])}
            )
            events.append({"next_thought": "Hm.", "tool_calls": calls})
        events[-3]["question"], events[-1]["answer"] = f"Q{number}", "Done."
    return events


def test_runs_of_an_agent_are_turns() -> None:
    """conversations: A history is cut before a question."""
    short = trim_history(dspy.History(messages=agent_events(1, 2, 3)), turns=2)
    assert [event.get("question") for event in short.messages] == ["Q2", None, None, "Q3", None, None]


def test_in_doubt_a_turn_is_longer() -> None:
    """conversations: A history is cut before a question."""
    events = [{"question": "1", "answer": "A"}, {"question": "2"}, {"answer": "B"}]
    assert trim_history(dspy.History(messages=events), turns=1).messages == events
    asked = trim_history(dspy.History(messages=events), turns=1, signature=Talk)
    assert asked.messages == events[1:]


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("in_results", [False, True])
def test_what_stands_before_a_compaction_is_left_out_on_request(saved: bool, in_results: bool) -> None:
    """conversations: What a provider compacted is left out on request."""
    state = {
        "dialect": "anthropic",
        "blocks": [{"type": "compaction", "content": "So far."}, {"type": "tool_use"}],
    }
    turn = Turn(state=state)
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


def test_an_agent_s_history_is_processed_before_each_request() -> None:
    """conversations: A history is cut before a question."""
    trim = partial(trim_history, turns=1, signature=Talk)

    class Trimmed(dspy.Module):  # as `history_processor` of DSPy's pull request 10217 does
        def __init__(self, react: Any) -> None:
            super().__init__()
            self.react = react

        def forward(self, history: dspy.History, **inputs: Any) -> Any:
            # A run's first request asks; the ones after it find the question in the history.
            asks = inputs.get("question") is not None
            kept = dspy.History(messages=[]) if asks else trim(history)
            return self.react(history=kept, **inputs)

    def look_up(city: str) -> str:
        """Look something up."""
        return f"Sunny in {city}."

    def answer(received: Received) -> Answer:
        asked = json.dumps(received.body["messages"])
        if '"tool_call_id"' in asked.rpartition("Q2")[2] or ("Q1" in asked and "Sunny" in asked):
            return Answer(calls=[Call("submit", {"answer": "Done."})])
        return Answer(calls=[Call("look_up", {"city": "Paris"})])

    with LoopbackProvider(answer) as provider:
        with dspy.context(lm=lm_of(provider), adapter=sigadapt.ChatAdapter()):
            signature: Any = "question -> answer"
            agent: Any = dspy.ReActV2(signature, tools=[look_up])
            agent.react = Trimmed(agent.react)
            first = agent(question="Q1")
            second = agent(question="Q2", history=first.history)
        assert second.answer == "Done."
        sent = [json.dumps(each.body["messages"]) for each in provider.received]
    assert ["Q1" in each for each in sent] == [True, True, False, False]
    assert "Sunny" in sent[3]


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
