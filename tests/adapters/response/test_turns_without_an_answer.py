"""How a turn can end without an answer: told once, with the provider's words, and nothing is paid twice."""

import json
from typing import Any

import dspy
import pytest
from support import May, Must, get_weather, lm_of
from wire_bodies import chat, claude, gemini, responses

import sigadapt
from sigadapt.testing import LoopbackProvider

Json = dict[str, Any]


def message(text: str, **more: Any) -> Json:
    part = {"type": "output_text", "text": text, "annotations": list[Any]()}
    return {
        "type": "message",
        "id": "m",
        "role": "assistant",
        "status": "completed",
        "content": [part],
        **more,
    }


CRASH = {"code": "server_error", "message": "The model crashed."}
CALL: Json = {"type": "function_call", "id": "f", "call_id": "c1", "name": "get_weather"}
CALL["arguments"] = '{"city": "Rome"}'
REFUSAL = message("", content=[{"type": "refusal", "refusal": "I cannot."}])
HALF = message("Half an")
BEGINNING: Json = {"type": "text", "text": "I"}
SUMMARY: Json = {"type": "compaction", "content": "Summary"}
LIMIT: Json = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
DIED = chat({"content": "Half an"}, "error", error={"code": 502, "message": "upstream died"})
THOUGHT = {"content": "", "reasoning_content": "Sunny in Paris."}


def said(text: str, finish: str) -> Json:
    return chat({"content": text}, finish)


ENDS: dict[str, tuple[str, Json, str, str]] = {
    "Anthropic's refusal": (
        "anthropic",
        claude(BEGINNING, stop="refusal", stop_details={"category": "x"}),
        "refused",
        "x",
    ),
    "a refusal on OpenAI": (
        "openai",
        chat({"content": None, "refusal": "I cannot."}),
        "refused",
        "I cannot.",
    ),
    "a refusal on Responses": ("responses", responses(REFUSAL), "refused", "I cannot."),
    "text cut by its limit": ("openai", said("Half an", "length"), "cut_off", "Half an"),
    "nothing before the limit": ("openai", said("", "length"), "cut_off", "length"),
    "nothing before Gemini's limit": ("gemini", gemini(finish="MAX_TOKENS"), "cut_off", "length"),
    "an incomplete response": ("responses", responses(HALF, **LIMIT), "cut_off", "Half"),
    "a response still in progress": ("responses", responses(status="in_progress"), "cut_off", "in_progress"),
    "filtered text": ("openai", said("Half an", "content_filter"), "filtered", "Half an"),
    "a blocked prompt": (
        "gemini",
        {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "Not this."}, "modelVersion": "g"},
        "filtered",
        "Not this.",
    ),
    "nothing, for safety": ("gemini", gemini(finish="SAFETY"), "filtered", "SAFETY"),
    "text stopped for safety": ("gemini", gemini({"text": "Half"}, finish="SAFETY"), "filtered", "SAFETY"),
    "a failed response": (
        "responses",
        responses(HALF, status="failed", error=CRASH),
        "failed",
        "model crashed.",
    ),
    "a cancelled response with a call": (
        "responses",
        responses(CALL, status="cancelled"),
        "failed",
        "cancelled",
    ),
    "a choice with an error": ("openai", DIED, "failed", "upstream died"),
    "an interrupted answer": ("openai", said("Half", "insufficient_system_resource"), "failed", "Half"),
    "Gemini's unknown reason": ("gemini", gemini({"text": "Half"}, finish="OTHER"), "failed", "OTHER"),
    "a compaction": ("anthropic", claude(SUMMARY, stop="compaction"), "empty", "compaction"),
    "nothing but reasoning": ("openai", chat(THOUGHT), "empty", "reasoning"),
}


def ask(
    wire: str, *bodies: Json, signature: Any = May, engine: str = "auto", **options: Any
) -> tuple[Any, int]:
    """What a program gets, a prediction or an error, and how many requests were paid."""
    answers = iter(bodies)
    with LoopbackProvider(lambda _: json.dumps(next(answers, bodies[-1])).encode()) as provider:
        lm = lm_of(provider, wire, engine, cache=False, num_retries=0)
        adapter = sigadapt.ChatAdapter(tool_calling="native", **options)
        with dspy.context(lm=lm, adapter=adapter):
            try:
                out: Any = dspy.Predict(signature)(question="weather?", tools=[get_weather])
            except sigadapt.SigadaptError as error:
                out = error
        return out, len(provider.received)


@pytest.mark.parametrize("on_invalid", ["raise", "keep", "reask"])
@pytest.mark.parametrize("signature", [May, Must], ids=["optional", "required"])
@pytest.mark.parametrize("name", ENDS)
def test_a_turn_without_an_answer_is_refused_once(name: str, signature: Any, on_invalid: str) -> None:
    """tool-call-outputs: A turn that ended without an answer says why."""
    wire, body, code, words = ENDS[name]
    error, requests = ask(wire, body, signature=signature, on_invalid=on_invalid)
    assert type(error) is sigadapt.errors.UnusableAnswer
    field = None if code in ("cut_off", "filtered") and error.choice.text else "calls"
    assert (error.code, error.field, requests) == (code, field, 1)
    assert words in str(error)


@pytest.mark.parametrize("name", [name for name in ENDS if ENDS[name][0] == "openai"])
@pytest.mark.litellm
def test_a_gateway_hides_no_end(name: str) -> None:
    """
    tool-call-outputs: A turn that ended without an answer says why
    response-choice: A refusal's text is kept over LiteLLM
    """
    wire, body, code, words = ENDS[name]
    error, requests = ask(wire, body, engine="litellm")
    assert (type(error), requests) == (sigadapt.errors.UnusableAnswer, 1)
    assert (error.code, "refus" not in name or words in str(error)) == (code, True)


def test_the_error_carries_all_that_came() -> None:
    """tool-call-outputs: The error of a turn without an answer holds what came."""
    error, _ = ask("responses", responses(message("Half an"), CALL, status="failed", error=CRASH))
    assert error.choice.text == "Half an"
    assert error.choice.finish_message == "The model crashed."
    assert not list(error.choice.tool_calls)
    assert [(call.id, call.code) for call in error.choice.tool_calls.invalid] == [("c1", "truncated")]


def test_calls_before_the_limit_stay_good() -> None:
    """tool-call-outputs: Calls before a limit stay good."""
    sent = enumerate(('{"city": "Rome"}', '{"ci'))
    calls = [{"id": f"c{n}", "function": {"name": "get_weather", "arguments": text}} for n, text in sent]
    out, _ = ask("openai", chat({"content": None, "tool_calls": calls}, "length"), on_invalid="keep")
    assert [call.args for call in out.calls] == [{"city": "Rome"}]
    assert [call.code for call in out.calls.invalid] == ["truncated"]


@pytest.mark.parametrize(
    ("adapter", "text"),
    [
        (sigadapt.ChatAdapter, "[[ ## answer ## ]]\nSunny.\n\n[[ ## completed ## ]]\n\nAnd on it goes"),
        (sigadapt.JSONAdapter, '{"answer": "Sunny."}'),
        (sigadapt.adapters.XMLAdapter, "<answer>Sunny.</answer> And on it goes"),
    ],
)
def test_a_complete_answer_at_its_limit_is_an_answer(adapter: Any, text: str) -> None:
    """tool-call-outputs: A complete answer at its limit is an answer."""
    with LoopbackProvider(lambda _: json.dumps(chat({"content": text}, "length")).encode()) as provider:
        program = dspy.Predict(May)
        with dspy.context(lm=lm_of(provider, cache=False), adapter=adapter(tool_calling="native")):
            out: Any = program(question="weather?", tools=[get_weather])
    assert out.answer == "Sunny."


THINKING: Json = {"type": "thinking", "thinking": "I will look it up.", "signature": "s"}
ANNOUNCED = {
    "openai": chat({"content": "Let me look."}, "tool_calls"),
    "openai, thinking": chat({"content": None, "reasoning_content": "I will look."}, "tool_calls"),
    "openai, nothing": chat({"content": ""}, "tool_calls"),
    # https://github.com/anthropics/claude-code/issues/63581: 7 % of the tool turns of a model ended so.
    "anthropic": claude({"type": "text", "text": "Let me look."}, stop="tool_use"),
    "anthropic, thinking": claude(THINKING, stop="tool_use"),
    "anthropic, nothing": claude(stop="tool_use"),
}
"""Answers that end for a call, and have none."""


@pytest.mark.parametrize("engine", ["auto", "litellm"])
@pytest.mark.parametrize("case", ANNOUNCED)
def test_a_call_that_is_announced_and_does_not_come_is_a_bad_call(case: str, engine: str) -> None:
    """response-choice: A turn that ends for a call that did not come has a bad call."""
    wire, body = case.partition(",")[0], ANNOUNCED[case]
    error, requests = ask(wire, body, engine=engine)
    assert (type(error), error.code, requests) == (sigadapt.ToolCallParseError, "malformed_call", 1)
    assert error.choice.text == ("Let me look." if case == wire else None)
    out, _ = ask(wire, body, engine=engine, on_invalid="keep")
    (bad,) = out.calls.invalid
    assert (bad.name, bad.arguments, bad.code) == (None, "", "malformed_call")
    assert "did not come" in bad.message
    good = {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": GOOD}]}
    block = {"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"city": "Paris"}}
    right = claude(block, stop="tool_use") if wire == "anthropic" else chat(good, "tool_calls")
    out, requests = ask(wire, body, right, engine=engine, on_invalid="reask")
    assert ([call.args for call in out.calls], requests) == ([{"city": "Paris"}], 2)


GOOD = {"name": "get_weather", "arguments": '{"city": "Paris"}'}


def test_a_gateway_reports_no_call_twice() -> None:
    """response-choice: A call that the provider could not read is a bad call."""
    call = {"id": "c1", "type": "function", "function": {"name": "rm_rf", "arguments": "{}"}}
    native: Json = {"provider_specific_fields": {"native_finish_reason": "UNEXPECTED_TOOL_CALL"}}
    choice = sigadapt.choice_from_response(chat({"content": None, "tool_calls": [call]}, **native))
    assert choice.tool_calls is not None
    assert [call.id for call in choice.tool_calls.in_order()] == ["c1"]


def test_commentary_beside_a_call_is_its_text() -> None:
    """response-choice: Commentary is told from the answer."""
    out, _ = ask("responses", responses(message("I look it up.", phase="commentary"), CALL))
    assert out.calls.text == "I look it up."
    both = responses(message("I look.", phase="commentary"), message("Here.", phase="final_answer"), CALL)
    out, _ = ask("responses", both)
    assert out.calls.text == "I look.\n\nHere."


def test_separate_texts_are_paragraphs() -> None:
    """response-choice: Separate texts are paragraphs."""
    search: Json = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    texts = [{"type": "text", "text": text} for text in ("Let me look:", "It is ", "sunny.")]
    choice = sigadapt.choice_from_response(claude(texts[0], search, texts[1], texts[2], stop="end_turn"))
    assert choice.text == "Let me look:\n\nIt is sunny."
