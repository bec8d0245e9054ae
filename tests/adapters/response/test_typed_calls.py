"""Ids, codes and the typed objects of calls, read from answers and asked for again."""

import json
import pickle
from typing import Any

import dspy
import pytest
from internals import Turn
from support import MADE_ID, Ask, May, lm_of

import sigadapt
from sigadapt import InvalidToolCall, ToolCall, ToolCallParseError, ToolCalls, ToolDecl, choice_from_response
from sigadapt.response import choice_from_stream
from sigadapt.testing import Answer, Call, LoopbackProvider, Received

Json = dict[str, Any]


def chat(*calls: tuple[Any, Any, Any], text: str | None = "Let me look.", **more: Any) -> Json:
    """A body of OpenAI's chat with calls of any id, name and arguments."""
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    message = {"role": "assistant", "content": text, "tool_calls": made, **more}
    return {"choices": [{"finish_reason": message.pop("finish", "tool_calls"), "message": message}]}


def typed(*calls: tuple[Any, Any, Any], **more: Any) -> ToolCalls:
    made = choice_from_response(chat(*calls, **more)).tool_calls
    assert made is not None
    return made


def claude(sent: Any, stop: str = "tool_use") -> Json:
    """A body of Anthropic's, on whose wire arguments are an object."""
    block = {"type": "tool_use", "id": "a", "name": "now", "input": sent}
    return {"type": "message", "role": "assistant", "content": [block], "stop_reason": stop}


def claude_stream(text: str, stop: str = "tool_use") -> str:
    """The same as a stream, which has the object as pieces of its text."""
    block: Json = {"type": "tool_use", "id": "a", "name": "now", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": text}
    events: list[Json] = [
        {"type": "message_start", "message": {"type": "message", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}},
    ]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


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
    calls = typed(*[(call_id, "now", f'{{"n":{n}}}') for n, call_id in enumerate(sent)])
    assert [call.id for call in calls] == ids
    assert [call.index for call in calls if call.altered == ("renumbered",)] == renumbered
    assert [call.index for call in calls if not call.altered] == [
        n for n in range(len(ids)) if n not in renumbered
    ]


REPEATS: dict[str, tuple[list[Any], list[Any]]] = {
    "one call twice": ([("a", "f", "{}")] * 2, [("a", ("repeated",))]),
    "three times, beside others": (
        [("a", "f", "{}"), ("b", "f", "{}"), ("a", "f", "{}"), ("a", "f", "{}"), ("c", "f", "{}")],
        [("a", ("repeated",)), ("b", ()), ("c", ())],
    ),
    "a bad one twice": ([("a", "f", "{")] * 2, [("a", ("repeated",))]),
    "other arguments": ([("a", "f", "{}"), ("a", "f", '{"n":1}')], [("a", ()), ("call_2", ("renumbered",))]),
    "another tool": ([("a", "f", "{}"), ("a", "g", "{}")], [("a", ()), ("call_2", ("renumbered",))]),
    "no id": ([(None, "f", "{}")] * 2, [("call_1", ()), ("call_2", ())]),
    "an empty id": ([("", "f", "{}")] * 2, [("call_1", ()), ("call_2", ())]),
}


@pytest.mark.parametrize("name", REPEATS)
def test_a_call_that_is_sent_again_is_one(name: str) -> None:
    """response-choice: A call that an answer sends twice is one"""
    sent, came = REPEATS[name]
    calls = typed(*sent).in_order()
    assert [(call.id, call.altered) for call in calls] == came
    assert [call.index for call in calls] == [*range(len(came))]


def test_bad_calls_have_ids_of_their_own_too() -> None:
    """response-choice: One bad call does not cost the good ones"""
    calls = typed(("a", "now", "{}"), ("a", "now", "{"), (None, None, "{}"), ("b", "now", "{}"))
    assert [(call.id, call.index) for call in calls] == [("a", 0), ("b", 3)]
    assert [(bad.id, bad.index, bad.code) for bad in calls.invalid] == [
        ("call_2", 1, "invalid_json"),
        ("call_3", 2, "missing_name"),
    ]


def cut_off(sent: Any) -> Json:
    return chat(("a", "now", sent), finish="length")


ARGUMENTS: dict[str, tuple[Json | str, str, Any]] = {
    "text": (chat(("a", "now", '{"a": 1}')), '{"a": 1}', {"a": 1}),
    "no text": (chat(("a", "now", "")), "", {}),
    "none": (chat(("a", "now", None)), "", {}),
    "an object": (claude({"a": [1]}), '{"a":[1]}', {"a": [1]}),
    "streamed text of a decoded wire": (claude_stream('{"a": 1}'), '{"a": 1}', {"a": 1}),
    "a whole text, perhaps cut": (cut_off('{"a": 1}'), '{"a": 1}', {"a": 1}),
    "half a text": (cut_off('{"a": 1'), '{"a": 1', "truncated"),
    "no text yet": (cut_off(""), "", "truncated"),
    "nothing yet": (cut_off(None), "", "truncated"),
    "an object, perhaps cut": (claude({"a": 1}, "max_tokens"), '{"a":1}', "truncated"),
    "half a text of a decoded wire": (claude_stream("{", "max_tokens"), "{", "truncated"),
    "a key twice": (chat(("a", "now", '{"a": 1, "a": 2}')), '{"a": 1, "a": 2}', "duplicate_key"),
    "an array": (chat(("a", "now", "[1]")), "[1]", "not_an_object"),
    "a decoded number": (claude(3), "3", "not_an_object"),
}


@pytest.mark.parametrize(("sent", "text", "outcome"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_are_the_object_or_the_reason(sent: Json | str, text: str, outcome: Any) -> None:
    """response-choice: Arguments that are no object become a tagged bad call"""
    read: Any = choice_from_stream if isinstance(sent, str) else choice_from_response
    (call,) = read(sent).tool_calls.in_order()
    assert (call.arguments, type(call.arguments)) == (text, str)
    assert call.args == outcome if isinstance(call, ToolCall) else call.code == outcome


@pytest.mark.parametrize("name", [None, "", 3, {"a": 1}])
@pytest.mark.parametrize(
    ("sent", "text"), [("{}", "{}"), ("not json", "not json"), (None, ""), ({"a": 1}, '{"a":1}')]
)
def test_a_call_without_a_name(name: Any, sent: Any, text: str) -> None:
    """response-choice: A call without a name is tagged"""
    calls = typed(("a", name, sent))
    (bad,) = calls.invalid
    assert (bad.code, bad.id, bad.name, bad.arguments) == ("missing_name", "a", None, text)
    assert len(calls) == 0


def test_the_objects_are_those_that_validation_makes() -> None:
    """response-choice: Text and reasoning are kept beside calls"""
    made = typed(
        ("a", "now", '{"x": 1}'), ("a", "now", {}), ("c", "now", "{"), text="Hi.", reasoning_content="Hm."
    )
    turn = Turn(text="Hi.", reasoning="Hm.", state=made.turn.state)
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
    body = chat((None, "now", "{}"), ("call_9", "now", "{}"), ("b", "now", "{"))
    numbered = choice_from_response(body).tool_calls
    assert numbered is not None
    assert [call.id for call in numbered.in_order()] == ["call_1", "call_9", "b"]
    first = chat(("b", "f", "{}"), ("call_9", "f", "{"))
    with pytest.raises(ToolCallParseError) as caught:
        asked(first, chat((None, "f", '{"x": 1}'), ("call_9", "f", '{"x": 2}'), ("b", "f", "{")))
    calls = caught.value.choice.tool_calls
    assert calls is not None
    accepted, *later = calls.in_order()
    assert accepted.id == "b"
    assert all(MADE_ID.fullmatch(call.id) for call in later)
    assert len({call.id for call in later}) == 3
    assert [call.altered for call in later] == [(), ("renumbered",), ("renumbered",)]


def test_a_candidate_without_calls_has_none() -> None:
    """response-choice: Text and reasoning are kept beside calls"""
    body = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}]}
    assert choice_from_response(body).tool_calls is None


def test_what_was_said_beside_calls_is_on_each_of_them() -> None:
    """response-choice: Text and reasoning are kept beside calls"""
    calls = [("a", "now", "{}"), ("a", "now", "{")]
    for text, reasoning in [("Hi.", None), (None, "Hm."), (None, None)]:
        made = typed(*calls, text=text, reasoning_content=reasoning)
        assert (made.text, made.reasoning) == (text, reasoning)
        assert made[0].turn is made.turn
    block: Json = {"type": "tool_use", "name": "now", "input": {}, "id": "a"}
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    body = claude({}) | {"content": [thinking, block, {**block, "input": 3}]}
    before = json.dumps(body)
    made = choice_from_response(body).tool_calls
    assert made is not None
    assert made[0].turn is made.turn
    assert made.turn.state is not None
    assert made.turn.state["ids"] == ["a", "call_2"]
    assert json.dumps(body) == before


def test_a_bad_call_says_what_was_sent() -> None:
    """response-choice: A call without a name is tagged"""
    (bad,) = typed(("a", None, '{"x": 1}')).invalid
    assert (bad.message, bad.path) == ('the call has no name; its arguments: {"x": 1}', None)
    (cut,) = typed(("a", "now", {"x": "y" * 200}), finish="length").invalid
    end = "y" * 118 + '"}'
    assert cut.message == f"the answer was cut off in this call: …{end} (208 characters)"


def f(x: Any = None, y: Any = None) -> str:
    """Do it."""
    raise AssertionError


def g(x: Any = None) -> str:
    """Do another thing."""
    raise AssertionError


BAD = Call("f", "{")


def asked(*answers: Answer | Json, **options: Any) -> Any:
    """The outputs of a program that asks again for bad calls."""
    adapter = sigadapt.ChatAdapter(on_invalid="reask", tool_calling="native", **options)
    with LoopbackProvider(answers) as provider, dspy.context(lm=lm_of(provider), adapter=adapter):
        out = dspy.Predict(May)(question="?", tools=[f, g])
    assert len(provider.received) == len(answers)
    return out


def test_a_call_is_what_it_asks_for() -> None:
    """conversations: A reask inside a run keeps the good calls."""
    first = Call("f", {"x": 1, "y": [{"x": 1, "y": 2}]})
    same = Call("f", {"y": [{"y": 2, "x": 1}], "x": 1})
    out = asked(Answer(calls=[first, BAD]), Answer(calls=[same]))
    assert [(call.args, call.altered) for call in out.calls] == [(first.arguments, ("repeated",))]
    others = [Call("f", {}), Call("g", {}), Call("f", {"x": 1}), Call("f", {"x": "1"})]
    scripts = [Answer(calls=[each, BAD]) for each in others]
    out = asked(*scripts, Answer(calls=[Call("g", {"x": 1})]), max_reasks=4)
    assert [(call.name, call.args) for call in out.calls][:4] == [
        (each.name, each.arguments) for each in others
    ]
    assert [call.altered for call in out.calls] == [()] * 5


def test_a_later_answers_calls_stand_behind_the_accepted_ones() -> None:
    """conversations: A reask inside a run keeps the good calls."""
    accepted = Answer(calls=[Call("f", {"x": 1}), BAD, Call("f", {"x": 2})])
    later = Answer(calls=[Call("f", {"x": 3}), BAD, Call("f", {"x": 4})])
    with pytest.raises(ToolCallParseError) as caught:
        asked(accepted, later, max_reasks=1)
    whole = caught.value.choice.tool_calls
    assert whole is not None
    assert [(each.index, each.args) for each in whole] == [
        (0, {"x": 1}),
        (2, {"x": 2}),
        (3, {"x": 3}),
        (5, {"x": 4}),
    ]
    assert [(each.index, each.code) for each in whole.invalid] == [(4, "invalid_json")]
    assert [each.id for each in whole.in_order()] == ["call_1", "call_3", "call_4", "call_5", "call_6"]
    assert whole.turn.repeats == ()
    assert {each.altered for each in whole} == {()}


def test_a_call_made_again_is_marked_once_and_goes_back_with_its_turn() -> None:
    """conversations: A reask inside a run keeps the good calls."""
    accepted = Answer(
        calls=[Call("f", {"x": 1}), Call("f", {"x": 2}), Call("f", {"x": 2}), BAD, Call("f", {"x": 3})]
    )
    again = Answer(calls=[Call("f", {"x": 3}), BAD])
    last = Answer(
        text="Again.",
        calls=[Call("f", '{"x": 2}'), Call("f", {"x": 9}), Call("f", "{x: 2}"), Call("f", {"x": 3})],
    )
    out = asked(accepted, again, last, max_reasks=2, repair=True)
    calls = out.calls
    assert [(each.index, each.args, each.altered) for each in calls] == [
        (0, {"x": 1}, ()),
        (1, {"x": 2}, ("repeated",)),
        (2, {"x": 2}, ()),
        (4, {"x": 3}, ("repeated",)),
        (8, {"x": 9}, ()),
    ], "the first of two alike, and once"
    assert calls.turn.text == "Again."
    first, third = calls[1].id, calls[3].id
    assert [(each.name, each.arguments, each.index, each.of) for each in calls.turn.repeats] == [
        ("f", '{"x": 2}', 7, first),
        ("f", '{"x":2}', 9, first),
        ("f", '{"x":3}', 10, third),
    ]
    assert calls[-1].turn == calls.turn


def test_an_answer_without_calls_leaves_the_earlier_ones() -> None:
    """conversations: A reask inside a run keeps the good calls."""
    said = "[[ ## answer ## ]]\nDone."
    out = asked(Answer(calls=[Call("f", {"x": 1}), BAD]), Answer(text=said))
    assert [call.args for call in out.calls] == [{"x": 1}]
    assert (out.answer, out.calls.text, out.calls.invalid) == ("Done.", said, ())
    out = asked(Answer(calls=[BAD]), Answer(text=said))
    assert (out.answer, len(out.calls)) == ("Done.", 0)
    out = asked(Answer(calls=[BAD]), Answer(text="So.", calls=[Call("f", {"x": 1})]))
    assert [(call.args, call.altered) for call in out.calls] == [({"x": 1}, ())]
    assert out.calls.text == "So."


def test_declared_names_come_back_in_the_calls_that_have_an_alias() -> None:
    """request-shaping: A call by an alias comes back under the declared name."""

    def answer(received: Received) -> Answer:
        alias, plain = (each["function"]["name"] for each in received.body["tools"])
        assert alias != "f.1"
        return Answer(calls=[Call(alias, {}), Call(plain, {}), Call(alias, "{")])

    adapter = sigadapt.ChatAdapter(on_invalid="keep", tool_calling="native")
    with LoopbackProvider(answer) as provider, dspy.context(lm=lm_of(provider), adapter=adapter):
        out: Any = dspy.Predict(Ask)(question="?", tools=[ToolDecl("f.1"), ToolDecl("g")])
    assert [each.name for each in out.calls.in_order()] == ["f.1", "g", "f.1"]
    assert [each.name for each in out.calls.invalid] == ["f.1"]
