"""Bad calls as somebody's loop gets them: they can be read, saved and sent, and fail when they are run."""

import copy
import json
import pickle
from typing import Any

import dspy
import pytest
from hypothesis import given
from support import json_values, turn_of

from sigadapt import InvalidToolCall, ToolCall, ToolCalls, ToolDecls, ToolResults
from sigadapt.errors import UnboundToolCall


def add(a: int, b: int) -> int:
    """Add."""
    raise AssertionError("a tool was executed")


def anything(**options: Any) -> None:
    """Do."""
    raise AssertionError("a tool was executed")


NAMES = ["add", "Tool(add)", "anything", "Tool(anything)"]
DECLS = ToolDecls([add, anything])
TURN = turn_of(text="I add.", reasoning="Hm.", state={"dialect": "anthropic", "items": []})


def bad(
    arguments: str, code: Any = "invalid_json", name: str | None = "add", index: int = 0
) -> InvalidToolCall:
    fields: Any = {"name": name, "arguments": arguments, "code": code, "index": index}
    return InvalidToolCall(id=f"call_{index}", message="does not fit", path="/a", **fields)


def refused(arguments: str = '{"a": "one"}', **fields: Any) -> Any:
    return ToolCalls(tool_calls=[], invalid=(bad(arguments, **fields),), turn=TURN).handed_on()[0]


@pytest.mark.parametrize("arguments", ['{"a": "one"}', "{}", "{oops", "[1]"])
@pytest.mark.parametrize("run", [add, dspy.Tool(add), anything, dspy.Tool(anything)], ids=NAMES)
def test_no_tool_can_be_run_with_them(arguments: str, run: Any):
    """conversations: A bad call fails in somebody's loop before its tool runs."""
    call = refused(arguments)
    for attempt in (
        lambda: run(**call.args),
        lambda: run(**(call.args or {})),
        lambda: run(**dict(call.args)),
        lambda: {"more": 1, **call.args},
        lambda: call.bind(DECLS),
        lambda: call.execute({"add": anything}),
    ):
        with pytest.raises(UnboundToolCall, match="does not fit") as caught:
            attempt()
        assert (caught.value.code, caught.value.path, caught.value.tool) == ("invalid_json", "/a", "add")


def test_good_and_bad_calls_keep_their_order_and_their_turn():
    good = ToolCall(id="call_1", name="add", args={"a": 1, "b": 2}, index=1, turn=TURN)
    calls = ToolCalls(tool_calls=[good], invalid=(bad("{oops"), bad("", name=None, index=2)), turn=TURN)
    handed = calls.handed_on()
    assert [(call.id, call.name, call.turn) for call in handed] == [
        ("call_0", "add", TURN),
        ("call_1", "add", TURN),
        ("call_2", "unnamed", TURN),
    ]
    assert handed[1] is good
    assert handed.invalid == ()
    assert handed.handed_on() is handed
    only_good = ToolCalls([good])
    assert only_good.handed_on() is only_good


def test_they_can_be_read():
    call = refused()
    assert (call.args["a"], call.args.get("b"), len(call.args)) == ("one", None, 1)
    assert (dict(call.args.items()), json.dumps(call.args)) == ({"a": "one"}, '{"a": "one"}')
    assert str(call) == repr(call) == '<invalid_json: add({"a": "one"})>'


@pytest.mark.parametrize("arguments", ['{"a": "one"}', "{oops"])
def test_they_survive_json_pickle_and_copies(arguments: str):
    """conversations: A bad call that was handed on is saved as one."""
    handed = ToolCalls([refused(arguments)])
    theirs = dspy.ToolCalls(tool_calls=list(handed))
    for again in (
        ToolCalls.model_validate_json(handed.model_dump_json()),
        ToolCalls.model_validate(handed.model_dump()),
        ToolCalls.model_validate_json(theirs.model_dump_json()),
        pickle.loads(pickle.dumps(handed)),  # noqa: S301  (our own)
        copy.deepcopy(handed),
    ):
        call: Any = again[0]
        assert (call.code, call.message, call.path, call.arguments) == (
            "invalid_json",
            "does not fit",
            "/a",
            arguments,
        )
        assert call.turn == TURN
        with pytest.raises(UnboundToolCall):
            add(**call.args)


@given(json_values)
def test_any_arguments_survive(value: Any):
    text = json.dumps({"a": value})
    handed = ToolCalls([refused(text)])
    again = ToolCalls.model_validate_json(handed.model_dump_json())
    assert again == handed
    assert again[0].args == handed[0].args == json.loads(text)


def test_checked_again_they_are_bad_calls():
    checked = ToolCalls([refused("{oops", name="anything")]).validated(DECLS)
    assert checked.tool_calls == []
    assert [(call.code, call.arguments) for call in checked.invalid] == [("invalid_json", "{oops")]


def test_nobody_is_asked_to_confirm_them():
    decls = ToolDecls([{"name": "add", "requires_confirmation": True}])
    assert not ToolCalls([refused()]).awaiting_confirmation(decls)


def test_results_pair_with_them():
    calls = ToolCalls([refused(), refused("{", name=None, index=1)])
    theirs = dspy.ToolCallResults.from_tool_calls_and_values(calls, ["failed", "unknown"], [True, True])
    told = [result.value for result in ToolResults.of(calls, theirs)]
    assert told[0].startswith("invalid_json at /a: does not fit"), "what is wrong, not the loop's traceback"
    assert len(told) == 2
