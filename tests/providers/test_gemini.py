"""Gemini's generateContent, whole and streamed."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_cases import SAID, THOUGHT, ZURICH, Case, Json, Sample, check_case, params

from sigadapt import choice_from_response
from sigadapt.response import choice_from_stream, choices_from_response

BODY: Json = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": THOUGHT, "thought": True},
                    {"text": SAID},
                    {
                        "functionCall": {"id": "c1", "name": "get_weather", "args": ZURICH},
                        "thoughtSignature": "U0lH",
                    },
                ],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "modelVersion": "g",
}
SAMPLE = Sample(
    "gemini",
    BODY,
    [
        {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], "modelVersion": "g"}
        for part in BODY["candidates"][0]["content"]["parts"]
    ]
    + [
        {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP", "index": 0}
            ]
        }
    ],
)

PARIS = {"name": "get_weather", "args": {"city": "Paris"}}
ROME = {"name": "get_weather", "args": {"city": "Rome"}}
PARIS_CALL = ("call_1", "get_weather", {"city": "Paris"})
ROME_CALL = ("call_2", "get_weather", {"city": "Rome"})


def body(*parts: Json, finish: Any = "STOP", **more: Any) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **more}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": {"totalTokenCount": 2}, "modelVersion": "g"}


def stream(*parts: Json, finish: Any = "STOP") -> list[Json]:
    """A part an event; the finish reason on an empty last one."""
    events = [body(part, finish=None) for part in parts]
    return events if finish is None else [*events, body({"text": ""}, finish=finish)]


def call(function: Json, **more: Any) -> Json:
    return {"functionCall": function, **more}


def leaf(path: str, *, more: bool = False, **value: Any) -> Json:
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


STREAMED_CALL = [
    call({"name": "get_weather", "id": "g1", "willContinue": True}, thoughtSignature="U0lH"),
    call({"partialArgs": [leaf("$.city", stringValue="Par", more=True)], "willContinue": True}),
    call({"partialArgs": [leaf("$.city", stringValue="is")], "willContinue": True}),
    call(
        {
            "partialArgs": [
                leaf("$.days[0].n", numberValue=3),
                leaf("$.days[1]", boolValue=False),
                leaf("$['a b']", nullValue="NULL_VALUE"),
            ],
            "willContinue": True,
        }
    ),
]
STREAMED_ARGS = {"city": "Paris", "days": [{"n": 3}, False], "a b": None}

CASES = [
    Case(
        "text",
        body({"text": "It is "}, {"text": "sunny."}),
        stream({"text": "It is "}, {"text": "sunny."}),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "thought, text and two calls without ids",
        body(
            {"text": "Weather is asked.", "thought": True},
            {"text": "Let me look."},
            call(PARIS, thoughtSignature="U0lH"),
            call(ROME),
        ),
        stream(
            {"text": "Weather ", "thought": True},
            {"text": "is asked.", "thought": True},
            {"text": "Let me "},
            {"text": "look."},
            call(PARIS, thoughtSignature="U0lH"),
            call(ROME),
        ),
        text="Let me look.",
        reasoning="Weather is asked.",
        calls=(PARIS_CALL, ROME_CALL),
        finish="tool_calls",
    ),
    Case(
        "ids",
        body(call({**PARIS, "id": "g1"})),
        stream(call({**PARIS, "id": "g1"})),
        calls=(("g1", *PARIS_CALL[1:]),),
        finish="tool_calls",
    ),
    Case(
        "no arguments",
        body(call({"name": "now"})),
        stream(call({"name": "now", "args": {}})),
        calls=(("call_1", "now", {}),),
        finish="tool_calls",
    ),
    Case(
        "the same call twice",
        body(call(PARIS), call(PARIS)),
        stream(call(PARIS), call(PARIS)),
        calls=(PARIS_CALL, ("call_2", *PARIS_CALL[1:])),
        finish="tool_calls",
    ),
    Case(
        "what Google ran itself",
        body(
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
            {"toolCall": {"id": "t", "args": {}}},
            {"toolResponse": {"id": "t"}},
            {"hologram": {}},
            {"text": "Hi."},
        ),
        stream(
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
            {"hologram": {}},
            {"text": "Hi."},
        ),
        text="Hi.",
        finish="stop",
    ),
    Case(
        "a tool nobody declared",
        body(call({"name": "rm_rf", "args": {}}), finish="UNEXPECTED_TOOL_CALL"),
        calls=(("call_1", "rm_rf", {}),),
        finish="UNEXPECTED_TOOL_CALL",
    ),
    Case(
        "cut off after a call, which cannot be known to be whole",
        body(call(PARIS), call(ROME), finish="MAX_TOKENS"),
        stream(call(PARIS), call(ROME), finish="MAX_TOKENS"),
        calls=(PARIS_CALL,),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "stopped for safety",
        body({"text": "I"}, finish="SAFETY"),
        stream({"text": "I"}, finish="SAFETY"),
        text="I",
        finish="content_filter",
    ),
    Case(
        "a blocked prompt",
        {"promptFeedback": {"blockReason": "SAFETY"}},
        [{"promptFeedback": {"blockReason": "SAFETY"}}],
        finish="content_filter",
    ),
    Case(
        "a call that the provider could not read",
        body(finish="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call"),
        bad=("malformed_call",),
        finish="MALFORMED_FUNCTION_CALL",
    ),
    Case(
        "arguments streamed leaf by leaf, ended by an empty call",
        None,
        stream(*STREAMED_CALL, call({})),
        calls=(("g1", "get_weather", STREAMED_ARGS),),
        finish="tool_calls",
    ),
    Case(
        "arguments streamed leaf by leaf, ended by the answer's end",
        None,
        stream(*STREAMED_CALL),
        calls=(("g1", "get_weather", STREAMED_ARGS),),
        finish="tool_calls",
    ),
    Case(
        "a call streamed leaf by leaf between two whole ones",
        None,
        stream(
            call(PARIS),
            call({"name": "get_weather", "willContinue": True}),
            call({"partialArgs": [leaf("$.city", stringValue="Rome")]}),
            call(PARIS),
        ),
        calls=(PARIS_CALL, ROME_CALL, ("call_3", *PARIS_CALL[1:])),
        finish="tool_calls",
    ),
    Case(
        "two calls of one tool streamed leaf by leaf",
        None,
        stream(
            call({"name": "get_weather", "willContinue": True}),
            call({"partialArgs": [leaf("$.city", stringValue="Paris")]}),
            call({"name": "get_weather", "willContinue": True}),
            call({"partialArgs": [leaf("$.city", stringValue="Rome")]}),
        ),
        calls=(PARIS_CALL, ROME_CALL),
        finish="tool_calls",
    ),
    Case(
        "leaves that make no object",
        None,
        stream(
            call({"name": "f", "partialArgs": [leaf("$.a", numberValue=1), leaf("$.a.b", numberValue=2)]})
        ),
        bad=("not_an_object",),
        finish="tool_calls",
    ),
    Case(
        "a stream that breaks off between leaves",
        None,
        stream(call(PARIS), *STREAMED_CALL, finish=None),
        calls=(PARIS_CALL,),
        bad=("truncated",),
    ),
    Case(
        "a stream that breaks off after a whole call",
        None,
        stream({"text": "Let me look."}, call(PARIS), finish=None),
        text="Let me look.",
        calls=(PARIS_CALL,),
    ),
    Case(
        "cut off between leaves",
        None,
        [*stream(*STREAMED_CALL, finish=None), body(finish="MAX_TOKENS")],
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "a stream an error breaks into",
        None,
        [
            *stream({"text": "Let me"}, finish=None),
            {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}},
        ],
        text="Let me",
        finish="error",
    ),
]


@pytest.mark.parametrize("case", params(CASES))
def test_case(case: Case) -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    check_case(case)


def test_a_streamed_text_ends_at_its_signature() -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    parts: list[Json] = [
        {"text": "A", "thoughtSignature": "U0lH"},
        {"text": "B"},
        call(PARIS, thoughtSignature="U0lI"),
    ]
    whole = choice_from_response(body(*parts))
    assert choice_from_stream(stream(*parts)) == whole
    pieces: list[Json] = [{"text": "A"}, {"text": "", "thoughtSignature": "U0lH"}, *parts[1:]]
    assert choice_from_stream(stream(*pieces)) == whole


def test_every_candidate_is_read() -> None:
    """response-choice: Every candidate is read"""
    two = {"candidates": [*body({"text": "Yes."})["candidates"], *body({"text": "No."})["candidates"]]}
    assert [choice.text for choice in choices_from_response(two)] == ["Yes.", "No."]


def test_an_argument_as_text_is_no_object() -> None:
    """response-choice: Arguments that are no object become a tagged bad call"""
    choice = choice_from_response(body(call({"name": "f", "args": '{"a": 1}'})))
    assert choice.tool_calls is not None
    assert [(bad.code, bad.arguments) for bad in choice.tool_calls.invalid] == [
        ("not_an_object", '"{\\"a\\": 1}"')
    ]


def test_arguments_given_both_ways_are_kept_and_refused() -> None:
    """response-choice: Arguments that are no object become a tagged bad call"""
    both = {**PARIS, "partialArgs": [leaf("$.city", stringValue="Rome")]}
    choice = choice_from_stream(stream(call(both)))
    assert choice.tool_calls is not None
    assert choice.tool_calls.invalid[0].code == "not_an_object"
    assert "Paris" in choice.tool_calls.invalid[0].arguments
    assert "Rome" in choice.tool_calls.invalid[0].arguments


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
trees = st.recursive(
    scalars,
    lambda children: st.lists(children, min_size=1) | st.dictionaries(st.text(), children, min_size=1),
    max_leaves=12,
)


def leaves(path: str, value: Any) -> list[Json]:
    """The entries Google would send for a value: one a leaf, a text in pieces of two characters."""
    if isinstance(value, dict):
        quoted = [
            (key.replace("\\", "\\\\").replace("'", "\\'"), child)
            for key, child in cast("Json", value).items()
        ]
        return [entry for key, child in quoted for entry in leaves(f"{path}['{key}']", child)]
    if isinstance(value, list):
        children = enumerate(cast("list[Any]", value))
        return [entry for n, child in children for entry in leaves(f"{path}[{n}]", child)]
    if isinstance(value, str):
        pieces = [value[n : n + 2] for n in range(0, len(value), 2)] or [""]
        return [leaf(path, stringValue=piece, more=True) for piece in pieces]
    key = "nullValue" if value is None else "boolValue" if isinstance(value, bool) else "numberValue"
    return [{"jsonPath": path, key: "NULL_VALUE" if value is None else value}]


@pytest.mark.slow
def of_leaves(entries: list[Json]) -> Any:
    """Return the arguments of a call that came leaf by leaf; the text of a bad call's, read as JSON."""
    call = {"functionCall": {"name": "f", "partialArgs": entries}}
    calls = choice_from_response(body(call)).tool_calls
    assert calls is not None
    return calls[0].args if calls.tool_calls else json.loads(calls.invalid[0].arguments)


@given(st.dictionaries(st.text(), trees, min_size=1))
def test_any_arguments_come_back_from_their_leaves(args: Json) -> None:
    """response-choice: Arguments come out as they were sent"""
    assert of_leaves(leaves("$", args)) == args


@pytest.mark.parametrize(
    "path", ["", "$", "city", "$.a[", "$.a[-1]", "$.a[99]", "$[0]", "$.a[0][1]", "$..a", None, 3]
)
def test_a_path_that_names_no_place_keeps_the_entries(path: Any) -> None:
    """response-choice: Arguments that are no object become a tagged bad call"""
    entries = [{"jsonPath": path, "numberValue": 1}]
    assert of_leaves(entries) == entries


TWICE: dict[str, list[Json]] = {
    "a number twice": [leaf("$.a", numberValue=1), leaf("$.a", numberValue=2)],
    "a text after a number": [leaf("$.a", numberValue=1), leaf("$.a", stringValue="x")],
    "a number after a text": [leaf("$.a", stringValue="x"), leaf("$.a", numberValue=1)],
    "two spellings of a member": [leaf("$.a", numberValue=1), leaf("$['a']", numberValue=1)],
    "two spellings of an element": [leaf("$.a[0]", numberValue=1), leaf("$['a'][0]", numberValue=1)],
    "an element of an object": [leaf("$.a.b", numberValue=1), leaf("$.a[0]", numberValue=1)],
}


@pytest.mark.parametrize("entries", TWICE.values(), ids=TWICE)
def test_a_place_that_is_taken_keeps_the_entries(entries: list[Json]) -> None:
    """response-choice: Arguments that are no object become a tagged bad call"""
    assert of_leaves(entries) == entries


def both(name: str, *parts: Any, finish: str = "tool_calls", **expected: Any) -> Case:
    return Case(name, body(*parts), stream(*parts), finish=finish, **expected)


ODD = [
    both("a list of calls in a part", {"functionCall": [PARIS, ROME]}, calls=(PARIS_CALL, ROME_CALL)),
    both("a call as JSON text", {"functionCall": json.dumps(PARIS)}, calls=(PARIS_CALL,)),
    both("a call that is no JSON", {"functionCall": "{x"}, bad=("missing_name",)),
    both(
        "a list of JSON texts beside text",
        {"text": "Hm.", "functionCall": [json.dumps(PARIS), ROME]},
        text="Hm.",
        calls=(PARIS_CALL, ROME_CALL),
    ),
    both("an empty list of calls", {"text": "Hi.", "functionCall": []}, text="Hi.", finish="stop"),
    both("parts as texts", "It is ", "sunny.", text="It is sunny.", finish="stop"),
    Case(
        "one part",
        {"candidates": [{"content": {"parts": {"text": "Hi."}}, "finishReason": "STOP"}]},
        text="Hi.",
        finish="stop",
    ),
    Case(
        "content as a text",
        {"candidates": [{"content": "Hi.", "finishReason": "STOP"}]},
        text="Hi.",
        finish="stop",
    ),
    Case(
        "one candidate",
        {"candidates": {"content": {"parts": [{"text": "Hi."}]}, "finishReason": "STOP"}},
        text="Hi.",
        finish="stop",
    ),
]


@pytest.mark.parametrize("case", params(ODD))
def test_odd_shape(case: Case) -> None:
    """response-choice: An odd shape keeps its text and calls"""
    check_case(case)


def test_the_first_call_of_a_part_keeps_its_signature() -> None:
    """response-choice: An odd shape keeps its text and calls"""
    signed = {"functionCall": [PARIS, ROME], "thoughtSignature": "U0lH"}
    for choice in (choice_from_response(body(signed)), choice_from_stream(stream(signed))):
        assert choice.tool_calls is not None
        blocks = cast("Any", choice.tool_calls[0].turn.state)["blocks"]
        assert ["thoughtSignature" in block for block in blocks] == [True, False]
