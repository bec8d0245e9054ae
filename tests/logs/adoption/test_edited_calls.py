"""A call that a person edited before it ran: what is gold of it, and what a replay expects."""

# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from internals import edit_note
from logs.made_logs import REFUND, log, model, result, user

import sigadapt
from sigadapt import InputNeeded, ToolCalls, ToolDecl, ToolDecls
from sigadapt.logs import adopt, replay
from sigadapt.testing import Answer, Call, LoopbackProvider

WRONG, RIGHT = {"order": 1, "cents": 1200}, {"order": 1, "cents": 12}
EDITED = [{"code": "edited", "tool": "refund", "path": None, "count": 1}]
VALUES: dict[str, Any] = {
    "text": "Refunded.",
    "object": {"refunded": 12},
    "list": [12, "cents"],
    "content": ["Refunded.", dspy.Image("data:image/png;base64,iVBORw0KGgo=")],
}


def edited_log(value: Any) -> list[Any]:
    events = [user("Refund it"), model(None, ("k1", "refund", WRONG)), result("k1", value), model("Done.")]
    return log(events, [REFUND])


def tools_that_give(value: Any) -> list[ToolDecl]:
    def refund(order: int, cents: int) -> Any:
        """Refund an order."""
        return value

    return [ToolDecl.of(refund, requires_confirmation=True)]


class Talk(dspy.Signature):
    """Help customers."""

    question: str = dspy.InputField()
    history: dspy.History | None = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


def answer(received: Any) -> Answer:
    body = json.dumps(received.body)
    if "A person edited" not in body:
        return Answer(calls=[Call("refund", WRONG)])
    return Answer(calls=[Call("submit", {"answer": "Done."})] if '"submit"' in body else [], text="Done.")


def recorded_edit(record: Path, wire: str, value: Any, *, is_agent: bool) -> None:
    """Record an agent, or a program, one call of which a person edits."""
    tools = tools_that_give(value)
    with LoopbackProvider(answer, record=record) as provider:
        lm = dspy.LM(**provider.lm_options(wire))
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(confirm="raise")):
            program: Any = (
                sigadapt.ReAct("question -> answer", tools=tools) if is_agent else dspy.Predict(Talk)
            )
            with pytest.raises(InputNeeded) as raised:
                program(question="Refund order 1.", **({} if is_agent else {"tools": tools}))
            [asked] = raised.value.requests
            decisions = {asked.id: asked.call.model_copy(update={"args": RIGHT})}
            history = raised.value.resume(tools, decisions)
            program(history=history, **({} if is_agent else {"tools": tools, "question": "Thanks."}))


@pytest.mark.parametrize("is_agent", [True, False], ids=["agent", "program"])
@pytest.mark.parametrize("wire", ["openai", "anthropic", "gemini", "responses"])
@pytest.mark.parametrize("kind", VALUES)
def test_gold_is_what_a_person_made_of_a_call(wire: str, kind: str, is_agent: bool, tmp_path: Path) -> None:
    """logs: A call that a person edited is gold as it ran"""
    record = tmp_path / "log.jsonl"
    recorded_edit(record, wire, VALUES[kind], is_agent=is_agent)
    adopted = adopt(record)
    row = next(row for row in adopted.rows if row.calls[0]["name"] == "refund")
    assert row.calls == [{"name": "refund", "args": RIGHT}]
    assert (row.why, row.confirmed) == ("corrected", True)
    assert adopted.failures == EDITED


@pytest.mark.parametrize(
    ("value", "args"),
    [
        ("Error: the shop is closed", RIGHT),
        ('{"error": "closed"}', RIGHT),
        ("Refunded.", {"order": 1, "cents": "some"}),
        ("Refunded.", {"order": 1}),
    ],
)
def test_an_edited_call_that_was_not_right(value: str, args: Any) -> None:
    """logs: A call that a person edited is gold as it ran"""
    adopted = adopt(edited_log(f"{value}\n\n{edit_note(args)}"))
    assert (adopted.rows, adopted.failures) == ([], EDITED)


@pytest.mark.parametrize(
    "value",
    [
        edit_note(WRONG),
        f"{edit_note(RIGHT)} Really.",
        "A person edited this call before it ran. It ran with {.",
        "A person edited this call before it ran. It ran with [1].",
        json.dumps({"note": "paid", "refunded": 12}),
        json.dumps({"note": 12}),
    ],
)
def test_no_edit(value: str) -> None:
    """logs: A call that a person edited is gold as it ran"""
    adopted = adopt(edited_log(value))
    assert [(row.calls[0]["args"], row.why) for row in adopted.rows] == [(WRONG, "result")]
    assert adopted.failures == []


def test_a_correction_that_a_person_edited() -> None:
    """logs: A call that a person edited is gold as it ran"""
    events = [
        user("Refund it"),
        model(None, ("k1", "refund", {"order": 1, "cents": 9999})),
        result("k1", "Error: too much"),
        model(None, ("k2", "refund", WRONG)),
        result("k2", f"Refunded.\n\n{edit_note(RIGHT)}"),
        model("Done."),
    ]
    adopted = adopt(log(events, [REFUND]))
    assert [(row.calls[0]["args"], row.why) for row in adopted.rows] == [(RIGHT, "corrected")] * 2


@pytest.mark.parametrize("match", ["strict", "by-call"])
def test_a_replay_expects_the_edited_call(match: Any) -> None:
    """logs: A replay expects an edited call as it ran"""
    adopted = adopt(edited_log(json.dumps({"result": {"refunded": 12}, "note": edit_note(RIGHT)})))
    bodies: list[str] = []

    def call_of(args: Any) -> Any:
        def answer(received: Any) -> Answer:
            bodies.append(json.dumps(received.body))
            is_first = received.body["messages"][-1]["role"] == "user"
            return Answer(calls=[Call("refund", args)]) if is_first else Answer(text="Done.")

        return answer

    replayed: list[Any] = []
    for args in (RIGHT, WRONG):
        with LoopbackProvider(call_of(args)) as provider:
            replayed.append(replay(adopted, dspy.LM(**provider.lm_options("openai")), match=match))
    assert (replayed[0].followed, replayed[1].followed) == (1, 0)
    assert replayed[1].left[0].code == "other_arguments"
    assert replayed[1].left[0].expected == [{"name": "refund", "args": RIGHT}]
    assert "edited this call" not in "".join(bodies)
    assert any("refunded" in body for body in bodies)
