"""Stream text as events: every framing, cut anywhere, with what providers add and what breaks off."""

import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import events_of

from sigadapt.errors import UnreadableResponse

A, B = {"a": "Zürich \u2028 \x85"}, {"b": [1, {"c": None}]}
TEXT_A, TEXT_B = json.dumps(A, ensure_ascii=False), json.dumps(B)

FRAMINGS = {
    "server-sent events": f"data: {TEXT_A}\n\ndata: {TEXT_B}\n\n",
    "CRLF": f"data: {TEXT_A}\r\n\r\ndata: {TEXT_B}\r\n\r\n",
    "CR": f"data: {TEXT_A}\r\rdata: {TEXT_B}\r\r",
    "a byte order mark": f"\ufeffdata: {TEXT_A}\n\ndata: {TEXT_B}\n\n",
    "no space after the colon": f"data:{TEXT_A}\n\ndata:{TEXT_B}\n\n",
    "names, ids, comments": f": hi\nid: 1\nevent: x\nretry: 3\ndata: {TEXT_A}\n\n:\n\ndata: {TEXT_B}\n\n",
    "done": f"data: {TEXT_A}\n\ndata: {TEXT_B}\n\ndata: [DONE]\n\n",
    "behind done": f'data: {TEXT_A}\n\ndata: {TEXT_B}\n\ndata: [DONE]\n\ndata: {{"c": 1}}\n\ndata: no\n\n',
    "done without a blank line before": f"data: {TEXT_A}\n\ndata: {TEXT_B}\ndata: [DONE]",
    "no blank line at the end": f"data: {TEXT_A}\n\ndata: {TEXT_B}",
    "no blank lines": f"data: {TEXT_A}\ndata: {TEXT_B}\n",
    "JSON over several lines": f'data: {TEXT_A}\n\ndata: {{\ndata: "b": [1,\ndata:  {{"c": null}}]}}\n\n',
    "JSON over several lines, CRLF": (
        f'data: {TEXT_A}\r\n\r\ndata: {{\r\ndata: "b": [1,\r\ndata:  {{"c": null}}]}}\r\n\r\n'
    ),
    "heartbeats": f"data:\n\ndata: {TEXT_A}\n\ndata: null\n\ndata: {TEXT_B}\n\ndata\n\n",
    "cut off in an event": f'data: {TEXT_A}\n\ndata: {TEXT_B}\n\ndata: {{"c": "Zür',
    "cut off in a field name": f"data: {TEXT_A}\n\ndata: {TEXT_B}\n\nda",
    "NDJSON": f"{TEXT_A}\n{TEXT_B}\n",
    "NDJSON without a last line end": f"{TEXT_A}\r\n{TEXT_B}",
    "NDJSON cut off": f'{TEXT_A}\n{TEXT_B}\n{{"c": [1, 2',
    "a JSON array": f"[{TEXT_A},\r\n{TEXT_B}]",
    "a JSON array cut off between": f"[{TEXT_A}\n,{TEXT_B}\n,",
    "a JSON array cut off": f'[{json.dumps(A, indent=2)},\n{json.dumps(B, indent=2)},\n{{\n  "c": tr',
    "JSON values with nothing between": f"{TEXT_A}{TEXT_B}",
}


@pytest.mark.parametrize("text", FRAMINGS.values(), ids=FRAMINGS)
def test_framing(text: str) -> None:
    """response-choice: A stream may come as events, SDK objects or SSE text"""
    data = text.encode()
    assert events_of(text) == [A, B]
    assert events_of(data) == [A, B]
    assert events_of(bytearray(data)) == [A, B]
    assert events_of(iter(text)) == [A, B]
    assert events_of([data[n : n + 1] for n in range(len(data))]) == [A, B]


@given(st.sampled_from(sorted(FRAMINGS)), st.lists(st.integers(0, 400), max_size=8))
def test_any_pieces(framing: str, cuts: list[int]) -> None:
    """response-choice: A stream may come as events, SDK objects or SSE text"""
    data = FRAMINGS[framing].encode()
    ends = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    assert events_of(data[a:b] for a, b in itertools.pairwise(ends)) == [A, B]


GARBAGE = {
    "in an event": 'data: {"a": 1}\n\ndata: {broken}\n\n',
    "in the last event": 'data: {"a": 1}\n\ndata: {broken}',
    "an ended event that is only half": 'data: {"a":\n\n',
    "in NDJSON": '{"a": 1}\n{broken}\n{"a": 2}\n',
    "behind NDJSON": '{"a": 1}\nOops',
    "lines without their ends": 'data: {"a": 1}data: {"a": 2}',
}


@pytest.mark.parametrize("text", GARBAGE.values(), ids=GARBAGE)
def test_what_is_no_json_is_not_passed_over(text: str) -> None:
    """response-choice: Something that is no response is unreadable"""
    with pytest.raises(UnreadableResponse, match="invalid JSON"):
        events_of(text)


async def streamed() -> AsyncIterator[str]:
    yield "data: {}"


@pytest.mark.parametrize("thing", [None, 3, A, object(), streamed(), ["data: {}", b"x"], ["x", A]])
def test_what_is_no_stream(thing: Any) -> None:
    """response-choice: Something that is no response is unreadable"""
    with pytest.raises(UnreadableResponse):
        events_of(thing)


@pytest.mark.parametrize("text", ["", "\n\n", ": nothing\n\n", "data: [DONE]\n\n", "[]", "no colon"])
def test_a_stream_of_nothing_has_no_events(text: str) -> None:
    """response-choice: Something that is no response is unreadable"""
    assert events_of(text) == []


@given(st.text() | st.binary())
def test_any_text_gives_events_or_an_error(text: str | bytes) -> None:
    """response-choice: Any JSON gives a Choice or UnreadableResponse"""
    with contextlib.suppress(UnreadableResponse):
        assert all(isinstance(event, dict) for event in events_of(text))
