"""Calls of this package and of DSPy that say the same are equal, in both directions and after JSON."""

from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import json_values, turn_of

from sigadapt import ToolCall, ToolCalls, choice_from_response

ARGS = {"a": 1, "b": {"c": [1.5, True, None]}}
TEXT = '{ "b": {"c": [1.5, true, null]},  "a": 1 }'


def theirs(call_id: str | None = "c1", name: str = "add", args: Any = ARGS) -> dspy.ToolCalls:
    return dspy.ToolCalls(tool_calls=[dspy.ToolCalls.ToolCall(id=call_id, name=name, args=args)])


def written(call_id: str | None = "c1", name: str = "add", args: Any = ARGS) -> ToolCalls:
    return ToolCalls([{"name": name, "args": args, **({"id": call_id} if call_id else {})}])


def in_chat_form(call_id: str | None = "c1", name: str = "add", args: str = TEXT) -> ToolCalls:
    return ToolCalls(
        [{"function": {"name": name, "arguments": args}, **({"id": call_id} if call_id else {})}]
    )


def sent(text: str | None = "I add.", arguments: str = TEXT) -> Any:
    function = {"name": "add", "arguments": arguments}
    message = {"content": text, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    return choice_from_response(body).tool_calls


SAME: list[Any] = [theirs(), theirs(None), written(), written(None), in_chat_form(), in_chat_form(None)]
OTHER: list[Any] = [
    *(make(call_id="c2") for make in (theirs, written, in_chat_form)),
    *(make(name="sum") for make in (theirs, written, in_chat_form)),
    *(make(args={**ARGS, "a": 2}) for make in (theirs, written)),
    *(make(args={**ARGS, "a": True}) for make in (theirs, written)),
    *(make(args={"a": 1}) for make in (theirs, written)),
    ToolCalls([]),
    dspy.ToolCalls(tool_calls=[]),
    ToolCalls([*written(), *written("c2")]),
    ToolCalls([*written(), {"id": "x", "function": {"name": "add", "arguments": "{"}}]),
    [ToolCall(id="c1", name="add", args=ARGS)],
    None,
]


@pytest.mark.parametrize("gold", SAME, ids=range(len(SAME)))
@pytest.mark.parametrize("got", [sent(), written(), sent(None)], ids=["sent", "written", "sent without text"])
def test_calls_that_say_the_same_are_equal(gold: Any, got: Any):
    """tool-call-outputs: Calls that say the same are equal in both directions."""
    assert gold == got
    assert got == gold
    assert not gold != got  # noqa: SIM202  (both operators)
    assert gold.tool_calls[0] == got[0]
    assert got[0] == gold.tool_calls[0]


@pytest.mark.parametrize("gold", OTHER, ids=range(len(OTHER)))
@pytest.mark.parametrize("got", [sent(), written()], ids=["sent", "written"])
def test_calls_that_differ_are_not_equal(gold: Any, got: Any):
    """tool-call-outputs: Calls that differ are not equal."""
    assert gold != got
    assert got != gold
    assert not gold == got  # noqa: SIM201  (both operators)


def test_what_models_sent_is_compared_whole():
    """tool-call-outputs: Calls that a model sent are equal only as a whole."""
    assert sent() == sent()
    assert sent() == ToolCalls.model_validate_json(sent().model_dump_json())
    assert sent() != sent(text="You add.")
    assert sent() != sent(arguments='{"a":1,"b":{"c":[1.5,true,null]}}')
    moved = sent()[0].model_copy(update={"turn": turn_of(text="Elsewhere.")})
    assert moved != sent()[0]


@given(st.text(min_size=1), st.dictionaries(st.text(), json_values))
def test_any_call_equals_dspys_of_the_same_content(name: str, args: dict[str, Any]):
    assert theirs("c1", name, args) == written("c1", name, args)
    assert written(None, name, args) == theirs("c1", name, args)
