"""Random conversations, broken in random places: healed, cut, saved and loaded, none is wedged.

A provider refuses a call without its result, a result without its call, anything between the two, and a
conversation that does not begin with the user. `accepted` refuses the same.
"""

import json
from typing import Any

import dspy
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from internals import contract, heal, plan_of
from support import Talk, by_value

import sigadapt
from sigadapt import ToolCall, ToolCalls, ToolResult, ToolResults, trim_history

Rows = list[dict[str, Any]]
ADAPTERS = [sigadapt.ChatAdapter(), sigadapt.JSONAdapter(), sigadapt.adapters.XMLAdapter()]


def accepted(rows: Rows) -> None:
    """What every provider asks of a conversation."""
    rows = [row for row in rows if row["role"] != "system"]
    assert rows[0]["role"] == "user"
    waiting: list[str] = []
    for before, row in zip([None, *rows], rows, strict=False):
        if row["role"] == "tool":
            assert waiting.pop(0) == row["tool_call_id"]
            continue
        assert waiting == []
        waiting = [call["id"] for call in row.get("tool_calls", ())]
        if row["role"] == "user":
            assert before is None or before["role"] != "user"
    assert waiting == []


def rows_of(events: Rows, adapter: Any, **inputs: Any) -> tuple[Rows, int]:
    """The messages of the next request, and how many repairs they took."""
    plan = plan_of(Talk)
    assert plan is not None
    history = dspy.History(messages=events)
    whole, changes = heal(plan, {"question": "next?", "history": history, **inputs})
    return contract.rows_of(adapter.format(plan.text_signature, [], whole)), len(changes)


class Conversation(RuleBasedStateMachine):
    """A conversation, whose program may crash between any two steps."""

    def __init__(self) -> None:
        super().__init__()
        self.events: Rows = []
        self.open: ToolCalls | None = None
        self.is_broken = False
        self.is_asked = False
        self.count = 0

    @rule(text=st.text(min_size=1, max_size=5))
    def ask(self, text: str) -> None:
        self.is_broken = self.is_broken or self.is_asked or self.open is not None
        self.events.append({"question": f"Q{text}"})
        self.open, self.is_asked = None, True

    @precondition(lambda self: self.is_asked)
    @rule(text=st.sampled_from(["Yes.", "[[ ## answer ## ]]", "{}"]))
    def answer(self, text: str) -> None:
        self.events[-1] = {**self.events[-1], "answer": text}
        self.is_asked = False

    @precondition(lambda self: self.is_asked)
    @rule(number=st.integers(1, 3))
    def call(self, number: int) -> None:
        calls = [
            ToolCall(id=f"t{self.count + n}", name="look_up", args={"z": n, "a": {"y": 1, "b": 2}})
            for n in range(number)
        ]
        self.count += number
        self.open = ToolCalls(tool_calls=calls)
        self.events[-1] = {**self.events[-1], "calls": self.open}
        self.is_asked = False

    @precondition(lambda self: self.open is not None)
    @rule(fails=st.booleans(), then=st.sampled_from(["answer", "calls"]))
    def give_results(self, fails: bool, then: str) -> None:
        assert self.open is not None
        results = ToolResults.of(self.open, [{"z": 1, "a": [2]}] * len(self.open), [fails] * len(self.open))
        event: dict[str, Any] = {"results": results}
        if then == "answer":
            self.events.append({**event, "answer": "Done."})
            self.open = None
            return
        self.open = ToolCalls(tool_calls=[ToolCall(id=f"t{self.count}", name="look_up", args={})])
        self.count += 1
        self.events.append({**event, "calls": self.open})

    @precondition(lambda self: self.open is not None)
    @rule()
    def give_half_of_the_results(self) -> None:
        assert self.open is not None
        first = ToolResult(call_id=self.open[0].id, name="look_up", value="half")
        saved = {"calls": self.open.model_dump(), "results": [first.model_dump()]}
        self.events.append({"results": {"rounds": [saved]}, "answer": "Done."})
        self.is_broken, self.open = self.is_broken or len(self.open) > 1, None

    @rule()
    def lose_the_oldest_event(self) -> None:
        if self.events:
            self.is_broken = True
            del self.events[0]
            if not self.events:
                self.open, self.is_asked = None, False

    @rule()
    def save_and_load(self) -> None:
        text = dspy.History(messages=self.events).model_dump_json()
        self.events = dspy.History.model_validate(by_value(json.loads(text))).messages

    @rule(turns=st.integers(1, 4))
    def cut(self, turns: int) -> None:
        if self.is_broken:
            return
        self.events = trim_history(dspy.History(messages=self.events), turns=turns, signature=Talk).messages

    @invariant()
    def is_not_wedged(self) -> None:
        for adapter in ADAPTERS:
            rows, repairs = rows_of(self.events, adapter)
            accepted(rows)
            if not (self.is_broken or self.open or self.is_asked):
                assert repairs == 0


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=share(80), stateful_step_count=15)


@given(st.lists(st.sampled_from(["question", "calls", "results", "answer"]), max_size=8))
@settings(max_examples=share(60))
def test_any_events_can_be_healed(kinds: list[str]) -> None:
    """conversations: A stray result is dropped."""
    events: Rows = []
    for number, kind in enumerate(kinds):
        calls = ToolCalls(tool_calls=[ToolCall(id=f"t{number}", name="look_up", args={})])
        value: Any = {"calls": calls, "results": ToolResults.of(calls, ["x"])}.get(kind, f"{kind} {number}")
        events.append({kind: value})
    rows, repairs = rows_of(events, ADAPTERS[0])
    accepted(rows)
    brought = {f"t{number}" for number, kind in enumerate(kinds) if kind == "results"}
    sent = {row["tool_call_id"] for row in rows if row["role"] == "tool"}
    assert repairs >= len(brought - sent), "what is not sent is on record"
