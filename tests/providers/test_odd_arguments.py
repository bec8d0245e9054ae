"""Calls that have their arguments in another place than their wire does, whole and streamed."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import dspy
import pytest
from wire_cases import Json, check_case

from sigadapt import choice_from_response
from sigadapt.response import choice_from_stream

HEAD: Json = {"id": "c1", "name": "f"}
PARIS: Json = {"city": "Zürich"}
TEXT = json.dumps(PARIS)


def chat(call: Json) -> tuple[Json, list[Json]]:
    delta = {"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}}
    events: list[Json] = [
        {"choices": [delta]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    return {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}, events


def in_function(call: Json) -> tuple[Json, list[Json]]:
    inside = {key: part for key, part in call.items() if key != "id"}
    return chat({"id": call["id"], "type": "function", "function": inside})


def beside_function(call: Json) -> tuple[Json, list[Json]]:
    beside = {key: part for key, part in call.items() if key != "name"}
    return chat({"function": {"name": call["name"]}, **beside})


def old_function_call(call: Json) -> tuple[Json, list[Json]]:
    message = {"function_call": {key: part for key, part in call.items() if key != "id"}}
    return (
        {"choices": [{"message": message, "finish_reason": "function_call"}]},
        [{"choices": [{"delta": message, "finish_reason": "function_call"}]}],
    )


def anthropic(call: Json) -> tuple[Json, list[Json]]:
    block = {"type": "tool_use", **call}
    return {"type": "message", "content": [block], "stop_reason": "tool_use"}, [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]


def gemini(call: Json) -> tuple[Json, list[Json]]:
    part = {"functionCall": call}
    body = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}
    return body, [body]


def ollama(call: Json) -> tuple[Json, list[Json]]:
    function = {key: part for key, part in call.items() if key != "id"}
    message = {"role": "assistant", "content": "", "tool_calls": [{"id": call["id"], "function": function}]}
    body = {"message": message, "done": True, "done_reason": "tool_calls"}
    return body, [body]


def cohere(call: Json) -> tuple[Json, list[Json]]:
    function = {key: part for key, part in call.items() if key != "id"}
    whole = {"id": call["id"], "type": "function", "function": function}
    return {"finish_reason": "TOOL_CALL", "message": {"tool_calls": [whole]}}, [
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": whole}}},
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    ]


def responses(call: Json) -> tuple[Json, list[Json]]:
    item = {"type": "function_call", "call_id": call["id"], **call}
    body = {"object": "response", "status": "completed", "output": [item]}
    return body, [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**body, "output": []}},
    ]


def bedrock(call: Json) -> tuple[Json, list[Json]]:
    use = {"toolUseId": call["id"], **{key: part for key, part in call.items() if key != "id"}}
    return {"output": {"message": {"content": [{"toolUse": use}]}}, "stopReason": "tool_use"}, [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": use}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]


def conversations(call: Json) -> tuple[Json, list[Json]]:
    entry = {"tool_call_id": call["id"], **call}
    body = {"object": "conversation.response", "outputs": [{"type": "function.call", **entry}]}
    return body, [{"type": "function.call.delta", **entry}, {"type": "conversation.response.done"}]


def interactions(call: Json) -> tuple[Json, list[Json]]:
    step = {"type": "function_call", **call}
    return {"object": "interaction", "status": "requires_action", "steps": [step]}, [
        {"event_type": "step.start", "index": 0, "step": step},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": {"status": "requires_action"}},
    ]


class Wire(NamedTuple):
    key: str  # its own
    written: Callable[[Json], tuple[Json, list[Json]]]
    id: str = "c1"


WIRES = {
    "chat, beside the id": Wire("arguments", chat),
    "chat, in the function": Wire("arguments", in_function),
    "chat, beside the function": Wire("arguments", beside_function),
    "chat, deprecated": Wire("arguments", old_function_call, "call_1"),
    "Anthropic": Wire("input", anthropic),
    "Gemini": Wire("args", gemini),
    "Ollama": Wire("arguments", ollama),
    "Cohere": Wire("arguments", cohere),
    "Responses": Wire("arguments", responses),
    "Bedrock": Wire("input", bedrock),
    "Conversations": Wire("arguments", conversations),
    "Interactions": Wire("arguments", interactions),
}
PLACES = ("arguments", "args", "input", "parameters")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_arguments_in_the_place_of_another_wire_are_read(wire: Wire, place: str) -> None:
    """response-choice: Arguments in another wire's place are read, in no known place a bad call"""
    expect = {"calls": [[wire.id, "f", PARIS]], "finish": "tool_calls"}
    check_case(expect, *wire.written({**HEAD, place: PARIS}))
    check_case({**expect, "calls": [[wire.id, "f", {}]]}, *wire.written(HEAD))


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "chat, deprecated"])
def test_a_call_without_a_known_place_of_its_arguments_is_a_bad_one(wire: str) -> None:
    """response-choice: Arguments in another wire's place are read, in no known place a bad call"""
    key, written, _ = WIRES[wire]
    others = [place for place in PLACES if place != key][:2]
    for members in (dict.fromkeys(others, PARIS), {"pattern": "Zürich"}):
        body, events = written({**HEAD, **members})
        for choice in (choice_from_response(body), choice_from_stream(events)):
            assert choice.tool_calls is not None
            (bad,) = choice.tool_calls.invalid
            assert (bad.code, bad.name) == ("invalid_json", "f")
            assert bad.arguments.count("Zürich") >= len(members)


def test_a_bad_call_that_was_cut_off_keeps_its_text() -> None:
    """response-choice: Arguments in another wire's place are read, in no known place a bad call"""
    body, _ = anthropic({**HEAD, "pattern": "Zürich"})
    choice = choice_from_response({**body, "stop_reason": "max_tokens"})
    assert choice.tool_calls is not None
    assert [bad.arguments.count("Zürich") for bad in choice.tool_calls.invalid] == [1]


def test_calls_of_dspys_type_in_its_legacy_output_are_read() -> None:
    """response-choice: DSPy's own outputs are read"""
    calls = dspy.ToolCalls.from_dict_list([{"name": "f", "args": PARIS}, {"name": "g", "args": {}}])
    for value in (calls, [*calls.tool_calls]):
        read: Any = choice_from_response({"text": None, "tool_calls": value}).tool_calls
        assert [(call.name, call.args) for call in read] == [("f", PARIS), ("g", {})]
