"""Results find their calls by id, in whatever form and order they come, and calls have ids of their own."""

from collections.abc import Mapping
from typing import Any, cast

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import CallToolResult, TextContent

from sigadapt import InvalidToolCall, ToolCall, ToolCalls, ToolDecls, ToolResult, ToolResults
from sigadapt.errors import InvalidHistory

TheirResult = dspy.ToolCallResults.ToolCallResult
TWO = ToolCalls(
    [
        ToolCall(id="c1", name="balance", args={"who": "ann"}),
        ToolCall(id="c2", name="owner", args={"who": "bob"}),
    ]
)


def balances(count: int) -> ToolCalls:
    return ToolCalls([ToolCall(id=f"id {n}", name="balance", args={"n": n}) for n in range(count)])


def ours(call: ToolCall, value: Any) -> Any:
    return ToolResult(call_id=call.id, name=call.name, value=value)


def theirs(call: ToolCall, value: Any) -> Any:
    return TheirResult(call_id=call.id, name=call.name, value=value)


def ours_saved(call: ToolCall, value: Any) -> Any:
    return ours(call, value).model_dump()


def theirs_saved(call: ToolCall, value: Any) -> Any:
    return theirs(call, value).model_dump()


def bare(call: ToolCall, value: Any) -> Any:
    return {"call_id": call.id, "value": value}


def message(call: ToolCall, value: Any) -> Any:
    return {"role": "tool", "tool_call_id": call.id, "content": value}


FORMS = (ours, theirs, ours_saved, theirs_saved, bare, message)


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_what_bears_an_id_goes_by_it(form: Any, data: st.DataObject):
    """conversations: What bears a call id goes to that call."""
    calls = balances(data.draw(st.integers(1, 5)))
    values = {call.id: f"value of {call.id}" for call in calls}
    late = data.draw(st.permutations(list(calls)))
    results = ToolResults.of(calls, [form(call, values[call.id]) for call in late])
    assert {result.call_id: result.value for result in results} == values
    assert [result.call_id for result in results] == [call.id for call in calls], "in the calls' order"


def test_a_tools_own_object_is_a_plain_value():
    """conversations: A mapping is a result where it has a result's shape or a call's id."""
    phone: list[Any] = [{"call_id": "line 7", "seconds": 3}, {"call_id": 5, "value": 1}]
    assert [each.value for each in ToolResults.of(TWO, phone)] == phone
    own = [{"call_id": "c2", "value": "bob", "ms": 12}, {"call_id": "c1", "value": 900, "ms": 3}]
    assert [each.value for each in ToolResults.of(TWO, own)] == own[::-1]
    by_id = {"c1": own[1], "c2": own[0]}
    assert [each.value for each in ToolResults.of(TWO, by_id)] == own[::-1]
    with pytest.raises(InvalidHistory):
        ToolResults.of(TWO, {"c1": own[0], "c2": own[1]})


FOREIGN = ToolResult(call_id="zzz", name="other", value=2)
BOTH = "The turn's calls: 'c1' (balance), 'c2' (owner)."
UNORDERED = (
    "holds no values in the order of the calls. Give a list with one for each call, or a mapping by call id."
)
ORDER = "Give one for each call, in order, or a mapping by call id."
SAID: dict[str, tuple[Any, Any, str, str | None, str | tuple[str, ...]]] = {
    "a foreign id": (
        [ours(TWO[0], 1), FOREIGN], None, "unknown_call", None,
        f"there is a value for call 'zzz' of 'other', and no such call. {BOTH}",
    ),
    "a foreign key": (
        {"c1": 1, "c2": 2, "zzz": 3}, None, "unknown_call", None,
        f"there is a value for call 'zzz', and no such call. {BOTH}",
    ),
    "an error of no call": (
        [1, 2], {"zzz": "x"}, "unknown_call", None,
        f"there is a error for call 'zzz', and no such call. {BOTH}",
    ),
    "an id twice": (
        [ours(TWO[0], 1), ours(TWO[0], 2)], None, "repeated_result", "balance",
        f"tool 'balance': call 'c1' is given two values: 1 and 2. Give one value a call. {BOTH}",
    ),
    "another tool's": (
        [ToolResult(call_id="c1", name="owner", value=1), 2], None, "wrong_tool", "balance",
        ("tool 'balance': the value for call 'c1' of 'balance' is a result of tool 'owner'. "
         "Give the result of the call that has this id."),
    ),
    "under another id": (
        {"c1": ours(TWO[1], 1), "c2": 2}, None, "unknown_call", "owner",
        "tool 'owner': the value for call 'c1' is a result of call 'c2'. Put it under its own id.",
    ),
    "one without a value": (
        {"c1": 1}, None, "unanswered_call", "owner",
        ("tool 'owner': call 'c2' has no value. Give one, or use ToolResult.unanswered(call). "
         "An adapter does so with orphans='heal'."),
    ),
    "too few": ([1], None, "unanswered_call", None, f"1 values were given for 2 calls: c1, c2. {ORDER}"),
    "too many": ([1, 2, 3], None, "unknown_call", None, f"3 values were given for 2 calls: c1, c2. {ORDER}"),
    "good and failed": (
        [ours(TWO[1], 1), ours(TWO[0], 2)], {"c1": "down"}, "conflicting_result", "balance",
        ("tool 'balance': call 'c1' is given a result that did not fail, 2, and an error, 'down'. "
         "State it once: ToolResult(..., is_error=True), or errors by call id."),
    ),
    "a text": ("ab", None, "unknown_call", None, f"a str {UNORDERED}"),
    "bytes": (b"ab", None, "unknown_call", None, f"a bytes {UNORDERED}"),
    "a set": ({1, 2}, None, "unknown_call", None, f"a set {UNORDERED}"),
    "no values": (5, None, "unknown_call", None, ("int",)),
    "a foreign id, saved": (
        [{"call_id": "zzz", "value": 2}, 3], None, "unknown_call", None, ("'zzz'", "'c1'"),
    ),
    "an id twice, once by place": (
        [ours(TWO[1], 1), 2], None, "repeated_result", "owner", ("'c2'", "1", "2"),
    ),
    "another tool's, saved": (
        [{"call_id": "c1", "name": "owner", "value": 1}, 2], None, "wrong_tool", "balance", ("'owner'",),
    ),
    "another tool's, by place": (
        [TheirResult(name="owner", value=1), 2], None, "wrong_tool", "balance", ("'owner'",),
    ),
    "one, under its id": ([ours(TWO[1], 1)], None, "unanswered_call", "balance", ("'c1'",)),
    "one, without an error for the other": ({"c1": 1}, {"c2": None}, "unanswered_call", "owner", ("'c2'",)),
    "too few errors": ([1, 2], [True], "unanswered_call", None, ("c2",)),
    "good and failed, by place": (
        [ours(TWO[1], 1), ours(TWO[0], 2)], [True, None], "conflicting_result", "balance", ("'c1'",),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("values", "errors", "code", "tool", "said"), SAID.values(), ids=SAID)
def test_what_does_not_pair_is_said(values: Any, errors: Any, code: str, tool: str | None, said: Any):
    """conversations: What does not pair is refused with both sides named.
    conversations: A call without its result is refused before the request.

    conversations: A result without its call is refused before the request.
    """
    with pytest.raises(InvalidHistory) as caught:
        ToolResults.of(TWO, values, errors=errors)
    text = str(caught.value)
    assert (caught.value.code, caught.value.tool) == (code, tool)
    assert text == said if isinstance(said, str) else [each for each in said if each not in text] == []


class Silent(Exception):
    """An exception without a message."""


OUTCOMES: dict[str, tuple[Any, Any, Any, bool, bool]] = {
    "a value": (3, None, 3, False, False),
    "a value that is false": (0, None, 0, False, False),
    "a value and no error": (3, "", 3, False, False),
    "a value and no flag": (3, False, 3, False, False),
    "an exception whose name is all": (KeyError(), None, "KeyError", True, False),
    "an exception": (ValueError("down"), None, "down", True, False),
    "an exception without a message": (Silent(), None, "Silent", True, False),
    "an exception as the error": (3, ValueError("down"), "down", True, False),
    "an exception without a message as the error": (3, Silent(), "Silent", True, False),
    "a value that is the reason": ("down", True, "down", True, False),
    "an exception that is the reason": (ValueError("down"), True, "down", True, False),
    "a reason": (3, "down", "down", True, False),
    "a saved failure": ({"call_id": "c1", "value": 1, "is_error": True}, None, 1, True, False),
    "a saved failure, said again": ({"call_id": "c1", "value": 1, "is_error": True}, "x", 1, True, False),
    "a saved MCP result": ({"call_id": "c1", "value": 1, "is_mcp": True}, None, 1, False, True),
    "an MCP result": (
        CallToolResult(content=[TextContent(type="text", text="9")]), None, "9", False, True,
    ),
    "an MCP result that was read": (
        ToolResult(call_id="c1", name="balance", value=1, is_mcp=True), None, 1, False, True,
    ),
    "a saved result of a tool": ({"call_id": "c1", "name": "balance", "value": 1}, None, 1, False, False),
    "a tool's own object": (
        {"call_id": "c1", "value": 1, "ms": 3}, None, {"call_id": "c1", "value": 1, "ms": 3}, False, False,
    ),
    "a failure of DSPy's": (
        TheirResult(call_id="c1", name="balance", value=1, is_error=True), None, 1, True, False,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("value", "error", "told", "failed", "is_mcp"), OUTCOMES.values(), ids=OUTCOMES)
def test_what_a_call_gave_is_its_result(value: Any, error: Any, told: Any, failed: bool, is_mcp: bool):
    """conversations: A failure is a flag, a reason or an exception."""
    one = TWO.model_copy(update={"tool_calls": list(TWO)[:1]})
    for values, errors in (([value], [error]), ({"c1": value}, {"c1": error})):
        (result,) = ToolResults.of(one, values, errors=errors)
        assert (result.call_id, result.name) == ("c1", "balance")
        assert (result.value, result.is_error, result.is_mcp) == (told, failed, is_mcp)


@given(st.lists(st.integers(), max_size=5))
def test_values_are_paired_in_order_or_by_id(values: list[int]):
    """conversations: Values are paired with calls in order or by id."""
    calls = balances(len(values))
    by_order = ToolResults.of(calls, values)
    by_id = {call.id: value for call, value in zip(calls, values, strict=True)}
    assert by_order == ToolResults.of(calls, dict(reversed(by_id.items())))
    told = [(result.call_id, result.name, result.value, result.is_error) for result in by_order]
    assert told == [(call_id, "balance", value, False) for call_id, value in by_id.items()]
    assert len(by_order) == len(values)


def test_a_complaint_does_not_grow_without_bounds():
    """conversations: A kept bad call is answered with what was wrong."""
    flaw: Any = {"code": "truncated", "message": "was cut off", "path": "/a", "index": 1}
    huge = InvalidToolCall(id="call_bad", name=None, arguments="x" * 1_000_000, **flaw)
    [result] = ToolResults.of(ToolCalls(tool_calls=[], invalid=(huge,)), [])
    assert len(result.value) < 5_000


def test_a_call_can_be_marked_as_not_answered():
    """conversations: A call can be marked as not answered."""
    [result, _] = ToolResults.of(TWO, [ToolResult.unanswered(TWO[0]), 1])
    told = (result.call_id, result.name, result.value, result.is_error)
    assert told == ("c1", "balance", "This call was not answered.", True)


def test_rounds_add_up():
    """conversations: Results of several turns follow each other."""
    both = ToolResults.of(TWO, [1, 2]) + ToolResults.of(balances(1), [3])
    assert [result.value for result in both] == [1, 2, 3]
    assert [len(one.results) for one in both.rounds] == [2, 1]
    assert len(both) == 3


# ---- ids of calls ----

ids = st.sampled_from(["", "a", "call_1", "call_2", "call_3", "call_4", "confirm_a"]) | st.none()


@st.composite
def forms(draw: st.DrawFn) -> Any:
    """One call with some id, in any form that ToolCalls takes."""
    own = draw(ids)
    made: list[Any] = [
        {"id": own, "name": "f", "args": {}},
        {"id": own, "type": "function", "function": {"name": "f", "arguments": draw(st.sampled_from("{x"))}},
        dspy.ToolCalls.ToolCall(id=own, name="f", args={}),
        {"name": "f", "args": {}},
    ]
    if own:
        flaw: Any = {"code": "invalid_json", "message": "no JSON", "arguments": "{", "index": 0}
        made += [ToolCall(id=own, name="f", args={}), InvalidToolCall(id=own, name="f", **flaw)]
    return draw(st.sampled_from(made))


def own_id(form: Any) -> str | None:
    return cast("Mapping[str, Any]", form).get("id") if isinstance(form, Mapping) else form.id


@given(st.lists(forms(), max_size=6))
def test_calls_of_a_turn_have_ids_of_their_own(given_forms: list[Any]):
    """conversations: Calls made by hand have ids of their own."""
    calls = ToolCalls(given_forms)
    every = [*calls, *calls.invalid]
    assert len({call.id for call in every}) == len(every) == len(given_forms)
    named = [own_id(form) for form in given_forms if own_id(form)]
    assert {call.id for call in every} >= set(named), "an id that was given is kept, once"
    changed = [call for call in every if call.altered == ("renumbered",)]
    assert len(changed) == len(named) - len(set(named)), "and each repetition says so"
    assert ToolCalls.model_validate_json(calls.model_dump_json()) == calls


def test_a_request_for_confirmation_meets_no_id():
    """conversations: Calls made by hand have ids of their own."""
    decls = ToolDecls([{"name": "pay", "requires_confirmation": True}])
    calls = ToolCalls([ToolCall(id=each, name="pay", args={}) for each in ("a", "confirm_a")])
    asked = calls.awaiting_confirmation(decls)
    assert len({call.id for call in [*calls, *asked]}) == 4
    assert [request.approved() for request in asked] == list(calls)


def test_results_are_not_given_by_position():
    with pytest.raises(InvalidHistory, match=r"by position\. Give ToolResults\.of\(calls, values\)"):
        cast("Any", ToolResults)(["5 EUR", "Bob"])
