"""ToolResults: pairing, errors, and what is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigadapt import InvalidToolCall, ToolCall, ToolCalls, ToolResult, ToolResults
from sigadapt.errors import InvalidHistory


def calls_of(count: int) -> ToolCalls:
    return ToolCalls(
        tool_calls=[ToolCall(id=f"call_{n}", name=f"tool_{n}", args={}, index=n) for n in range(count)]
    )


TWO = calls_of(2)
BAD = InvalidToolCall(
    id="call_bad", name=None, arguments='{"a":', index=1, code="truncated", message="was cut off", path="/a"
)


def told(results: ToolResults) -> list[tuple[str, str, Any, bool]]:
    return [(result.call_id, result.name, result.value, result.is_error) for result in results]


@given(
    st.integers(0, 5).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.integers(), min_size=n, max_size=n))
    )
)
def test_values_are_paired_in_order_or_by_id(given_values: tuple[int, list[int]]):
    """conversations: Values are paired with calls in order or by id."""
    count, values = given_values
    calls = calls_of(count)
    by_order = ToolResults.of(calls, values)
    by_id = ToolResults.of(calls, {f"call_{n}": values[n] for n in reversed(range(count))})
    assert by_order == by_id
    assert told(by_order) == [(f"call_{n}", f"tool_{n}", values[n], False) for n in range(count)]
    assert len(by_order) == count


@pytest.mark.parametrize(
    ("values", "errors", "expected"),
    [
        (["down", 1], [True, False], [("down", True), (1, False)]),
        (["down", 1], [True, None], [("down", True), (1, False)]),
        ([None, 1], ["down", None], [("down", True), (1, False)]),
        ([None, 1], [ValueError("down"), None], [("down", True), (1, False)]),
        ([ValueError("down"), 1], None, [("down", True), (1, False)]),
        ([KeyError(), 1], None, [("KeyError", True), (1, False)]),
        ({"call_1": 1}, {"call_0": "down"}, [("down", True), (1, False)]),
        ([1, 2], {"call_1": True}, [(1, False), (2, True)]),
    ],
)
def test_a_failure_may_be_said_in_several_ways(values: Any, errors: Any, expected: Any):
    """conversations: A failure is a flag, a reason or an exception."""
    results = ToolResults.of(TWO, values, errors=errors)
    assert [(result.value, result.is_error) for result in results] == expected


@pytest.mark.parametrize(
    ("values", "errors", "code", "named"),
    [
        ([1], None, "unanswered_call", "call_1"),
        ({"call_0": 1}, None, "unanswered_call", "call_1"),
        ({"call_0": 1}, {"call_1": None}, "unanswered_call", "call_1"),
        ([1, 2, 3], None, "unknown_call", "call_1"),
        ({"call_0": 1, "call_1": 2, "call_9": 3}, None, "unknown_call", "call_9"),
        ([1, 2], {"call_9": True}, "unknown_call", "call_9"),
        ([1, 2], [True], "unanswered_call", "call_1"),
    ],
)
def test_what_does_not_pair_is_refused(values: Any, errors: Any, code: str, named: str):
    """conversations: A call without its result is refused before the request.

    conversations: A result without its call is refused before the request.
    """
    with pytest.raises(InvalidHistory) as caught:
        ToolResults.of(TWO, values, errors=errors)
    assert caught.value.code == code
    assert named in str(caught.value)


def test_a_complaint_does_not_grow_without_bounds():
    """conversations: A kept bad call is answered with what was wrong."""
    huge = BAD.model_copy(update={"arguments": "x" * 1_000_000})
    [result] = ToolResults.of(ToolCalls(tool_calls=[], invalid=(huge,)), [])
    assert len(result.value) < 5_000


def test_a_call_can_be_marked_as_not_answered():
    """conversations: A call can be marked as not answered."""
    results = ToolResults.of(TWO, [ToolResult.unanswered(TWO[0]), 1])
    assert told(results)[0] == ("call_0", "tool_0", "This call was not answered.", True)


def test_rounds_add_up():
    """conversations: Results of several turns follow each other."""
    later = ToolCalls(tool_calls=[ToolCall(id="call_2", name="tool_2", args={})])
    both = ToolResults.of(TWO, [1, 2]) + ToolResults.of(later, [3])
    assert [result.value for result in both] == [1, 2, 3]
    assert [len(one.results) for one in both.rounds] == [2, 1]
    assert len(both) == 3
