"""Text that streams where calls are read from text: listeners never see the markup of a call."""

import asyncio
import gzip
import json
from typing import Any, cast

import dspy
import pytest
from asking import heard_of
from support import ADAPTERS, CORPUS_TEXTS, May, get_weather, lm_of
from text_cases import EXAMPLES, TAGGED, Layout, read, streamed

import sigadapt
from sigadapt.testing import Answer, LoopbackProvider

LOOK = "Let me look at the `weather` in *Paris*, as a > b and [1] say."
TOOLS: dict[str, Any] = {"get_weather": {}, "now": {}}


class Two(May):
    """Answer."""

    source: str = dspy.OutputField()


def heard_by_field(
    adapter: Any, answer: Answer, *fields: str, **how: Any
) -> tuple[dict[str, list[str]], Any]:
    """What the listeners to the fields got, and the prediction."""
    chunks, final = heard_of(adapter, answer, *fields, **how)
    return {
        name: [each.chunk for each in chunks if each.signature_field_name == name] for name in fields
    }, final


MODES: list[dict[str, Any]] = [{"tool_calling": "prompted"}, {"tool_calling": "native", "recover": True}]


@pytest.mark.parametrize(
    "column", [("openai", "auto"), ("anthropic", "auto"), ("openai", "litellm")], ids=str
)
@pytest.mark.parametrize("mode", MODES, ids=["prompted", "recover"])
@pytest.mark.parametrize("kind", ADAPTERS)
def test_the_text_before_a_call_streams_without_the_call(kind: Any, mode: Any, column: Any) -> None:
    """streaming: Markup of a call is not shown."""
    heard, final = heard_by_field(
        kind(**mode), Answer(text=f"{LOOK}\n{TAGGED}", chunk=4), "answer", column=column
    )
    assert [call.name for call in final.calls] == ["get_weather"]
    assert "".join(heard["answer"]).strip() == final.calls.text == LOOK
    assert len(heard["answer"]) > 5


@pytest.mark.parametrize("mode", MODES, ids=["prompted", "recover"])
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (sigadapt.ChatAdapter, f"[[ ## answer ## ]]\n{LOOK}\n\n[[ ## source ## ]]\nThe sky\n"),
        (sigadapt.adapters.XMLAdapter, f"<answer>\n{LOOK}\n</answer>\n<source>The sky</source>\n"),
        (sigadapt.JSONAdapter, json.dumps({"answer": LOOK, "source": "The sky"}, indent=1)),
    ],
)
def test_fields_stream_without_the_calls_behind_them(kind: Any, text: str, mode: Any) -> None:
    """streaming: Markup of a call is not shown."""
    heard, final = heard_by_field(
        kind(**mode), Answer(text=f"{text}{TAGGED}", chunk=4), "answer", "source", signature=Two
    )
    assert [call.name for call in final.calls] == ["get_weather"]
    plain, _ = heard_by_field(kind(), Answer(text=text, chunk=4), "answer", "source", signature=Two)
    shown = ["".join(heard[field]).strip() for field in ("answer", "source")]
    assert shown == ["".join(plain[field]).strip() for field in ("answer", "source")]
    assert LOOK in shown[0]
    assert "The sky" in shown[1]
    assert len(heard["answer"]) > 5


PLAIN = [
    (f"<think>Do I need <b>tools</b>? No.</think>\n\n{LOOK} It is sunny.", f"{LOOK} It is sunny."),
    (
        'Write `{"a": 1}` so:\n```json\n{"name": "other", "arguments": {}}\n```\nor <tool_call> as a word.',
        None,
    ),
]


@pytest.mark.parametrize("mode", MODES, ids=["prompted", "recover"])
@pytest.mark.parametrize(("text", "said"), PLAIN, ids=["behind a thinking", "like a call"])
def test_an_answer_without_calls_streams(text: str, said: str | None, mode: Any) -> None:
    """
    streaming: Text behind a thinking streams
    streaming: Held text that is no call is shown
    """
    heard, final = heard_by_field(sigadapt.ChatAdapter(**mode), Answer(text=text, chunk=5), "answer")
    assert not final.calls
    assert "".join(heard["answer"]).strip() == final.answer == (said or text)
    assert len(heard["answer"]) > 5


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ('fetch\n{"city": "Paris"}', {}),
        ("fetch_all_of_it(at=[0.7, 0.8], city='New York');", {}),
        ("functions.fetch(city='Paris')", {}),
        ("fetch\\_all\\_of\\_it(city='Paris')", {}),
        ("'fetch(city=1)'", {}),
        ("<|im_end|>[fetch()]", {}),
        ("other(function=[1, 2])", {"undeclared": True}),
    ],
)
def test_calls_without_markup_are_not_shown(text: str, how: Any) -> None:
    """streaming: Markup of a call is not shown."""
    tools: dict[str, Any] = {"fetch": {}, "fetch_all_of_it": {}}
    assert read(text, tools, **how).calls
    for size in range(1, len(text) + 1):
        assert streamed(text, tools, size, **how)[0] == "", size


PROSE: list[tuple[str, dict[str, bool]]] = [
    ("Sure: {look} at the sky, ", {"undeclared": True}),
    ("I see fetch as a word, not a call, ", {}),
    ("fetching takes long, ", {}),
    ("fetch(city) gives the weather of a city", {}),
    ("fetch [1] gives the weather of a city", {}),
    ("Paris (see below) is a city", {"undeclared": True}),
]


@pytest.mark.parametrize(("text", "how"), PROSE)
def test_prose_that_begins_like_a_call_passes_at_once(text: str, how: Any) -> None:
    """streaming: Held text that is no call is shown."""
    assert streamed(text, {"fetch": {}}, 3, **how)[0].strip(" ,") == text.strip(" ,")


@pytest.mark.parametrize("before", ["", "Sure: ", "abc</think> "])
@pytest.mark.parametrize("indent", [None, 1])
def test_the_calls_of_an_object_of_fields_are_not_shown(before: str, indent: int | None) -> None:
    """streaming: Markup of a call is not shown."""
    how: Any = {"undeclared": True, "layout": Layout("calls", '"{}"', ("answer", "source"))}
    call = {"tool_calls": [{"name": "fetch", "args": {"a": {"b": 1}}}]}
    text = before + json.dumps({"answer": LOOK, "calls": call}, indent=indent)
    for size in (1, 3, 7, 20):
        passed, shown, said = streamed(text, {"fetch": {}}, size, fields=("answer", "calls", "source"), **how)
        assert "calls" not in passed
        assert LOOK in passed
        assert "".join(shown.split()) == "".join((said or "").split())


@pytest.mark.parametrize("value", ["None", "[]", '{"tool_calls": [{"name": "fetch", "args": {}}]}'])
def test_a_calls_field_that_comes_in_pieces_is_not_shown(value: str) -> None:
    """streaming: Markup of a call is not shown."""
    how: Any = {"layout": Layout("calls", "[[ ## {} ## ]]", ("answer",))}
    text = f"[[ ## answer ## ]]\n{LOOK}\n\n[[ ## calls ## ]]\n{value}\n\n[[ ## completed ## ]]"
    for size in (1, 3, 7, 20):
        passed, shown, said = streamed(text, {"fetch": {}}, size, **how)
        assert passed.strip() == f"[[ ## answer ## ]]\n{LOOK}"
        assert shown == said


def test_without_listeners_the_chunks_are_the_providers() -> None:
    """streaming: Chunks for nobody in particular are the provider's."""

    async def go(lm: dspy.LM) -> str:
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(tool_calling="prompted")):
            program = cast("Any", dspy.streamify(dspy.Predict(May)))
            items = [item async for item in program(question="q", tools=[get_weather])]
        chunks = [item for item in items if not isinstance(item, dspy.Prediction)]
        return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)

    with LoopbackProvider([Answer(text=f"{LOOK}\n{TAGGED}", chunk=4)]) as provider:
        assert asyncio.run(go(lm_of(provider))) == f"{LOOK}\n{TAGGED}"


@pytest.mark.skipif(not CORPUS_TEXTS.is_dir(), reason="SIGADAPT_CORPUS names no folder with texts")
@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.nightly), 7, 40])
def test_no_markup_of_the_corpus_is_shown(size: int) -> None:
    """streaming: Markup of a call is not shown."""
    with gzip.open(CORPUS_TEXTS / "cases.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    retracted = 0
    for row in rows:
        tools: dict[str, Any] = {call["name"]: {} for call in row["expected"]["calls"]}
        _, shown, said = streamed(row["text"], tools, size)
        if shown.strip() != (said or "").strip():
            retracted += 1  # a thinking that the prompt had opened; nobody can know before its end
            assert shown.strip().endswith((said or "").strip()), row["id"]
    assert retracted < len(rows) / 45


BEFORE = ["Hi.\n", "Hi. ", "[[ ## answer ## ]]\n", "- one\n\n", "> quoted\n", "Look:\n```\ncode\n```\n"]


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_of_a_call_passes_that_comes_character_by_character(name: str, before: str) -> None:
    """streaming: Markup of a call is not shown."""
    prompted: dict[str, Any] = {"undeclared": True, "call_format": name}
    for how in ({}, prompted):
        _, shown, said = streamed(f"{before}{EXAMPLES[name]}", TOOLS, 1, **how)
        assert shown.strip() == (said or "").strip()
