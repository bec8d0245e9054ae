"""Which output field each piece of a streamed text belongs to, however the text is cut."""

import json
from typing import Any

import dspy
from agents import serving, text_of, watch
from hypothesis import given
from hypothesis import strategies as st

import sigadapt
from sigadapt.testing import Answer


class Three(dspy.Signature):
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()
    last: str | None = dspy.OutputField()
    score: float = dspy.OutputField()


VALUES = st.text(
    st.sampled_from(["a", "é", "😀", " ", "\n", "[", "]", "#", "<", ">", '"', "\\", "{", ",", ":"])
)
CHUNKS = st.integers(1, 40)


def streamed(adapter: Any, text: str, chunk: int, signature: Any = Three) -> list[Any]:
    with serving([Answer(text=text, chunk=chunk)]), dspy.context(adapter=adapter):
        return watch(dspy.Predict(signature), question="?")


@given(VALUES, VALUES, CHUNKS, st.booleans())
def test_json(answer: str, last: str, chunk: int, ascii_only: bool) -> None:
    """watching-runs: The pieces of a text are its output."""
    row = {"score": 1.5, "x": {"answer": "no"}, "answer": answer, "y": ["]", {"last": "no"}], "last": last}
    events = streamed(sigadapt.JSONAdapter(), json.dumps(row, ensure_ascii=ascii_only), chunk)
    assert (text_of(events), text_of(events, "last")) == (answer, last)


@given(VALUES, VALUES, CHUNKS)
def test_lines_and_tags(answer: str, last: str, chunk: int) -> None:
    """watching-runs: The pieces of a text are its output."""
    rows = {"score": "1.5", "answer": answer, "last": last}
    lines = "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in rows.items())
    tags = "\n".join(f"<{name}>\n{value}\n</{name}>" for name, value in rows.items())
    texts = {
        sigadapt.ChatAdapter(): f"Sure.\n{lines}[[ ## completed ## ]]\n",
        sigadapt.adapters.XMLAdapter(): tags,
    }
    for adapter, text in texts.items():
        events = streamed(adapter, text, chunk)
        assert (text_of(events), text_of(events, "last")) == (answer.strip(), last.strip())


def test_a_key_with_escapes() -> None:
    """watching-runs: A key that never ends is read once."""
    text = '{"\\"answer\\\\": "x", "answer": "y"}'
    assert text_of(streamed(sigadapt.JSONAdapter(), text, 1, "question -> answer")) == "y"
