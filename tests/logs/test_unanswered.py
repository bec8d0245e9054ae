"""The results of a recorded request find their calls, at a cost that grows with the request."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigadapt import InvalidToolCall, ToolCall
from sigadapt.logs import conversation_from_request
from sigadapt.logs.unanswered import UnansweredCalls
from sigadapt.providers.wire.recorded import RecordedResult

USER = {"role": "user", "content": "q"}


def work(read: Callable[[], object]) -> int:
    """How many functions a reading calls, those in C included, which no clock disturbs."""
    count = 0

    def counted(_frame: Any, event: str, _what: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        read()
    finally:
        sys.setprofile(None)
    return count


def call(call_id: str | None) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def said(*calls: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [*calls]}


def result(call_id: str | None) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": "f", "content": "r"}


def one_turn(n: int) -> list[Any]:
    return [said(*(call(f"c{i}") for i in range(n))), *(result(f"c{i}") for i in reversed(range(n)))]


def stray_results(n: int) -> list[Any]:
    turns = [row for i in range(n) for row in (said(call(f"c{i}")), result(f"c{i}"))]
    return [*turns, *(result("none") for _ in range(n))]


def open_calls(n: int) -> list[Any]:
    turns = [row for i in range(n) for row in (said(call(f"c{i}")), USER)]
    return [*turns, *(result("none") for _ in range(n))]


def one_id(n: int) -> list[Any]:
    return [row for _ in range(n) for row in (said(call("c")), result("c"))]


def no_ids(n: int) -> list[Any]:
    return [row for _ in range(n) for row in (said(call(None)), result(None))]


def many_answers(n: int) -> list[Any]:
    return [{"role": "assistant", "content": "x"} for _ in range(n)]


@pytest.mark.parametrize("rows", [one_turn, stray_results, open_calls, one_id, no_ids, many_answers])
def test_reading_a_request_takes_linear_work(rows: Callable[[int], list[Any]]) -> None:
    """logs: A long request is read in linear time."""

    def read(n: int) -> int:
        body = {"model": "m", "messages": [USER, *rows(n)]}
        return work(lambda: conversation_from_request(body))

    read(2)
    assert read(240) < 5 * read(60)


NAMES = st.sampled_from(["f", "g"])
IDS = st.sampled_from([None, "", "a", "b", 7])
TURNS = st.lists(st.lists(st.tuples(IDS, NAMES), max_size=4), max_size=4)
RESULTS = st.lists(st.tuples(IDS, NAMES | st.none()), max_size=10)


@given(TURNS, RESULTS)
def test_a_result_takes_the_first_call_of_the_latest_turn(turns: Any, results: Any) -> None:
    """logs: Results find their calls."""
    unanswered, answered = UnansweredCalls(), list[dict[str, Any]]()
    sent: list[list[tuple[str, Any, str]]] = []
    for turn in turns:
        unanswered.begin_turn()
        answers: dict[str, Any] = {}
        answered.append(answers)
        sent.append([])
        for place, (sent_id, name) in enumerate(turn):
            made = ToolCall(id=f"{len(sent)}.{place}", name=name, args={})
            unanswered.add(made, sent_id, answers)
            sent[-1].append((made.id, sent_id, name))
    expected: list[dict[str, Any]] = [{} for _ in turns]
    for number, (sent_id, name) in enumerate(results):
        one = RecordedResult(sent_id, name, number, False, None, ())
        fits = [
            (answers, call_id)
            for turn, answers in zip(reversed(sent), reversed(expected), strict=True)
            for call_id, original, called in turn
            if call_id not in answers and (sent_id == original if sent_id and original else name == called)
        ]
        assert unanswered.answer(one) == bool(fits)
        if fits:
            fits[0][0][fits[0][1]] = one
    assert answered == expected


def test_a_bad_call_is_answered_too() -> None:
    """logs: Results find their calls."""
    unanswered, answers = UnansweredCalls(), dict[str, Any]()
    unanswered.begin_turn()
    bad = InvalidToolCall(id="c", name=None, arguments="{", index=0, code="invalid_json", message="cut")
    unanswered.add(bad, {"odd": [1]}, answers)
    assert unanswered.answer(RecordedResult({"odd": [1]}, None, "r", False, None, ()))
    assert not unanswered.answer(RecordedResult({"odd": [1]}, None, "r", False, None, ()))
    assert answers["c"].value == "r"
