"""A stream that just ends, over HTTP: an error on both engines, and a partial answer that says so."""

from typing import Any

import dspy
import pytest
from asking import ask, encoded, events
from support import PARIS

from sigadapt import choice_from_response
from sigadapt.testing import Answer

pytestmark = pytest.mark.usefixtures("closed_streams")

ROUTES = [
    *((wire, "auto") for wire in ("openai", "responses", "anthropic", "gemini")),
    *((wire, "litellm") for wire in ("openai", "anthropic", "gemini")),
]


def partial(wire: str, engine: str, sent: bytes) -> Any:
    """The partial answer of the error that a stream ends in."""
    error = ask(wire, sent, engine, is_streamed=True)
    assert isinstance(error, dspy.LMStreamAssemblyError)
    assert "ended without a completion" in str(error)
    return None if error.partial is None else choice_from_response(error.partial)


@pytest.mark.parametrize(("wire", "engine"), ROUTES)
def test_a_stream_that_just_ends_is_no_answer(wire: str, engine: str) -> None:
    """streaming: A stream that just ends is an error"""
    sent = encoded(wire, events(wire, Answer(text="It is sunny today.")))
    halves = [partial(wire, engine, b"".join(sent[:end])) for end in (1, len(sent) // 2)]
    assert [half.finish_reason for half in halves if half is not None] == [None] * (2 - halves.count(None))
    assert halves[-1] is not None
    assert "It is sunny today.".startswith(halves[-1].text or "")
    assert ask(wire, b"".join(sent), engine, is_streamed=True).answer == "It is sunny today."


@pytest.mark.parametrize(("wire", "engine"), [route for route in ROUTES if route[0] != "gemini"])
def test_a_call_of_a_stream_that_just_ends_is_cut_off(wire: str, engine: str) -> None:
    """streaming: The partial answer says that it did not end"""
    sent = encoded(wire, events(wire, Answer(calls=[PARIS])))
    named = next(n for n, event in enumerate(sent) if b"get_weather" in event)
    pieces = next(n for n, event in enumerate(sent) if b"Paris" in event)
    for end, kept in ((named + 1, ""), (pieces, '{"city":')):
        choice = partial(wire, engine, b"".join(sent[:end]))
        assert choice is not None
        assert choice.finish_reason is None
        assert choice.tool_calls is not None
        assert [(bad.code, bad.arguments) for bad in choice.tool_calls.invalid] == [("truncated", kept)]
        assert len(choice.tool_calls) == 0
    assert ask(wire, b"".join(sent), engine, is_streamed=True).calls[0].args == {"city": "Paris"}
