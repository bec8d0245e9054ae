"""Ids, codes and the typed objects of calls; how the calls reached a reader is of no matter here."""

import json
import pickle
from typing import Any

import pytest
from internals import (
    CutOff,
    JsonText,
    RawCall,
    Reading,
    Repeat,
    Turn,
    arguments_of,
    identity,
    typed_calls,
    with_declared_names,
    with_earlier_calls,
    with_later_calls,
)

from sigadapt import InvalidToolCall, ToolCall, ToolCalls


def typed(*calls: RawCall, text: str | None = "Let me look.", reasoning: str | None = None) -> ToolCalls:
    made = typed_calls(Reading(text, reasoning, list(calls), "tool_calls"))
    assert made is not None
    return made


IDS: dict[str, tuple[list[Any], list[str], list[int]]] = {
    "kept": (["a", "b"], ["a", "b"], []),
    "missing": ([None, None], ["call_1", "call_2"], []),
    "no text": ([3, ["a"]], ["call_1", "call_2"], []),
    "empty": (["", "a"], ["call_1", "a"], []),
    "missing, and the number is taken": (["call_2", None, None], ["call_2", "call_3", "call_4"], []),
    "missing, and the number is taken later": ([None, "call_1"], ["call_2", "call_1"], []),
    "repeated": (["a", "a", "b", "a"], ["a", "call_2", "b", "call_4"], [1, 3]),
    "repeated, and the number is taken": (["a", "a", "call_2"], ["a", "call_3", "call_2"], [1]),
}


@pytest.mark.parametrize(("sent", "ids", "renumbered"), IDS.values(), ids=IDS)
def test_ids(sent: list[Any], ids: list[str], renumbered: list[int]) -> None:
    """response-choice: A repeated id is renumbered and says so"""
    calls = typed(*[(call_id, "now", "{}") for call_id in sent])
    assert [call.id for call in calls] == ids
    assert [call.index for call in calls if call.altered == ("renumbered",)] == renumbered
    assert [call.index for call in calls if not call.altered] == [
        n for n in range(len(ids)) if n not in renumbered
    ]


def test_bad_calls_have_ids_of_their_own_too() -> None:
    """response-choice: One bad call does not cost the good ones"""
    calls = typed(("a", "now", "{}"), ("a", "now", "{"), (None, None, "{}"), ("b", "now", "{}"))
    assert [(call.id, call.index) for call in calls] == [("a", 0), ("b", 3)]
    assert [(bad.id, bad.index, bad.code) for bad in calls.invalid] == [
        ("call_2", 1, "invalid_json"),
        ("call_3", 2, "missing_name"),
    ]


ARGUMENTS: dict[str, tuple[Any, str, Any]] = {
    "text": ('{"a": 1}', '{"a": 1}', {"a": 1}),
    "no text": ("", "", {}),
    "none": (None, "", {}),
    "an object": ({"a": [1]}, '{"a":[1]}', {"a": [1]}),
    "streamed text of a decoded wire": (JsonText('{"a": 1}'), '{"a": 1}', {"a": 1}),
    "a whole text, perhaps cut": (CutOff('{"a": 1}'), '{"a": 1}', {"a": 1}),
    "half a text": (CutOff('{"a": 1'), '{"a": 1', "truncated"),
    "no text yet": (CutOff(""), "", "truncated"),
    "nothing yet": (CutOff(None), "", "truncated"),
    "an object, perhaps cut": (CutOff({"a": 1}), '{"a":1}', "truncated"),
    "half a text of a decoded wire": (CutOff(JsonText("{")), "{", "truncated"),
    "a key twice": ('{"a": 1, "a": 2}', '{"a": 1, "a": 2}', "duplicate_key"),
    "an array": ("[1]", "[1]", "not_an_object"),
    "a decoded number": (3, "3", "not_an_object"),
}


@pytest.mark.parametrize(("sent", "text", "outcome"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_are_the_object_or_the_reason(sent: Any, text: str, outcome: Any) -> None:
    """response-choice: Arguments that are no object become a tagged bad call"""
    arguments, args = arguments_of(sent)
    assert (arguments, type(arguments)) == (text, str)
    assert args == outcome if isinstance(args, dict) else args.code == outcome


@pytest.mark.parametrize("name", [None, "", 3, {"a": 1}])
@pytest.mark.parametrize("sent", ["{}", "not json", None, {"a": 1}])
def test_a_call_without_a_name(name: Any, sent: Any) -> None:
    """response-choice: A call without a name is tagged"""
    calls = typed(("a", name, sent))
    (bad,) = calls.invalid
    assert (bad.code, bad.id, bad.name, bad.arguments) == ("missing_name", "a", None, arguments_of(sent)[0])
    assert len(calls) == 0


def test_the_objects_are_those_that_validation_makes() -> None:
    """response-choice: Text and reasoning are kept beside calls"""
    made = typed(("a", "now", '{"x": 1}'), ("a", "now", {}), ("c", "now", "{"), text="Hi.", reasoning="Hm.")
    turn = Turn(text="Hi.", reasoning="Hm.")
    bad = made.invalid[0]
    validated = ToolCalls(
        tool_calls=[
            ToolCall(id="a", name="now", args={"x": 1}, arguments='{"x": 1}', index=0, turn=turn),
            ToolCall(
                id="call_2", name="now", args={}, arguments="{}", index=1, altered=("renumbered",), turn=turn
            ),
        ],
        invalid=(
            InvalidToolCall(
                id="c", name="now", arguments="{", index=2, code="invalid_json", message=bad.message
            ),
        ),
        turn=turn,
    )
    for ours, theirs in [
        (made, validated),
        (made[0], validated[0]),
        (bad, validated.invalid[0]),
        (made.turn, turn),
    ]:
        assert ours == theirs
        assert repr(ours) == repr(theirs)
        assert ours.model_dump() == theirs.model_dump()
        assert ours.model_dump_json() == theirs.model_dump_json()
        assert ours.model_copy(deep=True) == theirs
        assert pickle.loads(pickle.dumps(ours)) == theirs  # noqa: S301
        assert type(ours).model_validate(json.loads(ours.model_dump_json())) == theirs
    with pytest.raises(ValueError, match="frozen"):
        made[0].name = "other"


def test_ids_of_the_conversation_are_not_made_again() -> None:
    """response-choice: A missing id is synthesised"""
    reading = Reading(None, None, [(None, "now", "{}"), ("call_9", "now", "{}"), ("b", "now", "{")], None)
    numbered = typed_calls(reading)
    assert numbered is not None
    assert [call.id for call in numbered.in_order()] == ["call_1", "call_9", "b"]
    made = typed_calls(reading, lambda index: f"made_{index}", answered={"b", "call_9"})
    assert made is not None
    assert [(call.id, call.altered) for call in made.in_order()] == [
        ("made_0", ()),
        ("made_1", ("renumbered",)),
        ("made_2", ("renumbered",)),
    ]


def test_a_candidate_without_calls_has_none() -> None:
    """response-choice: Text and reasoning are kept beside calls"""
    assert typed_calls(Reading("Hi.", None, [], "stop")) is None


def test_what_was_said_beside_calls_is_on_each_of_them() -> None:
    """response-choice: Text and reasoning are kept beside calls"""
    state = {"dialect": "x", "blocks": [{"type": "text"}, {"type": "tool_use"}]}
    calls: list[RawCall] = [("a", "now", "{}"), ("a", "now", "{")]
    for text, reasoning, given in [
        ("Hi.", None, None),
        (None, "Hm.", None),
        (None, None, state),
        ("", None, None),
    ]:
        made = typed_calls(Reading(text, reasoning, calls, None, given))
        assert made is not None
        assert (made.text, made.reasoning) == (text, reasoning)
        assert made[0].turn is made.turn
        if given:
            assert made.turn.state == {**state, "ids": ["a", "call_2"]}
    assert "ids" not in state


def test_a_bad_call_says_what_was_sent() -> None:
    """response-choice: A call without a name is tagged"""
    (bad,) = typed(("a", None, '{"x": 1}')).invalid
    assert (bad.message, bad.path) == ('the call has no name; its arguments: {"x": 1}', None)
    (cut,) = typed(("a", "now", CutOff({"x": "y" * 200}))).invalid
    end = "y" * 118 + '"}'
    assert cut.message == f"the answer was cut off in this call: …{end} (208 characters)"


def call(call_id: str, name: str = "f", index: int = 0, **args: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, args=args, index=index)


def bad_call(call_id: str, index: int) -> InvalidToolCall:
    return InvalidToolCall(
        id=call_id, name="f", arguments="{", index=index, code="invalid_json", message="no JSON"
    )


def test_a_call_is_what_it_asks_for() -> None:
    """conversations: A reask inside a run keeps the good calls."""
    assert identity(call("1", a=1, b=[{"x": 1, "y": 2}])) == identity(call("2", b=[{"y": 2, "x": 1}], a=1))
    assert (
        len({identity(each) for each in (call("1"), call("1", "g"), call("1", a=1), call("1", a="1"))}) == 4
    )


def test_a_later_answers_calls_stand_behind_the_accepted_ones() -> None:
    """conversations: A reask inside a run keeps the good calls."""
    accepted = [call("a", x=1), call("b", x=2, index=2)]
    later = ToolCalls(tool_calls=[call("c", x=3), call("d", x=4, index=2)], invalid=(bad_call("e", 1),))
    kept, made = with_later_calls(accepted, later, 3)
    assert kept == accepted
    assert [(each.id, each.index) for each in made.in_order()] == [("c", 3), ("e", 4), ("d", 5)]
    assert made.turn.repeats == ()
    whole = with_earlier_calls(accepted, later, Turn(text="unused"), 3)
    assert [each.id for each in whole] == ["a", "b", "c", "d"]
    assert [each.id for each in whole.invalid] == ["e"]


def test_a_call_made_again_is_marked_once_and_goes_back_with_its_turn() -> None:
    """conversations: A reask inside a run keeps the good calls."""
    accepted = [call("a", x=1), call("b", x=2, index=1), call("b2", x=2, index=2)]
    turn = Turn(text="Again.")
    later = ToolCalls(
        tool_calls=[
            ToolCall(id="c", name="f", args={"x": 2}, arguments='{"x": 2}', index=0, turn=turn),
            ToolCall(id="d", name="f", args={"x": 9}, index=1, turn=turn),
            ToolCall(
                id="e", name="f", args={"x": 2}, arguments="{x: 2}", index=2, altered=("repaired",), turn=turn
            ),
        ],
        turn=turn,
    )
    kept, made = with_later_calls(accepted, later, 3)
    assert [each.altered for each in kept] == [(), ("repeated",), ()], "the first of two alike"
    assert with_later_calls(kept, later, 3)[0] == kept, "marked once"
    assert [(each.id, each.index) for each in made] == [("d", 4)]
    assert made.turn.text == "Again."
    assert list(made.turn.repeats) == [
        Repeat(id="c", name="f", arguments='{"x": 2}', index=3, of="b"),
        Repeat(id="e", name="f", arguments='{"x":2}', index=5, of="b"),
    ]
    assert made[0].turn == made.turn


def test_an_answer_without_calls_leaves_the_earlier_ones() -> None:
    """conversations: A reask inside a run keeps the good calls."""
    turn = Turn(text="Done.")
    whole = with_earlier_calls([call("a", x=1)], None, turn, 2)
    assert [each.id for each in whole] == ["a"]
    assert (whole.text, whole.invalid) == ("Done.", ())
    assert with_earlier_calls([], None, turn, 2) is None
    calls = ToolCalls([call("a")])
    assert with_earlier_calls([], calls, turn, 2) is calls


def test_declared_names_come_back_in_the_calls_that_have_an_alias() -> None:
    """request-shaping: A call by an alias comes back under the declared name."""
    calls = ToolCalls(
        tool_calls=[call("a", "f_1"), call("b", "g")],
        invalid=(bad_call("c", 2).model_copy(update={"name": "f_1"}),),
    )
    back = with_declared_names(calls, {"f.1": "f_1"})
    assert [each.name for each in back.in_order()] == ["f.1", "g", "f.1"]
    assert back[1] is calls[1]
    assert [each.name for each in calls.in_order()] == ["f_1", "g", "f_1"], "what was given is not changed"
