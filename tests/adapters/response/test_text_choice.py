"""choice_from_text: a text, whole or in pieces, as the Choice that a native answer would be."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from support import CORPUS_TEXTS
from text_cases import EXAMPLES

from sigadapt import ToolDecls
from sigadapt.errors import InvalidOption, UnreadableResponse
from sigadapt.response import choice_from_response, choice_from_text

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = ToolDecls([{"name": "get_weather", "parameters": CITY}, {"name": "now"}])
TEXT = """<think>Weather.</think>Let me look.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Zürich"}}
</tool_call>
<tool_call>
<function=now>
</function>
</tool_call>
One moment."""


@pytest.mark.parametrize(
    ("text", "starts", "said", "thought"),
    [
        ("<think>a</think>b", False, "b", "a"),
        ("a</think>b", True, "b", "a"),
        ("<think>a</think>b", True, "b", "a"),
        ("a</think>b", False, "a</think>b", None),
        ("x <think>a</think>b", False, "x <think>a</think>b", None),
        ("<think>a", False, None, "a"),
        ("a</thi", True, None, "a"),
        ("a", True, None, "a"),
        ("<think>a</think><think>b</think>c", False, "c", "ab"),
        ("[THINK]a[/THINK]b", False, "b", "a"),
        ("a[/THINK]b", False, "b", "a"),
        ("<seed:think>a</seed:think>b", False, "b", "a"),
        ("<|channel>thought\na<channel|>b<|channel>c<channel|>", False, "b", "ac"),
        ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>b<|END_RESPONSE|>", False, "b", "a"),
        ("a<|close|>think<|sep|><|open|>response<|sep|>b<|close|>response<|sep|>", False, "b", "a"),
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
            False,
            "b",
            "a",
        ),
        ("analysisaassistantfinalb", False, "b", "a"),
        ("<think></think>b", False, "b", None),
    ],
)
def test_thinking_is_reasoning(text: str, starts: bool, said: str | None, thought: str | None) -> None:
    """text-calls: Thinking is reasoning."""
    choice = choice_from_text(text, TOOLS, starts_in_reasoning=starts)
    assert (choice.text, choice.reasoning, choice.tool_calls) == (said, thought, None)


def test_a_call_ends_a_thinking_that_nothing_closes() -> None:
    """text-calls: A call ends a thinking that nothing closes."""
    for opener, starts in (("<think>", False), ("", True)):
        text = f'{opener}Hm.\n<tool_call>{{"name": "now"}}</tool_call>\nOne moment.'
        choice = choice_from_text(text, TOOLS, starts_in_reasoning=starts)
        assert choice.tool_calls is not None
        assert (len(choice.tool_calls), choice.reasoning, choice.text) == (1, "Hm.", "One moment.")
    between = '<tool_call>{"name": "now"}</tool_call><think>Hm.</think><tool_call>{"name": "now"}</tool_call>'
    choice = choice_from_text(between, TOOLS)
    assert choice.tool_calls is not None
    assert (len(choice.tool_calls), choice.reasoning, choice.text) == (2, "Hm.", None)


@settings(max_examples=share(100))
@given(text=st.sampled_from([TEXT, *EXAMPLES.values()]), data=st.data())
def test_pieces_read_like_the_whole(text: str, data: st.DataObject) -> None:
    """text-calls: Pieces read like the whole."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    def stream() -> Iterator[str]:
        yield from pieces

    assert (
        choice_from_text(stream(), TOOLS) == choice_from_text(pieces, TOOLS) == choice_from_text(text, TOOLS)
    )


@pytest.mark.skipif(not CORPUS_TEXTS.is_dir(), reason="SIGADAPT_CORPUS names no folder with texts")
def test_any_beginning_of_a_text_of_the_corpus_is_read() -> None:
    """text-calls: A broken call is a bad call with its raw text."""
    with gzip.open(CORPUS_TEXTS / "cases.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows[::7]:
        names = {call["name"] for call in row["expected"]["calls"]}
        tools = [{"name": name} for name in sorted(names)]
        text: str = row["text"]
        for end in range(0, len(text), max(1, len(text) // 5)):
            calls = choice_from_text(text[:end], tools).tool_calls
            assert calls is None or {call.name for call in calls} <= names, row["id"]


@pytest.mark.parametrize("text", [None, 5, b"Hi.", ["Hi.", None], [1], [{"content": "Hi."}]])
def test_what_is_no_text_is_refused(text: Any) -> None:
    """text-calls: Calls in a text are typed calls."""
    with pytest.raises(UnreadableResponse, match="expected a text or pieces of one, got a "):
        choice_from_text(text, TOOLS)


@pytest.mark.parametrize("dialect", ["other", 5, ["anthropic"]])
def test_a_dialect_that_is_none_is_refused(dialect: Any) -> None:
    """response-choice: A named dialect is used."""
    with pytest.raises(InvalidOption, match="is not a known dialect"):
        choice_from_response({"choices": []}, dialect=dialect)
