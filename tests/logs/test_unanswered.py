"""The results of a recorded request find their calls, at a cost that grows with the request."""

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import work

from sigadapt.logs import Conversation, conversation_from_request

USER = {"role": "user", "content": "q"}


def called(name: str) -> dict[str, Any]:
    return {"name": name, "arguments": "{}"}


def call(call_id: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": called("f")}


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
TURNS = st.lists(st.lists(st.tuples(IDS, NAMES), min_size=1, max_size=4), min_size=1, max_size=4)
RESULTS = st.lists(st.tuples(IDS, NAMES | st.none()), max_size=10)


def found(conversation: Conversation) -> list[str | None]:
    """The texts of the results of all calls, in the order of the calls."""
    texts: list[str | None] = []
    rows: list[Any] = [*conversation.history.messages, {"results": conversation.results}]
    for row in rows:
        for turn in row["results"].rounds if row.get("results") else ():
            texts += [None if result.is_error else str(result.value) for _, result in turn.pairs]
        texts += [None for _ in row["calls"].in_order()] if row.get("calls") else []
    return texts


@given(TURNS, RESULTS)
def test_a_result_takes_the_first_call_of_the_latest_turn(turns: Any, results: Any) -> None:
    """logs: Results find their calls."""
    messages: list[Any] = []
    for turn in turns:
        messages += [USER, said(*({**call(sent_id), "function": called(name)} for sent_id, name in turn))]
    for number, (sent_id, name) in enumerate(results):
        messages.append({"role": "tool", "tool_call_id": sent_id, "name": name, "content": f"r{number}"})
    expected: list[list[str | None]] = [[None] * len(turn) for turn in turns]
    for number, (sent_id, name) in enumerate(results):
        fits = (
            (texts, place)
            for turn, texts in zip(reversed(turns), reversed(expected), strict=True)
            for place, (original, called_name) in enumerate(turn)
            if texts[place] is None and (sent_id == original if sent_id and original else name == called_name)
        )
        for texts, place in islice(fits, 1):
            texts[place] = f"r{number}"
    conversation = conversation_from_request({"model": "m", "messages": messages})
    assert found(conversation) == [text for texts in expected for text in texts]
    lost = [change for change in conversation.changes if "which no model made" in change.why]
    answered = sum(text is not None for text in found(conversation))
    assert len(lost) == len(results) - answered
