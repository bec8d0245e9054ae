"""Gemini's generateContent: what no table of answers holds. The answers are in tests/wires/gemini."""

import json
import re
from typing import Any, cast

import pytest
from google.genai import types as google
from hypothesis import given
from hypothesis import strategies as st
from wire_cases import WIRES, Json, check_case

from sigadapt import choice_from_response
from sigadapt.response import choice_from_stream, choices_from_response

PARIS = {"name": "get_weather", "args": {"city": "Paris"}}


ROME = {"name": "get_weather", "args": {"city": "Rome"}}


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


def test_what_a_later_chunk_leaves_out_stays() -> None:
    """response-choice: A stream gives the Choice of the whole answer"""
    ground = {
        "webSearchQueries": ["q"],
        "groundingChunks": [{"web": {"uri": "https://a.test/", "title": "A"}}],
        "groundingSupports": [{"groundingChunkIndices": [0]}],
    }
    whole = choice_from_response(body({"text": "ab"}, groundingMetadata=ground))
    assert whole.sources
    searched = {"webSearchQueries": ["q"]}
    for first, last in ((ground, {}), ({}, ground), (searched, {**ground, "webSearchQueries": []})):
        events = [body({"text": "a"}, finish=None, groundingMetadata=first)]
        events.append(body({"text": "b"}, groundingMetadata=last))
        assert choice_from_stream(events) == whole


def test_every_candidate_is_read() -> None:
    """response-choice: Every candidate is read"""
    two = {"candidates": [*body({"text": "Yes."})["candidates"], *body({"text": "No."})["candidates"]]}
    assert [choice.text for choice in choices_from_response(two)] == ["Yes.", "No."]


def in_snake_case(value: Any) -> Any:
    """A value of the wire with the names of Google's SDK in Python, but for those of a tool's arguments."""
    if isinstance(value, list):
        return [*map(in_snake_case, cast("list[Any]", value))]
    if not isinstance(value, dict):
        return value
    members = cast("Json", value).items()
    names = [re.sub("([A-Z])", r"_\1", key).lower() for key, _ in members]
    return {
        name: part if key == "args" else in_snake_case(part)
        for name, (key, part) in zip(names, members, strict=True)
    }


@pytest.mark.parametrize("path", sorted((WIRES / "gemini").glob("*.json")), ids=lambda path: path.stem)
def test_the_names_of_googles_sdk_are_read(path: Any) -> None:
    """response-choice: An SDK's object reads as its body"""
    case = json.loads(path.read_text(encoding="utf-8"))
    check_case(case["expect"], in_snake_case(case.get("body")), in_snake_case(case.get("events")))


def test_what_googles_sdk_dumps_reads_as_its_object() -> None:
    """response-choice: An SDK's object reads as its body"""
    page = {"web": {"uri": "https://a.test/", "title": "Weather"}}
    ran = {"executableCode": {"code": "1", "language": "PYTHON"}}
    output = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    called = call({"name": "f", "args": {"a_b": None}}, thoughtSignature="U0lH")
    whole = body({"text": "Hi."}, ran, output, called, groundingMetadata={"groundingChunks": [page]})
    whole["usageMetadata"] = {"promptTokenCount": 3}
    response = google.GenerateContentResponse.model_validate(whole)
    expected = choice_from_response(whole)
    assert expected.tool_calls is not None
    assert expected.tool_calls[0].args == {"a_b": None}
    for dump in (response, response.to_json_dict(), response.model_dump()):
        assert choice_from_response(dump) == expected == choice_from_stream([dump])
        usage = choice_from_response(dump).usage
        assert usage is not None
        assert usage.input_tokens == 3
    blocked = choice_from_response({"prompt_feedback": {"block_reason": "SAFETY"}})
    assert blocked.finish_reason == "content_filter"


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
    entries = [{"numberValue": 1, **({} if path is None else {"jsonPath": path})}]
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


def test_the_first_call_of_a_part_keeps_its_signature() -> None:
    """response-choice: An odd shape keeps its text and calls"""
    signed = {"functionCall": [PARIS, ROME], "thoughtSignature": "U0lH"}
    for choice in (choice_from_response(body(signed)), choice_from_stream(stream(signed))):
        assert choice.tool_calls is not None
        blocks = cast("Any", choice.tool_calls[0].turn.state)["blocks"]
        assert ["thoughtSignature" in block for block in blocks] == [True, False]
