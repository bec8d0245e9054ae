"""Ids, codes and the typed objects of calls, read from answers and asked for again."""

import json
from typing import Any

import dspy
import pytest
from support import May, lm_of

import sigadapt
from sigadapt import ToolCall, ToolCalls, choice_from_response
from sigadapt.response import choice_from_stream
from sigadapt.testing import Answer, Call, LoopbackProvider

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
    "no text": ([3, ["a"], []], ["call_1", "call_2", "call_3"], [0, 1, 2]),
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
    first = [number for number, call in enumerate(sent) if call not in sent[:number] or not call[0]]
    assert [call.index for call in calls] == first


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


def test_a_candidate_without_calls_has_none() -> None:
    """response-choice: Text and reasoning are kept beside calls"""
    body = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}]}
    assert choice_from_response(body).tool_calls is None


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
