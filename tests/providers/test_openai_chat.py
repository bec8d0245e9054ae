"""OpenAI Chat Completions, whole and streamed, and what compatible servers make of it."""

import json
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_cases import ARGUMENTS, HALVES, SAID, THOUGHT, Case, Json, Sample, check_case, params

from sigadapt import choice_from_response
from sigadapt.response import choice_from_stream, choices_from_response

BODY: Json = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": SAID,
                "reasoning_content": THOUGHT,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": ARGUMENTS},
                    }
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
SAMPLE = Sample(
    "openai-chat",
    BODY,
    [
        {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
        for delta, finish in [
            ({"role": "assistant", "reasoning_content": THOUGHT}, None),
            ({"content": SAID}, None),
            (
                {
                    "tool_calls": [
                        {
                            "index": 0,
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "get_weather", "arguments": HALVES[0]},
                        }
                    ]
                },
                None,
            ),
            ({"tool_calls": [{"index": 0, "function": {"arguments": HALVES[1]}}]}, None),
            ({}, "tool_calls"),
        ]
    ],
)

PARIS = ("c1", "get_weather", {"city": "Paris"})
ROME = ("c2", "get_weather", {"city": "Rome"})


def body(message: Json, finish: Any = "tool_calls", **more: Any) -> Json:
    message = {"role": "assistant", "content": None, "refusal": None, **message}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **more}


def chunks(*deltas: Json, finish: Any = "tool_calls") -> list[Json]:
    """OpenAI's chunks: a role first, the finish reason on an empty delta, the usage last."""
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    every = [{"role": "assistant", "content": ""}, *deltas]
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in every]
    if finish is not None:
        events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return [*events, {**head, "choices": [], "usage": {"total_tokens": 2}}]


def call(arguments: Any, name: Any = "get_weather", call_id: Any = "c1", **more: Any) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def fragment(arguments: str, **more: Any) -> Json:
    return {"tool_calls": [{**more, "function": {"arguments": arguments}}]}


def opening(index: Any, call_id: Any, name: str = "get_weather", arguments: str = "") -> Json:
    return {"tool_calls": [call(arguments, name, call_id, **({} if index is None else {"index": index}))]}


CASES = [
    Case(
        "text",
        body({"content": "It is sunny."}, "stop"),
        chunks({"content": "It is "}, {"content": "sunny."}, finish="stop"),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "text and a call",
        body({"content": "Let me look.", "tool_calls": [call('{"city":"Paris"}')]}),
        chunks(
            {"content": "Let me "},
            {"content": "look."},
            opening(0, "c1"),
            fragment('{"city":', index=0),
            fragment('"Paris"}', index=0),
        ),
        text="Let me look.",
        calls=(PARIS,),
        finish="tool_calls",
    ),
    Case(
        "two calls, their fragments in turn",
        body({"tool_calls": [call('{"city":"Paris"}'), call('{"city":"Rome"}', call_id="c2")]}),
        chunks(
            opening(0, "c1"),
            opening(1, "c2"),
            fragment('{"city":', index=1),
            fragment('{"city":', index=0),
            fragment('"Rome"}', index=1),
            fragment('"Paris"}', index=0),
        ),
        calls=(PARIS, ROME),
        finish="tool_calls",
    ),
    Case(
        "plain stop with a call",
        body({"tool_calls": [call('{"city":"Paris"}')]}, "stop"),
        chunks(opening(0, "c1", arguments='{"city":"Paris"}'), finish="stop"),
        calls=(PARIS,),
        finish="tool_calls",
    ),
    Case(
        "cut off inside the arguments",
        body({"tool_calls": [call('{"city":"Paris"}'), call('{"city":"Ro', call_id="c2")]}, "length"),
        chunks(
            opening(0, "c1", arguments='{"city":"Paris"}'),
            opening(1, "c2", arguments='{"city":"Ro'),
            finish="length",
        ),
        calls=(PARIS,),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "cut off before the arguments",
        body({"tool_calls": [call("", "now")]}, "length"),
        chunks(opening(0, "c1", "now"), finish="length"),
        bad=("truncated",),
        finish="length",
    ),
    Case(
        "cut off after a whole call",
        body({"tool_calls": [call('{"city":"Paris"}')]}, "length"),
        chunks(opening(0, "c1"), fragment('{"city":"Paris"}', index=0), finish="length"),
        calls=(PARIS,),
        finish="length",
    ),
    Case(
        "stopped by the filter inside a call",
        body({"tool_calls": [call("", "now")]}, "content_filter"),
        chunks(opening(0, "c1", "now"), finish="content_filter"),
        bad=("truncated",),
        finish="content_filter",
    ),
    Case(
        "no arguments",
        body({"tool_calls": [call("", "now")]}),
        chunks(opening(0, "c1", "now")),
        calls=(("c1", "now", {}),),
        finish="tool_calls",
    ),
    Case(
        "a refusal",
        body({"refusal": "I cannot help with that."}, "stop"),
        chunks({"refusal": "I cannot "}, {"refusal": "help with that."}, finish="stop"),
        text="I cannot help with that.",
        finish="refusal",
    ),
    Case(
        "DeepSeek's reasoning",
        body({"reasoning_content": "Weather is asked.", "content": "Sunny."}, "stop"),
        chunks(
            {"reasoning_content": "Weather "},
            {"reasoning_content": "is asked."},
            {"content": "Sunny."},
            finish="stop",
        ),
        text="Sunny.",
        reasoning="Weather is asked.",
        finish="stop",
    ),
    Case(
        "OpenRouter's reasoning, which comes twice",
        body(
            {
                "content": "Sunny.",
                "reasoning": "Weather is asked.",
                "reasoning_details": [{"type": "reasoning.text", "text": "Weather is asked."}],
            },
            "stop",
        ),
        chunks(
            {
                "reasoning": "Weather is asked.",
                "reasoning_details": [{"type": "reasoning.text", "text": "Weather is asked."}],
            },
            {"content": "Sunny."},
            finish="stop",
        ),
        text="Sunny.",
        reasoning="Weather is asked.",
        finish="stop",
    ),
    Case(
        "reasoning in details only",
        body(
            {
                "content": "Sunny.",
                "reasoning_details": [{"summary": "Weather "}, {"text": "is asked."}, {"data": "x"}],
            },
            "stop",
        ),
        chunks(
            {"reasoning_details": [{"summary": "Weather "}]},
            {"reasoning_details": [{"text": "is asked."}, {"data": "x"}]},
            {"content": "Sunny."},
            finish="stop",
        ),
        text="Sunny.",
        reasoning="Weather is asked.",
        finish="stop",
    ),
    Case(
        "Mistral's content parts",
        body(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Weather is asked."}]},
                    {"type": "text", "text": "Sunny."},
                ]
            },
            "stop",
        ),
        chunks(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Weather "}]}]},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "is asked."}]}]},
            {"content": "Sun"},
            {"content": "ny."},
            finish="stop",
        ),
        text="Sunny.",
        reasoning="Weather is asked.",
        finish="stop",
    ),
    Case("Mistral's full context", body({"content": "It is"}, "model_length"), text="It is", finish="length"),
    Case(
        "a custom tool's call",
        body({"tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "run", "input": "ls -l"}}]}),
        chunks(
            {
                "tool_calls": [
                    {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "run", "input": "ls"}}
                ]
            },
            {"tool_calls": [{"index": 0, "custom": {"input": " -l"}}]},
        ),
        calls=(("c1", "run", {"input": "ls -l"}),),
        finish="tool_calls",
    ),
    Case(
        "the deprecated function_call",
        body({"function_call": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}, "function_call"),
        chunks(
            {"function_call": {"name": "get_weather", "arguments": ""}},
            {"function_call": {"arguments": '{"city":'}},
            {"function_call": {"arguments": '"Paris"}'}},
            finish="function_call",
        ),
        calls=(("call_1", "get_weather", {"city": "Paris"}),),
        finish="tool_calls",
    ),
    Case(
        "Snowflake's fillers",
        body(
            {
                "content": "Sunny.",
                "refusal": "",
                "annotations": None,
                "function_call": {"name": "", "arguments": ""},
                "tool_calls": [call('{"city":"Paris"}', custom={"name": "", "input": ""})],
            },
            "",
        ),
        text="Sunny.",
        calls=(PARIS,),
    ),
    Case(
        "arguments as an object",
        body({"tool_calls": [call({"city": "Paris"})]}),
        calls=(PARIS,),
        finish="tool_calls",
    ),
    Case("nothing said", body({}, "stop"), chunks(finish="stop"), finish="stop"),
    Case(
        "another provider's word",
        body({"content": "x"}, "insufficient_system_resource"),
        text="x",
        finish="error",
    ),
    Case(
        "a legacy text completion",
        {"choices": [{"text": "Sunny.", "finish_reason": "stop"}]},
        [{"choices": [{"text": "Sun"}]}, {"choices": [{"text": "ny.", "finish_reason": "stop"}]}],
        text="Sunny.",
        finish="stop",
    ),
    Case(
        "not streamed although asked",
        None,
        [body({"content": "Sunny."}, "stop")],
        text="Sunny.",
        finish="stop",
    ),
    Case(
        "a stream that ends without a finish reason",
        None,
        chunks(
            opening(0, "c1", arguments='{"city":"Paris"}'),
            opening(1, "c2", arguments='{"city":'),
            finish=None,
        ),
        calls=(PARIS,),
        bad=("truncated",),
    ),
    Case(
        "a stream that ends before a call's arguments",
        None,
        chunks(opening(0, "c1", "now"), finish=None),
        bad=("truncated",),
    ),
    Case(
        "a stream an error breaks into",
        None,
        [
            *chunks({"content": "Let me "}, opening(0, "c1", "now"), finish=None),
            {"error": {"message": "Overloaded", "code": 503}},
        ],
        text="Let me ",
        bad=("truncated",),
        finish="error",
    ),
]


@pytest.mark.parametrize("case", params(CASES))
def test_case(case: Case) -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    check_case(case)


# Fragments of `get_weather(Paris)` and `get_weather(Rome)` as servers send them that leave the standard.
ODD_FRAGMENTS = {
    "no index": [
        opening(None, "c1"),
        fragment('{"city":'),
        fragment('"Paris"}'),
        opening(None, "c2"),
        fragment('{"city":'),
        fragment('"Rome"}'),
    ],
    "index 0 for both, other ids": [
        opening(0, "c1"),
        fragment('{"city":"Paris"}', index=0),
        opening(0, "c2"),
        fragment('{"city":"Rome"}', index=0),
    ],
    "index 0 and the id in each, in turn": [
        opening(0, "c1"),
        opening(0, "c2"),
        fragment('{"city":', index=0, id="c1"),
        fragment('{"city":', index=0, id="c2"),
        fragment('"Paris"}', index=0, id="c1"),
        fragment('"Rome"}', index=0, id="c2"),
    ],
    "id and name in each, no index": [
        opening(None, "c1", arguments='{"city":'),
        opening(None, "c1", arguments='"Paris"}'),
        opening(None, "c2", arguments='{"city":'),
        opening(None, "c2", arguments='"Rome"}'),
    ],
    "id and name in each": [
        opening(0, "c1", arguments='{"city":'),
        opening(0, "c1", arguments='"Paris"}'),
        opening(1, "c2", arguments='{"city":'),
        opening(1, "c2", arguments='"Rome"}'),
    ],
    "both in one chunk, no index": [
        {"tool_calls": [call('{"city":"Paris"}'), call('{"city":"Rome"}', call_id="c2")]},
    ],
    "the index counts up within a call": [
        opening(0, "c1"),
        fragment('{"city":', index=1),
        fragment('"Paris"}', index=2),
        opening(3, "c2"),
        fragment('{"city":"Rome"}', index=4),
    ],
    "the second call's index first": [
        opening(1, "c1"),
        fragment('{"city":"Paris"}', index=1),
        opening(0, "c2"),
        fragment('{"city":"Rome"}', index=0),
    ],
    "the id comes late": [
        opening(0, None),
        fragment('{"city":', index=0, id="c1"),
        fragment('"Paris"}', index=0),
        opening(1, "c2"),
        fragment('{"city":"Rome"}', index=1),
    ],
    "null and empty fields": [
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": None},
                }
            ]
        },
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "",
                    "type": None,
                    "function": {"name": "", "arguments": '{"city":"Paris"}'},
                }
            ]
        },
        {"tool_calls": [{"index": 0, "id": None, "function": None}]},
        opening(1, "c2"),
        {"tool_calls": None},
        fragment('{"city":"Rome"}', index=1),
    ],
}


@pytest.mark.parametrize("fragments", ODD_FRAGMENTS.values(), ids=ODD_FRAGMENTS)
def test_odd_fragments(fragments: list[Json]) -> None:
    """response-choice: Interleaved fragments of two calls are kept apart"""
    check_case(Case("", None, chunks(*fragments), calls=(PARIS, ROME), finish="tool_calls"))


WITHOUT_IDS = {
    "whole calls of one tool": [
        opening(None, None, arguments='{"a":1}'),
        opening(None, None, arguments='{"a":2}'),
    ],
    "whole calls at index 0": [opening(0, None, arguments='{"a":1}'), opening(0, None, arguments='{"a":2}')],
    "whole calls, the second with an id": [
        opening(0, None, arguments='{"a":1}'),
        opening(0, "call_2", arguments='{"a":2}'),
    ],
}


@pytest.mark.parametrize("fragments", WITHOUT_IDS.values(), ids=WITHOUT_IDS)
def test_whole_calls_without_ids(fragments: list[Json]) -> None:
    """response-choice: A missing id is synthesised"""
    calls = (("call_1", "get_weather", {"a": 1}), ("call_2", "get_weather", {"a": 2}))
    check_case(Case("", None, chunks(*fragments), calls=calls, finish="tool_calls"))


def test_a_known_id_continues_its_call_behind_one_without_an_id() -> None:
    """response-choice: Interleaved fragments of two calls are kept apart"""
    deltas = [
        opening(None, "c1", arguments='{"city":'),
        opening(None, None, "now"),
        fragment('"Paris"}', id="c1"),
    ]
    check_case(Case("", None, chunks(*deltas), calls=(PARIS, ("call_2", "now", {})), finish="tool_calls"))


def test_other_tools_at_one_index_are_two_calls() -> None:
    """response-choice: Interleaved fragments of two calls are kept apart"""
    events = chunks(opening(0, None, "now"), opening(0, None, "today"))
    check_case(
        Case("", None, events, calls=(("call_1", "now", {}), ("call_2", "today", {})), finish="tool_calls")
    )


def test_fragments_nobody_could_tell_apart_make_a_bad_call_that_keeps_them() -> None:
    """response-choice: Arguments that are no object become a tagged bad call"""
    choice = choice_from_stream(chunks(opening(None, "c1"), fragment('{"a":1}'), fragment('{"a":2}')))
    assert choice.tool_calls is not None
    assert [(bad.code, bad.arguments) for bad in choice.tool_calls.invalid] == [
        ("invalid_json", '{"a":1}{"a":2}')
    ]


@given(
    st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=6), max_size=3), min_size=1, max_size=4),
    st.data(),
)
def test_any_cutting_and_interleaving_gives_the_same_calls(all_args: list[Json], data: st.DataObject) -> None:
    """response-choice: Interleaved fragments of two calls are kept apart"""
    texts = [json.dumps(args) for args in all_args]
    deltas = [opening(n, f"c{n}", f"tool_{n}") for n in range(len(texts))]
    rest = dict(enumerate(texts))
    while rest:
        index = data.draw(st.sampled_from(sorted(rest)))
        size = data.draw(st.integers(1, len(rest[index])))
        deltas.append(fragment(rest[index][:size], index=index))
        rest[index] = rest[index][size:]
        if not rest[index]:
            del rest[index]
    choice = choice_from_stream(chunks(*deltas))
    assert choice.tool_calls is not None
    assert [(c.id, c.name, c.args, c.arguments) for c in choice.tool_calls] == [
        (f"c{n}", f"tool_{n}", args, texts[n]) for n, args in enumerate(all_args)
    ]


def test_a_surrogate_pair_cut_in_two_is_made_whole() -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    text = [{"content": "\ud83c"}, {"content": "\udf27"}]
    call = [opening(0, "c1"), fragment('{"city":"\ud83c', index=0), fragment('\udf27"}', index=0)]
    events = chunks(*text, *call)
    calls = (("c1", "get_weather", {"city": "\U0001f327"}),)
    case = Case("", None, events, text="\U0001f327", calls=calls, finish="tool_calls")
    check_case(case, lambda events: [events, "".join(f"data: {json.dumps(event)}\n\n" for event in events)])


class Finish(str, Enum):
    """A finish reason as an SDK gives it: mistralai's, or pydantic's of a server's own schema."""

    STOP = "stop"
    CALLS = "tool_calls"
    MODEL_LENGTH = "model_length"
    OWN = "eos"


@pytest.mark.parametrize("finish", Finish)
def test_a_finish_reason_that_an_sdk_gives_as_an_enum_is_plain_text(finish: Finish) -> None:
    """response-choice: Finish reasons are canonical words"""
    message = {"content": None, "tool_calls": [call('{"city":"Par')]}
    told = choice_from_response(body(message, finish))
    plain = choice_from_response(body(message, finish.value))
    streamed = choice_from_stream(chunks(opening(0, "c1", arguments='{"city":"Par'), finish=finish))
    for choice in (told, streamed):
        assert choice.finish_reason.__class__ is str
        assert choice.finish_reason == plain.finish_reason
        assert choice.tool_calls == plain.tool_calls
    assert told.tool_calls is not None
    assert (told.tool_calls.invalid[0].code == "truncated") is (finish is Finish.MODEL_LENGTH)


def test_every_choice_is_read_whole_and_streamed() -> None:
    """response-choice: Every candidate is read"""
    both = [
        {"index": n, "message": {"content": word}, "finish_reason": "stop"}
        for n, word in enumerate(["Yes.", "No."])
    ]
    assert [choice.text for choice in choices_from_response({"choices": both})] == ["Yes.", "No."]
    events = [
        {"choices": [{"index": n, "delta": {"content": word}}]}
        for n, word in [(1, "N"), (0, "Y"), (1, "o."), (0, "es.")]
    ]
    assert choice_from_stream(events).text == "Yes."


def test_an_unknown_part_stays_in_raw() -> None:
    """response-choice: An unknown block stays in raw"""
    message = {
        "content": [{"type": "hologram", "data": "x"}, {"type": "text", "text": "Hi."}],
        "sparkles": [1],
    }
    whole = body(message, "stop")
    choice = choice_from_response(whole)
    assert choice.text == "Hi."
    assert choice.raw is whole
    assert choice.raw["choices"][0]["message"]["sparkles"] == [1]


FLAT = {"id": "c1", "type": "function", "name": "get_weather", "arguments": '{"city":"Paris"}'}
WHOLE = call('{"city":"Paris"}')
SECOND = call('{"city":"Rome"}', call_id="c2")


def odd_calls(name: str, sent: Any, *calls: Any, bad: tuple[str, ...] = (), finish: str = "stop") -> Case:
    """A value in the place of the list of calls, whole and streamed."""
    said = {"content": "Let me look.", "tool_calls": sent}
    ended = "tool_calls" if (calls or bad) and finish == "stop" else finish
    return Case(
        name, body(said, finish), chunks(said, finish=finish), "Let me look.", None, calls, bad, ended
    )


def odd_text(name: str, content: Any) -> Case:
    whole = body({"content": content}, "stop")
    return Case(name, whole, chunks({"content": content}, finish="stop"), text="It is sunny.", finish="stop")


ODD = [
    odd_calls("one object", WHOLE, PARIS),
    odd_calls("JSON text of the list", json.dumps([WHOLE, SECOND]), PARIS, ROME),
    odd_calls("JSON text of one call", json.dumps(WHOLE), PARIS),
    odd_calls("a list of JSON texts", [json.dumps(WHOLE), SECOND], PARIS, ROME),
    odd_calls("a list in the list", [[WHOLE], SECOND], PARIS, ROME),
    odd_calls("a text that holds no call", "None"),
    odd_calls("numbers and nulls", [None, 3, WHOLE], PARIS),
    odd_calls("text that is not JSON", '[{"id": "c1", ', bad=("missing_name",)),
    odd_calls("text that was cut off", '[{"id": "c1", ', bad=("missing_name",), finish="length"),
    odd_calls("nothing around name and arguments", [FLAT], PARIS),
    odd_calls("a function as JSON text", [{**WHOLE, "function": json.dumps(WHOLE["function"])}], PARIS),
    odd_calls("a function that is no JSON", [{"id": "c1", "function": "{x"}], bad=("missing_name",)),
    odd_text("a list of texts", ["It is ", "sunny."]),
    odd_text("texts among the parts", ["It is ", {"type": "text", "text": "sunny."}]),
    odd_text("one part", {"type": "text", "text": "It is sunny."}),
    Case(
        "content deltas as objects",
        None,
        chunks({"content": {"text": "It is "}}, {"content": {"text": "sunny."}}, finish="stop"),
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "a message that is a text",
        {"choices": [{"message": "It is sunny.", "finish_reason": "stop"}]},
        [{"choices": [{"delta": "It is "}]}, {"choices": [{"delta": "sunny.", "finish_reason": "stop"}]}],
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "one choice",
        {"choices": {"message": {"content": "It is sunny."}, "finish_reason": "stop"}},
        text="It is sunny.",
        finish="stop",
    ),
    Case(
        "a function_call as JSON text",
        body({"function_call": json.dumps(WHOLE["function"])}, "function_call"),
        chunks({"function_call": json.dumps(WHOLE["function"])}, finish="function_call"),
        calls=(("call_1", *PARIS[1:]),),
        finish="tool_calls",
    ),
    Case(
        "reasoning in parts",
        body({"reasoning_content": [{"text": "Hm."}], "content": "Hi."}, "stop"),
        text="Hi.",
        reasoning="Hm.",
        finish="stop",
    ),
]


@pytest.mark.parametrize("case", params(ODD))
def test_odd_shape(case: Case) -> None:
    """response-choice: An odd shape keeps its text and calls"""
    check_case(case)


def test_a_call_that_cannot_be_read_keeps_its_text() -> None:
    """response-choice: An odd shape keeps its text and calls"""
    for sent, kept in [
        ('[{"id": ', '[{"id": '),
        ([{"id": "c1", "tool": {"x": 1}}], '{"id":"c1","tool":{"x":1}}'),
        ([{"id": "c1", "function": "{x"}], "{x"),
    ]:
        choice = choice_from_response(body({"tool_calls": sent}))
        assert choice.tool_calls is not None
        assert [bad.arguments for bad in choice.tool_calls.invalid] == [kept]


def _nested(calls: list[Json], data: st.DataObject) -> Any:
    """The calls in any of the shapes that servers send."""
    shaped = [data.draw(st.sampled_from([each, json.dumps(each), [each]])) for each in calls]
    whole = shaped[0] if len(shaped) == 1 and data.draw(st.booleans()) else shaped
    return json.dumps(whole) if data.draw(st.booleans()) else whole


@given(
    st.lists(st.dictionaries(st.text(max_size=4), st.integers(), max_size=2), min_size=1, max_size=4),
    st.data(),
)
def test_every_call_of_any_shape_comes_out_once(all_args: list[Json], data: st.DataObject) -> None:
    """response-choice: An odd shape keeps its text and calls"""
    calls = [call(json.dumps(args), f"tool_{n}", f"c{n}") for n, args in enumerate(all_args)]
    sent = _nested(calls, data)
    expected = [(f"c{n}", f"tool_{n}", args) for n, args in enumerate(all_args)]
    for choice in (
        choice_from_response(body({"tool_calls": sent})),
        choice_from_stream(chunks({"tool_calls": sent})),
    ):
        assert choice.tool_calls is not None
        assert [(c.id, c.name, c.args) for c in choice.tool_calls] == expected
        assert not choice.tool_calls.invalid
