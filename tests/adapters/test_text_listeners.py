"""Plain text that streams to a listener on the one text output."""

from typing import Any

import pytest
from asking import heard_of
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ADAPTERS, PARIS

import sigadapt
from sigadapt.testing import Answer

PLAIN = "Hello there, how can I help you today?"
ODD = ["[1] is a list, [[ 2 ]] too.", "<b>Hi</b> a < b", "**Hi** `x`", "  \n Hi there, all of you", "42"]


def streamed(adapter: Any, answer: Answer, column: tuple[str, str] = ("openai", "auto")) -> Any:
    """The chunks that a listener to `answer` got, and the prediction."""
    return heard_of(adapter, answer, "answer", column=column)


def said(chunks: list[Any]) -> str:
    return "".join(item.chunk for item in chunks)


COLUMNS = [(wire, "auto") for wire in ("openai", "responses", "anthropic", "gemini")]


@pytest.mark.parametrize("column", [*COLUMNS, ("openai", "litellm"), ("ollama", "litellm")], ids="-".join)
@pytest.mark.parametrize("kind", ADAPTERS)
def test_a_plain_answer_streams(kind: Any, column: tuple[str, str]):
    """streaming: A plain answer streams to the one text output."""
    chunks, final = streamed(kind(tool_calling="native"), Answer(text=PLAIN), column)
    assert len(chunks) > 1
    assert said(chunks) == final.answer == PLAIN
    assert [item.is_last_chunk for item in chunks] == [False] * (len(chunks) - 1) + [True]
    assert {(item.predict_name, item.signature_field_name) for item in chunks} == {("self", "answer")}


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("kind", ADAPTERS)
def test_text_that_looks_like_a_form_streams_whole(kind: Any, text: str):
    """streaming: A plain answer streams to the one text output."""
    chunks, final = streamed(kind(tool_calling="native"), Answer(text=text, chunk=3))
    assert said(chunks).strip() == text.strip() == final.answer.strip()


def test_a_marker_after_other_text_is_not_shown():
    """streaming: Text in the adapter's form streams as under DSPy's adapter."""
    text = f"Sure.\n[[ ## answer ## ]]\n{PLAIN}\n[[ ## completed ## ]]"
    chunks, final = streamed(sigadapt.ChatAdapter(), Answer(text=text, chunk=5))
    assert final.answer == PLAIN
    assert said(chunks).split() == f"Sure. {PLAIN}".split()


def test_text_beside_calls_streams_as_it_comes():
    """streaming: Text beside calls streams as it comes."""
    chunks, final = streamed(sigadapt.ChatAdapter(), Answer(text=PLAIN, calls=[PARIS]))
    assert len(chunks) > 1
    assert said(chunks) == final.calls.text == PLAIN


@settings(max_examples=share(50))
@given(text=st.text(alphabet='[] #<>/a{"` \n', max_size=60).filter(str.strip), size=st.integers(1, 8))
def test_any_unmarked_text_comes_whole(text: str, size: int):
    """streaming: A plain answer streams to the one text output."""
    chunks, final = streamed(sigadapt.ChatAdapter(tool_calling="native"), Answer(text=text, chunk=size))
    assert said(chunks).strip() == text.strip() == final.answer.strip()


MENTIONS = [
    "Write `[[ ## answer ## ]]` first, then say hello.",
    "It is [[ ## answer ## ]] or\n a [[ ## completed ## ]].",
]


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize("size", [1, 5, 200])
@pytest.mark.parametrize("text", MENTIONS)
def test_a_marker_inside_of_a_line_is_text(text: str, size: int, mode: Any):
    """streaming: A marker inside of a line is text."""
    chunks, final = streamed(sigadapt.ChatAdapter(tool_calling=mode), Answer(text=text, chunk=size))
    assert said(chunks) == final.answer == text


@pytest.mark.parametrize("mode", ["native", "prompted"])
def test_the_marker_of_the_end_alone_is_not_said(mode: Any):
    """streaming: A marker inside of a line is text."""
    text = "Sunny.\n\n[[ ## completed ## ]]\n"
    chunks, final = streamed(sigadapt.ChatAdapter(tool_calling=mode), Answer(text=text, chunk=3))
    assert said(chunks).strip() == final.answer == "Sunny."
