"""What happened in a run: its rounds, also where calls have lost their ids, and the metric over them."""

import json
import logging
from typing import Any, cast

import dspy
import pytest
from support import serving
from tables import table

import sigadapt
from sigadapt import ToolCalls, ToolResults, metrics, rounds
from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.testing import Answer, Call

CALLS = ToolCalls(
    [{"id": f"c{n}", "name": "find", "args": {"city": c}} for n, c in enumerate(("Rome", "Oslo"))]
)
DONE = Answer(calls=[Call("submit", {"answer": "3"})])


def find(city: str) -> str:
    """Find a city."""
    if city == "Atlantis":
        raise LookupError("there is no such city")
    return f"{city} lies in Europe."


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def lived(*script: Answer, adapter: Any = None, **inputs: Any) -> Any:
    """The prediction of an agent."""
    with serving(script), dspy.context(adapter=adapter or sigadapt.ChatAdapter()):
        return cast("Any", dspy).ReActV2("question -> answer", tools=[find, add])(question="?", **inputs)


FIRST = Answer(
    text="Let me look.", calls=[Call("find", {"city": "Rome"}), Call("find", {"city": "Atlantis"})]
)
SECOND = Answer(calls=[Call("add", {"a": 1, "b": 2}), Call("add", {"a": "x", "b": 2})])


def told(source: Any) -> list[Any]:
    return [
        (
            each.text,
            [
                (call.name, str(result.value).partition(" ")[0], result.is_error)
                for call, result in each.pairs
            ],
        )
        for each in rounds(source)
    ]


def test_a_round_that_waits_is_a_round():
    """runs: A round that waits is a round."""
    [one] = rounds([{"question": "q", "calls": CALLS}])
    assert [(result.value, result.is_error) for _, result in one.pairs] == [
        ("This call was not answered.", True)
    ] * 2


def test_rounds_print_as_a_table():
    """runs: Rounds print as a table."""
    found = rounds(lived(FIRST, SECOND, DONE))
    lines = str(found).splitlines()
    assert lines[0] == "3 rounds, 5 calls, 2 failed"
    for words in (("1", "find", '{"city":"Atlantis"}', "failed"), ("2", "add", '{"a":1,"b":2}', "3")):
        assert any(all(word in line for word in words) for line in lines)
    assert "LookupError: there is no such city" in str(found)
    assert "Rome lies in Europe." in cast("Any", found)._repr_html_()
    hostile = rounds([{"question": "q", "results": ToolResults.of(CALLS, ["\x1b[8m", "\u202e"])}])
    assert "\x1b" not in str(hostile)
    assert "\u202e" not in str(hostile)


@pytest.mark.parametrize("source", [7, "no JSON", dspy.Prediction(answer="a"), None, {"answer": "a"}])
def test_what_has_no_history_is_refused(source: Any):
    """runs: What has no history is refused."""
    with pytest.raises(InvalidHistory) as caught:
        rounds(source)
    assert caught.value.code == "unreadable_history"


def of_dspys_adapter() -> dict[str, Any]:
    twice = Answer(
        calls=[Call("find", {"city": "Rome"}, id="call_x"), Call("find", {"city": "Oslo"}, id="call_y")]
    )
    theirs = dspy.ChatAdapter(use_native_function_calling=True)
    return json.loads(lived(twice, DONE, adapter=theirs).history.model_dump_json())


def test_a_history_of_dspys_adapter_goes_on(caplog: pytest.LogCaptureFixture):
    """runs: A history of DSPy's adapter goes on."""
    saved = of_dspys_adapter()
    assert "id" not in saved["messages"][0]["tool_calls"]["tool_calls"][0]
    seen: list[Any] = []

    class Sees:
        def after_choice(self, choice: Any, context: Any) -> None:
            seen.extend(context.changes)

    for options in ({}, {"orphans": "heal"}):
        with serving([DONE], hooks=[Sees()], **options) as provider:
            cast("Any", dspy).ReActV2("question -> answer", tools=[find])(history=saved, question="And now?")
            rows = provider.received[0].body["messages"]
        assert [call["id"] for call in rows[2]["tool_calls"]] == ["call_x", "call_y"]
        assert [(row["tool_call_id"], row["content"]) for row in rows[3:5]] == [
            ("call_x", "Rome lies in Europe."),
            ("call_y", "Oslo lies in Europe."),
        ]
    assert next(change.why for change in seen if change.what == "healed") == (
        "the calls of event 0 have no ids; they get those of their results, in order"
    )
    assert told(saved)[0][1] == [("find", "Rome", False), ("find", "Oslo", False)]


@pytest.mark.parametrize("spoil", ["fewer", "another tool", "one id twice"])
def test_what_does_not_pair_by_order_is_refused(spoil: str):
    """runs: What does not pair by order is refused."""
    saved = of_dspys_adapter()
    results = saved["messages"][0]["tool_calls"]["tool_call_results"]["tool_call_results"]
    if spoil == "fewer":
        results.pop()
    elif spoil == "another tool":
        results[0]["name"] = "add"
    else:
        results[0]["call_id"] = results[1]["call_id"]
    with pytest.raises(InvalidHistory):
        lived(DONE, history=saved)


GOLD = dspy.Example(question="?").with_inputs("question")


def judged(run: Any, **wanted: Any) -> tuple[float, str]:
    verdict = metrics.Trajectory(**wanted)(GOLD, run, None, "agent", [])
    return round(verdict.score, 3), verdict.feedback


@pytest.mark.parametrize(("wanted", "score", "feedback"), table(__file__, "JUDGED"), ids=str)
def test_a_run_is_judged(wanted: dict[str, Any], score: float, feedback: str):
    """runs: Order, required, forbidden, redundant and rounds are judged."""
    twice = Answer(calls=[Call("find", {"city": "Rome"}), Call("find", {"city": "Rome"})])
    run = lived(twice, SECOND, DONE)
    got, said = judged(run, **wanted)
    assert got == score
    assert feedback in said
    assert judged(run.history.model_dump_json(), **wanted) == (got, said)


def test_a_trajectory_is_a_metric_of_dspys(caplog: pytest.LogCaptureFixture):
    """runs: A trajectory is a metric of DSPy's."""
    caplog.set_level(logging.ERROR)
    run = lived(SECOND, DONE)
    metric = metrics.Trajectory(required=["add", "find"])
    assert (metric(GOLD, run), metric(GOLD, run, []), metric(GOLD, None), metric(GOLD, None, [])) == (
        0.5,
        False,
        0,
        False,
    )
    assert metrics.Trajectory(forbidden=["find"])(GOLD, None) == 0
    assert metrics.Trajectory(required=["add"])(GOLD, run, []) is True


@pytest.mark.parametrize(
    "wanted",
    [{}, {"order": "find"}, {"required": [1]}, {"rounds": -1}, {"redundant": True}, {"forbidden": 3}],
    ids=str,
)
def test_what_cannot_be_judged_by_is_refused(wanted: dict[str, Any]):
    """runs: What cannot be judged by is refused."""
    with pytest.raises(InvalidOption):
        metrics.Trajectory(**wanted)


def test_rounds_of_a_recorded_conversation() -> None:
    """runs: One view of every history."""
    use: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "now", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "noon"}
    rows: list[Any] = [
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    conversation = sigadapt.logs.conversation_from_request(
        {"model": "claude-opus-5", "max_tokens": 9, "messages": rows}
    )
    [one] = rounds(conversation)
    assert [(call.name, result.value) for call, result in one.pairs] == [("now", "noon")]
    assert sigadapt.metrics.Trajectory(required=["now"], rounds=1)(None, conversation) == 1


RESULTS = ToolResults.of(CALLS, ["ok", "no"], errors=[None, True])


def test_one_view_of_every_history():
    """runs: One view of every history."""
    out = lived(FIRST, SECOND, DONE)
    expected = [
        ("Let me look.", [("find", "Rome", False), ("find", "LookupError:", True)]),
        (None, [("add", "3", False), ("add", "schema_mismatch", True)]),
        (None, [("submit", "{'answer':", False)]),
    ]
    saved = out.history.model_dump_json()
    sources = (out, out.history, out.history.messages, out.history.model_dump(), saved, json.loads(saved))
    for source in sources:
        assert told(source) == expected
    assert len(rounds(lived(DONE, history=out.history))) == 4
    by_hand = (
        [{"question": "q", "calls": CALLS}, {"results": RESULTS, "answer": "a"}],
        [{"question": "q", "results": RESULTS, "answer": "a"}],
        [{"question": "q", "calls": CALLS, "results": RESULTS.model_dump()}],
    )
    for events in by_hand:
        [one] = rounds(events)
        assert (one.calls, one.results) == (CALLS, tuple(RESULTS))
    assert list(rounds({"messages": [{"question": "q", "answer": "a"}]})) == []
