"""Ids, codes and the typed objects of calls; how the calls reached a reader is of no matter here."""

import json
import pickle
from typing import Any

import pytest

from sigadapt.adapters.response.typed_calls import arguments_of, typed_calls
from sigadapt.providers.provider import CutOff, JsonText, RawCall, Reading
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls, Turn


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
    assert not calls


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
