"""Which output field each piece of a streamed text belongs to, however the text is cut."""

import json
from itertools import pairwise
from typing import Any, cast

import dspy
from hypothesis import given
from hypothesis import strategies as st
from internals import field_texts


class Three(dspy.Signature):
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()
    last: str | None = dspy.OutputField()
    score: float = dspy.OutputField()


FIELDS: Any = cast("Any", Three).output_fields
VALUES = st.text(
    st.sampled_from(["a", "é", "😀", " ", "\n", "[", "]", "#", "<", ">", '"', "\\", "{", ",", ":"])
)


def told(marker: str, text: str, cuts: list[int], default: str | None = "") -> dict[str | None, str]:
    reader, fields = field_texts(FIELDS, marker, default), dict[str | None, str]()
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    for start, end in pairwise(places):
        for name, piece, is_anew in reader.take(text[start:end]) if end > start else ():
            fields[name] = piece if is_anew else fields.get(name, "") + piece
    return fields


CUTS = st.lists(st.integers(0, 400), max_size=60)


@given(VALUES, VALUES, CUTS, st.booleans())
def test_json(answer: str, last: str, cuts: list[int], ascii_only: bool) -> None:
    """watching-runs: The pieces of a text are its output."""
    row = {"score": 1.5, "x": {"answer": "no"}, "answer": answer, "y": ["]", {"last": "no"}], "last": last}
    fields = told('"{}"', json.dumps(row, ensure_ascii=ascii_only), cuts)
    assert fields == {name: value for name, value in (("answer", answer), ("last", last)) if value}


@given(VALUES, VALUES, CUTS)
def test_lines(answer: str, last: str, cuts: list[int]) -> None:
    """watching-runs: The pieces of a text are its output."""
    text = f"Sure.\n[[ ## score ## ]]\n1.5\n\n[[ ## answer ## ]]\n{answer}\n\n[[ ## last ## ]]\n{last}\n\n"
    fields = told("[[ ## {} ## ]]", f"{text}[[ ## completed ## ]]\n", cuts)
    wanted = {"answer": answer.strip(), "last": last.strip()}
    assert fields == {name: value for name, value in wanted.items() if value}


@given(VALUES, VALUES, CUTS)
def test_tags(answer: str, last: str, cuts: list[int]) -> None:
    """watching-runs: The pieces of a text are its output."""
    text = f"<score>1.5</score>\n<answer>\n{answer}\n</answer>\n<last>{last}</last>"
    wanted = {"answer": answer.strip(), "last": last.strip()}
    assert told("<{}>", text, cuts) == {name: value for name, value in wanted.items() if value}


@given(CUTS)
def test_text_without_marks_is_the_default(cuts: list[int]) -> None:
    """watching-runs: The pieces of a text are its output."""
    for marker in ("[[ ## {} ## ]]", "<{}>", '"{}"'):
        assert told(marker, "It is <b>sunny</b> [today].", cuts, None) == {
            None: "It is <b>sunny</b> [today]."
        }
        assert told(marker, "It is sunny.", cuts, "answer") == {"answer": "It is sunny."}
    assert told("[[ ## {} ## ]]", "It is sunny.", cuts) == told("", "It is sunny.", cuts) == {}


@given(CUTS)
def test_a_field_begins_anew_behind_words(cuts: list[int]) -> None:
    """watching-runs: The pieces of a text are its output."""
    marked_texts = {
        "[[ ## {} ## ]]": "[[ ## score ## ]]\n5\n\n[[ ## answer ## ]]\nIt is 5.\n\n[[ ## completed ## ]]",
        "<{}>": "<score>5</score><answer>\nIt is 5.\n</answer>",
        '"{}"': '{"score": 5, "answer": "It is 5."}',
    }
    for marker, text in marked_texts.items():
        assert told(marker, f"Let me look.\n\n{text}", cuts, "answer") == {"answer": "It is 5."}


@given(CUTS)
def test_an_object_without_a_field_is_text(cuts: list[int]) -> None:
    """watching-runs: The pieces of a text are its output."""
    text = 'As JSON:\n{"city": "Paris"}\n{ "x'
    fields = told('"{}"', f"{text}\n.", cuts, "answer")
    assert fields == {"answer": f"{text}\n."}


def test_a_key_with_escapes() -> None:
    """watching-runs: A key that never ends is read once."""
    text = '{"\\"answer\\\\": "x", "answer": "y"}'
    assert told('"{}"', text, [*range(len(text))]) == {"answer": "y"}
