"""Choice, and what it is read from: bodies of every wire, SDK objects, DSPy's forms, errors and rubbish."""

import copy
import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic.types
import ollama
import pytest
from budgets import share
from dspy import lm15
from dspy.clients import call_result
from google.genai import types as google
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from json_places import Place, places, put, take_out
from openai.types.chat import ChatCompletion
from openai.types.responses import Response as OpenAIResponse
from support import RECORDINGS, recorded
from tables import table
from wire_cases import ARGUMENTS, SAID, THOUGHT, ZURICH, samples

from sigadapt import Choice, ToolCalls, choice_from_response
from sigadapt.errors import InvalidOption, UnreadableResponse
from sigadapt.response import choice_from_stream, choices_from_response

Json = dict[str, Any]

legacy: Any = call_result.attributes  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

BODIES = {sample.dialect: sample.body for sample in samples()}
STREAMS = {sample.dialect: sample.events for sample in samples()}

WIRES = sorted(BODIES)
EXPECTED = Choice(
    SAID,
    ToolCalls.model_validate(
        {
            "tool_calls": [{"id": "c1", "name": "get_weather", "args": ZURICH, "arguments": ARGUMENTS}],
            "turn": {"text": SAID, "reasoning": THOUGHT},
        }
    ),
    THOUGHT,
    "tool_calls",
)


def same(choice: Choice, expected: Choice = EXPECTED) -> bool:
    """Whether two choices say the same, apart from what their providers want back on the next turn."""

    def stateless(choice: Choice) -> Choice:
        calls = choice.tool_calls
        if calls is None:
            return choice
        turn = calls.turn.model_copy(update={"state": None})
        good = [call.model_copy(update={"turn": turn}) for call in calls]
        return dataclasses.replace(
            choice, tool_calls=calls.model_copy(update={"tool_calls": good, "turn": turn})
        )

    return stateless(choice) == stateless(expected)


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_same_answer_reads_the_same_on_every_wire(wire: str) -> None:
    """response-choice: The same answer reads the same on every wire"""
    before = copy.deepcopy(BODIES[wire])
    choice = choice_from_response(BODIES[wire])
    assert same(choice)
    assert choice.raw is BODIES[wire]
    assert BODIES[wire] == before
    assert choices_from_response(BODIES[wire]) == [choice]


def test_an_unknown_dialect_is_refused_with_the_list_of_the_known() -> None:
    """response-choice: A named dialect is used"""
    reads: list[tuple[Any, Any]] = [
        *((read, BODIES["gemini"]) for read in (choice_from_response, choices_from_response)),
        (choice_from_stream, STREAMS["gemini"]),
    ]
    for read, answer in reads:
        with pytest.raises(InvalidOption) as caught:
            read(answer, dialect="gpt")
        assert caught.value.field == "dialect"
        assert sorted(str(caught.value.fix).removeprefix("Use one of ").strip(".").split(", ")) == WIRES


def ended(wire: str, word: Any) -> Json:
    """The wire's text answer with that reason for its end."""
    said: Json = {"role": "assistant", "content": SAID}
    bodies: dict[str, Json] = {
        "openai-chat": {"choices": [{"message": said, "finish_reason": word}]},
        "openai-responses": {"object": "response", "output": [], "status": word},
        "anthropic": {"type": "message", "content": [], "stop_reason": word},
        "gemini": {"candidates": [{"content": {"parts": []}, "finishReason": word}]},
        "gemini-interactions": {"object": "interaction", "status": word, "steps": []},
        "ollama": {"message": said, "done": True, "done_reason": word},
        "bedrock-converse": {"output": {"message": {"content": []}}, "stopReason": word},
        "cohere": {"message": {"content": []}, "finish_reason": word},
    }
    return bodies[wire]


FINISHES: dict[str, dict[str, str]] = table(__file__, "FINISHES")


def test_finish_reasons_are_canonical_words(wire: str) -> None:
    """response-choice: Finish reasons are canonical words"""
    if wire == "mistral-conversations":  # a format without finish reasons
        assert choice_from_response(BODIES[wire]).finish_reason == "tool_calls"
        return
    words = FINISHES[wire]
    assert {word: choice_from_response(ended(wire, word)).finish_reason for word in words} == words
    for nothing in (None, "", 3, ["stop"]):
        assert choice_from_response(ended(wire, nothing)).finish_reason is None


def test_a_whole_call_of_a_cut_off_answer_stays_good() -> None:
    """response-choice: A whole call of a cut-off answer stays good"""
    body = copy.deepcopy(BODIES["openai-chat"])
    body["choices"][0]["finish_reason"] = "length"
    assert same(choice_from_response(body), dataclasses.replace(EXPECTED, finish_reason="length"))
    events = [*STREAMS["anthropic"][:-2], {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}]
    assert same(choice_from_stream(events), dataclasses.replace(EXPECTED, finish_reason="length"))


SDK_TYPES: dict[str, Any] = {
    "openai-chat": ChatCompletion,
    "openai-responses": OpenAIResponse,
    "anthropic": anthropic.types.Message,
    "gemini": google.GenerateContentResponse,
    "ollama": ollama.ChatResponse,
}


@pytest.mark.parametrize("wire", SDK_TYPES)
@pytest.mark.filterwarnings("error")
def test_an_sdk_object_reads_as_its_body(wire: str) -> None:
    """response-choice: An SDK's object reads as its body"""
    thing = SDK_TYPES[wire].model_validate(BODIES[wire])
    choice = choice_from_response(thing)
    assert choice.raw is thing
    if wire == "ollama":  # whose SDK has no place for an id
        assert choice.tool_calls is not None
        assert [(call.id, call.args) for call in choice.tool_calls] == [("call_1", ZURICH)]
    else:
        assert choice == choice_from_response(BODIES[wire])  # what the provider wants back is the same too


def lm15_response(finish: Any = "tool_call", body: Json | None = None, *parts: Any) -> lm15.Response:
    parts = parts or (
        lm15.ThinkingPart(THOUGHT),
        lm15.TextPart(SAID),
        lm15.ToolCallPart(id="c1", name="get_weather", input=ZURICH),
    )
    message = lm15.Message(role="assistant", parts=parts)
    return lm15.Response(
        id="r", model="m", message=message, finish_reason=finish, usage=lm15.Usage(), provider_data=body
    )


LAST_EVENTS: dict[str, tuple[Json, str]] = {
    "chat, usage": ({"object": "chat.completion.chunk", "choices": [], "usage": {}}, "tool_calls"),
    "chat, finish": ({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}, "length"),
    "Anthropic": ({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {}}, "length"),
    "Gemini": (
        {"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "MAX_TOKENS"}]},
        "length",
    ),
    "Gemini, with the same call but not the text": (
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "get_weather", "args": ZURICH}}]}}]},
        "tool_calls",
    ),
    "of no known wire": ({"step": 3}, "tool_calls"),
}


def test_a_refusal_in_an_lm15_response_is_one() -> None:
    """response-choice: An lm15 Response is read from the provider's body"""
    parts = lm15.TextPart(text="Well. "), lm15.RefusalPart(text="I cannot.")
    choice = choice_from_response(lm15_response("stop", None, *parts))
    assert (choice.text, choice.finish_reason) == ("Well. I cannot.", "refusal")


@pytest.mark.parametrize(("body", "finish"), LAST_EVENTS.values(), ids=LAST_EVENTS)
def test_an_lm15_response_that_was_streamed_keeps_only_the_last_event(body: Json, finish: str) -> None:
    """response-choice: An lm15 Response is read from the provider's body"""
    half = lm15.ToolCallPart(id="c1", name="get_weather", input={"partial_json": '{"city"'})
    choice = choice_from_response(lm15_response("tool_call", body, lm15.TextPart(SAID), half))
    assert (choice.text, choice.finish_reason) == (SAID, finish)
    assert choice.tool_calls is not None
    code = "truncated" if finish == "length" else "invalid_json"
    assert [(bad.code, bad.arguments) for bad in choice.tool_calls.invalid] == [(code, '{"city"')]


def test_dspys_own_outputs_are_read() -> None:
    """response-choice: DSPy's own outputs are read"""
    assert choice_from_response("It is sunny.") == Choice("It is sunny.")
    message = BODIES["openai-chat"]["choices"][0]["message"]
    output: Json = {
        "text": SAID,
        "reasoning_content": THOUGHT,
        "tool_calls": message["tool_calls"],
        "citations": [],
    }
    litellm: Any = pytest.importorskip("litellm")
    litellms: Any = litellm.ModelResponse(**BODIES["openai-chat"])
    objects = litellms.choices[0].message.tool_calls
    outputs: list[Any] = [output, legacy(output), {**output, "tool_calls": objects}]
    for given_output in outputs:
        choice = choice_from_response(given_output)
        assert same(choice, dataclasses.replace(EXPECTED, finish_reason=None))
        assert choice.raw is given_output
    assert choice_from_response({"text": None}) == Choice()


OPENAIS = {"message": "No such model", "type": "invalid_request_error", "code": None}
FAILED: Json = {**BODIES["openai-responses"], "status": "failed", "output": [], "error": {"message": "Sorry"}}
ERRORS: dict[str, tuple[Json, str]] = {
    "OpenAI": ({"error": OPENAIS}, "No such model"),
    "Anthropic": ({"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}, "Busy"),
    "Gemini": ({"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}}, "Quota"),
    "Ollama": ({"error": "model not found"}, "model not found"),
    "Bedrock": ({"throttlingException": {"message": "Too many"}}, "Too many"),
    "Cohere": ({"id": "x", "message": "invalid api token"}, "invalid api token"),
    "a server's detail": ({"detail": "Not Found"}, "Not Found"),
    "OpenAI Responses' event": ({"type": "error", "code": "x", "message": "Sorry", "param": None}, "Sorry"),
    "a failed response": (FAILED, "Sorry"),
    "OpenRouter": ({"error": {"message": "Upstream", "code": 502}, "choices": []}, "Upstream"),
    "of no known shape": ({"error": {"why": 3}}, '{"why":3}'),
}


@pytest.mark.parametrize(("body", "message"), ERRORS.values(), ids=ERRORS)
def test_a_providers_error_is_unreadable_and_says_why(body: Json, message: str) -> None:
    """response-choice: A provider's error body is unreadable"""
    for read, thing in [
        (choice_from_response, body),
        (choice_from_stream, [body]),
        (choice_from_stream, json.dumps(body, indent=2)),
        (choice_from_stream, f"event: error\ndata: {json.dumps(body)}\n\n"),
    ]:
        with pytest.raises(UnreadableResponse) as caught:
            read(thing)
        assert message in str(caught.value)
        assert caught.value.code == "provider_error"


def test_a_stream_that_fails_before_it_says_anything(wire: str) -> None:
    """response-choice: A provider's error body is unreadable"""
    with pytest.raises(UnreadableResponse, match="Overloaded"):
        choice_from_stream(
            [
                STREAMS[wire][0] if wire in {"anthropic", "cohere"} else {},
                {"error": {"message": "Overloaded"}},
            ]
        )


NOT_ANSWERS: list[Any] = [
    None,
    3,
    1.5,
    True,
    b"{}",
    [],
    [{"choices": []}],
    pytest.param(object(), id="an object"),  # its repr is an address, another one in every process
    {},
    {"a": 1},
    {"choices": []},
    {"choices": [None]},
    {"candidates": []},
    Choice(),
]


@pytest.mark.parametrize("thing", NOT_ANSWERS, ids=repr)
def test_something_that_is_no_response_is_unreadable(thing: Any) -> None:
    """response-choice: Something that is no response is unreadable"""
    for read in (choice_from_response, choices_from_response):
        with pytest.raises(UnreadableResponse):
            read(thing)
    with pytest.raises(UnreadableResponse):
        choice_from_stream(thing)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["\ud800", "", "{}", "stop", "length", "max_tokens", math.nan, 10**30]),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=6), children, max_size=3)
    ),
    max_leaves=6,
)


def mutated(draw: st.DrawFn, value: Any, at: list[Place]) -> Any:
    value, place = copy.deepcopy(value), draw(st.sampled_from(at))
    if draw(st.integers(0, 4)) == 0:
        take_out(value, place)
    else:
        put(value, place, draw(json_values))
    return value


@st.composite
def mutants(draw: st.DrawFn, samples: dict[str, Any]) -> Any:
    sample = samples[draw(st.sampled_from(WIRES))]
    for _ in range(draw(st.integers(1, 2))):
        everywhere = list(places(sample))
        if everywhere:
            sample = mutated(draw, sample, everywhere)
    return sample


def check_any(read: Callable[[Any], list[Choice]], thing: Any) -> None:
    try:
        choices = read(thing)
    except UnreadableResponse:
        return
    for choice in choices:
        assert choice.text is None or (isinstance(choice.text, str) and choice.text)
        assert choice.reasoning is None or isinstance(choice.reasoning, str)
        assert choice.finish_reason is None or isinstance(choice.finish_reason, str)
        calls = choice.tool_calls
        if calls is None:
            continue
        every = [*calls, *calls.invalid]
        assert every
        assert len({call.id for call in every}) == len(every)
        assert sorted(call.index for call in every) == list(range(len(every)))
        assert all(isinstance(call.arguments, str) for call in every)
        assert all(isinstance(call.name, str) and call.name and isinstance(call.args, dict) for call in calls)


@pytest.mark.slow
@settings(max_examples=share(600), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mutants(BODIES))
def test_any_json_in_any_field_of_a_body(body: Any) -> None:
    """response-choice: Any JSON gives a Choice or UnreadableResponse"""
    before = copy.deepcopy(body)
    check_any(choices_from_response, body)
    assert repr(body) == repr(before)


@settings(max_examples=share(600), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mutants(STREAMS), st.sampled_from([list, iter, json.dumps]))
def test_any_json_in_any_field_of_a_stream(events: Any, form: Any) -> None:
    """response-choice: Any JSON gives a Choice or UnreadableResponse"""
    check_any(lambda stream: [choice_from_stream(stream)], form(events))


@given(json_values)
def test_any_json_at_all(value: Any) -> None:
    """response-choice: Any JSON gives a Choice or UnreadableResponse"""
    check_any(choices_from_response, value)
    check_any(lambda stream: [choice_from_stream(stream)], value)


def good(choice: Choice) -> list[tuple[str, str, Json]]:
    return [(call.id, call.name, call.args) for call in choice.tool_calls or ()]


def test_a_stream_cut_anywhere_holds_no_call_that_the_whole_one_does_not(wire: str) -> None:
    """response-choice: A stream that breaks off leaves what was said"""
    text = "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in STREAMS[wire]).encode()
    before = ""
    for end in range(len(text)):
        try:
            choice = choice_from_stream(text[:end])
        except UnreadableResponse:
            continue
        assert good(choice) in ([], good(EXPECTED))
        assert len(choice.text or "") >= len(before)
        before = choice.text or ""
        assert SAID.startswith(before)
    assert before == SAID


@pytest.mark.skipif(not RECORDINGS, reason="SIGADAPT_CORPUS names no corpus")
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_recorded_traffic(path: Path) -> None:
    """response-choice: Arguments come out as they were sent"""
    rows = recorded(path)
    assert rows
    for row in rows:
        read: Any = choice_from_stream if row["stream"] else choice_from_response
        choice = read(row["response"])
        assert choice.tool_calls is None or not choice.tool_calls.invalid, row["id"]
        # The corpus counts functions alone, not a search of tools that the client runs.
        calls = [call for call in choice.tool_calls or () if call.name != "tool_search"]
        assert [(call.name, call.args) for call in calls] == [
            (call["name"], call["args"]) for call in row["expected"]["calls"]
        ], row["id"]
        assert all(
            want["id"] in (None, call.id) for call, want in zip(calls, row["expected"]["calls"], strict=True)
        )
        # The corpus joins separate blocks of text without the blank line.
        assert "".join((choice.text or "").split()) == "".join((row["expected"]["text"] or "").split()), row[
            "id"
        ]
        assert choice == read(row["response"], dialect=row["dialect"]), row["id"]
