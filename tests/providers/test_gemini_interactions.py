"""Gemini's Interactions, whole and streamed."""

from typing import Any

import pytest
from wire_cases import HALVES, SAID, THOUGHT, ZURICH, Case, Json, Sample, check_case, params

PARIS = ("c1", "get_weather", {"city": "Paris"})
ROME = ("c2", "get_weather", {"city": "Rome"})


def call(arguments: Any, call_id: str = "c1") -> Json:
    return {"type": "function_call", "id": call_id, "name": "get_weather", "arguments": arguments}


def said(text: str) -> Json:
    return {"type": "model_output", "content": [{"type": "text", "text": text}]}


def thought(text: str, signature: str = "U0lH") -> Json:
    return {"type": "thought", "signature": signature, "summary": [{"type": "text", "text": text}]}


def body(*steps: Json, status: Any = "completed") -> Json:
    return {"id": "v1_x", "object": "interaction", "status": status, "model": "g", "steps": [*steps]}


def streamed(*steps: list[Json], status: str | None = "completed") -> list[Json]:
    """The events of an interaction, given each step's start and its deltas."""
    started = {"event_type": "interaction.created", "interaction": {"id": "x", "status": "in_progress"}}
    events: list[Json] = [started]
    for index, (start, *deltas) in enumerate(steps):
        events.append({"event_type": "step.start", "index": index, "step": start})
        events += ({"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"event_type": "step.stop", "index": index})
    if status is not None:
        events.append({"event_type": "interaction.completed", "interaction": {"id": "x", "status": status}})
    return events


def text_delta(text: str) -> Json:
    return {"type": "text", "text": text}


def arguments_delta(text: str) -> Json:
    return {"type": "arguments_delta", "arguments": text}


CALL_START: Json = {"type": "function_call", "id": "c1", "name": "get_weather"}
SEARCH: Json = {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["weather"]}}
FOUND: Json = {"type": "google_search_result", "call_id": "s1", "result": []}
SAMPLE = Sample(
    "gemini-interactions",
    body(thought(THOUGHT), said(SAID), call(ZURICH), status="requires_action"),
    streamed(
        [
            {"type": "thought"},
            {"type": "thought_summary", "content": {"type": "text", "text": THOUGHT}},
            {"type": "thought_signature", "signature": "U0lH"},
        ],
        [{"type": "model_output"}, text_delta(SAID)],
        [CALL_START, *map(arguments_delta, HALVES)],
        status="requires_action",
    ),
)

CASES = [
    Case(
        "the sample",
        SAMPLE.body,
        SAMPLE.events,
        text=SAID,
        reasoning=THOUGHT,
        calls=(("c1", "get_weather", ZURICH),),
        finish="tool_calls",
    ),
    Case(
        "two calls",
        body(call({"city": "Paris"}), call({"city": "Rome"}, "c2"), status="requires_action"),
        streamed(
            [CALL_START, arguments_delta('{"city":"Paris"}')],
            [{**CALL_START, "id": "c2"}, arguments_delta('{"city":'), arguments_delta('"Rome"}')],
            status="requires_action",
        ),
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "a search that Google ran",
        body(SEARCH, FOUND, said("Sunny.")),
        streamed([SEARCH], [FOUND], [{"type": "model_output"}, text_delta("Sun"), text_delta("ny.")]),
        text="Sunny.",
        finish="stop",
    ),
    Case(
        "a call that the interaction answers itself",
        body(call({"city": "Paris"}), {"type": "function_result", "call_id": "c1"}, said("Sunny.")),
        text="Sunny.",
        finish="stop",
    ),
    Case(
        "cut off in a call",
        body(call({"city": "Par"}), status="incomplete"),
        streamed([CALL_START, arguments_delta('{"city":"Par')], status="incomplete"),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "arguments that are no object",
        body(call([1]), status="requires_action"),
        streamed([CALL_START, arguments_delta("[1]")], status="requires_action"),
        bad=("not_an_object",),
        finish="tool_calls",
    ),
    Case("paused", body(said("So far."), status="requires_continuation"), text="So far.", finish="pause"),
    Case("failed", body(said("Half"), status="failed"), text="Half", finish="error"),
    Case("empty", body(), streamed(), finish="stop"),
]


@pytest.mark.parametrize("case", params(CASES))
def test_an_interaction_is_read(case: Case) -> None:
    """response-choice: The same answer reads the same on every wire"""
    check_case(case)


def test_a_broken_stream_keeps_what_came() -> None:
    """response-choice: A stream that breaks off leaves what was said"""
    events = [
        *streamed([{"type": "model_output"}, text_delta("Let")], status=None),
        {"event_type": "step.start", "index": 1, "step": CALL_START},
        {"event_type": "step.delta", "index": 1, "delta": arguments_delta('{"city":"Par')},
    ]
    check_case(Case("broken", None, events, text="Let", bad=("truncated",)))
