"""OpenAI's Chat Completions: what no table of answers holds. The answers are in tests/wires/openai-chat."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from wire_bodies import chat
from wire_cases import Json

from sigadapt import choice_from_response
from sigadapt.response import choice_from_stream


def test_one_chunk_reads_as_a_stream_that_broke_off_behind_it() -> None:
    """response-choice: A stream that breaks off leaves what was said"""
    for finish, arguments in (("tool_calls", "{}"), (None, '{"ci')):
        delta = {"content": "Hi", "tool_calls": [{"index": 0, **call(arguments)}]}
        chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
        assert choice_from_response(chunk) == choice_from_stream([chunk])
        assert choice_from_response(chunk).text == "Hi"


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
        choice_from_response(chat({"content": None, "tool_calls": sent})),
        choice_from_stream(chunks({"tool_calls": sent})),
    ):
        assert choice.tool_calls is not None
        assert [(c.id, c.name, c.args) for c in choice.tool_calls] == expected
        assert not choice.tool_calls.invalid


def test_an_id_that_is_a_number_is_told() -> None:
    """response-choice: A repeated id is renumbered and says so"""
    one = call("{}", call_id=7)
    for choice in (
        choice_from_response(chat({"tool_calls": [one]})),
        choice_from_stream(chunks({"tool_calls": [{"index": 0, **one}]})),
    ):
        assert choice.tool_calls is not None
        assert (choice.tool_calls[0].id, choice.tool_calls[0].altered) == ("call_1", ("renumbered",))
