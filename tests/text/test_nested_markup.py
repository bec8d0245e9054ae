"""Quoted, nested and cut markup: no call comes out of a value, a thought or a quotation."""

# ruff: noqa: RUF001  (tokens of models hold full-width bars)

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from budgets import share
from hypothesis import example, given, settings
from hypothesis import strategies as st
from internals import Scan
from support import CORPUS
from text_cases import CALL, EXAMPLES, FIELDS, PARIS, TAGGED, WRITERS, read, streamed, tool

import sigadapt
from benchmarks.answers import measure
from sigadapt.response import choice_from_text

TOOLS = [tool("write_file", path="string", content="string"), tool("get_weather", city="string"), tool("now")]
SCHEMAS = {each["name"]: each["parameters"] for each in TOOLS}
FIELD = '[[ ## calls ## ]]\n{"name": "get_weather", "args": {"city": "Paris"}}\n[[ ## completed ## ]]'
MARKUP = [*EXAMPLES.values(), FIELD, "</tool_call>", "<think>", "</think>", "```", "~~~", "`"]
markup = st.lists(st.sampled_from([*MARKUP, "words ", "\n"]), min_size=1, max_size=4).map("".join)


def calls_in(text: str, **how: Any) -> list[tuple[Any, Any]]:
    return [(call.name, call.arguments) for _, call in read(text, SCHEMAS, **how).calls]


@settings(max_examples=share(300))
@given(content=markup, writer=st.sampled_from([*WRITERS]))
def test_no_call_comes_out_of_a_value(content: str, writer: str) -> None:
    """text-calls: Markup inside of a value is a value."""
    args = {"path": "a.md", "content": content}
    calls = choice_from_text(WRITERS[writer]([("write_file", args)], SCHEMAS), TOOLS).tool_calls
    assert calls is not None
    assert [(call.name, call.args) for call in calls] == [("write_file", args)]


def quoted(text: str) -> list[str]:
    indented = "".join(f"    {line}" for line in text.splitlines(keepends=True))
    listed = "".join(f"   {line}" for line in f"`````xml\n{text}\n`````".splitlines(keepends=True))
    return [
        f"The form:\n\n`````\n{text}\n`````\n\nThat is all.",
        f"The form:\n\n~~~~~text\n{text}\n~~~~~\n\nThat is all.",
        f"1. The form:\n\n{listed}\n\n2. Done.",
        f"The form:\n\n{indented}\n\nThat is all.",
        f"Write this:\n\n<pre><code>{text}</code></pre>\n\nDone.",
        "They write:\n\n" + "\n".join(f"> {line}" for line in text.splitlines()) + "\n\nDone.",
        json.dumps({"answer": f"They write {text}"}),
    ]


@pytest.mark.parametrize("example", [*EXAMPLES.values(), FIELD])
def test_no_call_comes_out_of_a_quotation(example: str) -> None:
    """text-calls: Prose, code and examples are no calls."""
    for text in quoted(example):
        assert calls_in(text) == []
        for form in WRITERS:
            assert calls_in(text, undeclared=True, call_format=form, layout=FIELDS) == []


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_a_cut_makes_no_other_call(example: str) -> None:
    """text-calls: A broken call is a bad call with its raw text."""
    properties = {"city": {"type": "string"}}
    optional = [{"name": "get_weather", "parameters": {"type": "object", "properties": properties}}]
    for end in range(len(example)):
        calls = choice_from_text(example[:end], optional).tool_calls
        assert [call.args for call in calls or ()] in ([], [{"city": "Paris"}]), example[:end]
    for text in (*quoted(example)[:5], f"Look: <!-- {example} -->"):
        for end in range(0, len(text) * ("```" not in example), 3):
            calls = choice_from_text(text[:end], optional).tool_calls
            assert [call.name for call in calls or ()] == [], text[:end]


@settings(max_examples=share(200))
@given(thought=st.lists(st.sampled_from([*EXAMPLES.values(), FIELD, "Hm. ", "\n"])).map("".join))
def test_no_call_comes_out_of_a_thought(thought: str) -> None:
    """text-calls: A call in closed thinking is only thought of."""
    text = f"<think>{thought}</think>No."
    prompted: dict[str, Any] = {"undeclared": True, "call_format": "hermes", "layout": FIELDS}
    for how in ({}, prompted):
        reading = read(text, SCHEMAS, **how)
        assert (reading.calls, reading.text) == ([], "No.")


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_every_format_is_read_whatever_was_asked_for(example: str, form: str) -> None:
    """prompted-calling: A call in words."""
    schemas = {"get_weather": SCHEMAS["get_weather"]}
    reading = read(example, schemas, undeclared=True, call_format=form)
    [(_, call)] = reading.calls
    assert (call.name, reading.text) == ("get_weather", None)
    args = json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments
    assert args == {"city": "Paris"}


LOOK = "Let me look at the `weather` in *Paris*, as a > b and [1] say."
PIECES = [
    *MARKUP,
    *("Let me look. ", "\n", "\n\n", " ", "a > b", "[1]", "{x}", "Paris (France) is", "<b>", "今天"),
]
BESIDE_CALLS = [
    *(
        TAGGED,
        LOOK,
        "<think>",
        "</think>",
        "<tool",
        "_call>",
        "now()",
        "[now()]",
        '{"name": "now"}',
        "`",
        "```",
    ),
    *("\n", " ", "f", "Action: ", "[[ ## answer ## ]]\n", "<b>", "It is.", "今天", '{"a": [1', "<|im_end|>"),
    *("<answer>", '{"answer": "'),
]
streams = st.sampled_from([PIECES, BESIDE_CALLS]).flatmap(
    lambda each: st.lists(st.sampled_from(each), max_size=8)
)


@settings(max_examples=share(400))
@given(text=streams.map("".join), sizes=st.lists(st.integers(1, 40), min_size=1))
@example(f"</tool_call>{TAGGED}", [1])
@example(f"```>>>get_weather\n{CALL}{TAGGED[:-12]}", [1])
@example(f'{LOOK}{{"answer": "<|im_end|>{LOOK}{TAGGED}', [1])
def test_a_stream_says_what_the_whole_says(text: str, sizes: list[int]) -> None:
    """streaming: Held text that is no call is shown."""
    _, shown, said = streamed(text, SCHEMAS, *sizes)
    # A closing tag, or Harmony's headers without tokens, may show later that all before it was thought.
    is_thought = "</think>" in text or "<think>" in text
    assert is_thought or "".join(shown.split()) == "".join((said or "").split())


class CountingScan(Scan):
    """A text whose reading is counted."""

    spent = 0

    def charge(self, characters: int) -> None:
        CountingScan.spent += characters + 1


GROWING = [
    *(" ", "\n", "{", "}", "[", '"', "`", "``` ", "~~~\n", "x", "> ", ">>> a\n", "<code>"),
    "<p:invoke name='now'>",
]


def grown() -> Iterator[str]:
    yield from GROWING
    for text in EXAMPLES.values():
        yield from (text, text[: len(text) // 2], text.split("get_weather")[0] or "get_weather")


@pytest.mark.parametrize("piece", list(dict.fromkeys(grown())))
def test_work_grows_with_length(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """text-calls: Hostile text ends."""
    monkeypatch.setattr("sigadapt.text.reader.Scan", CountingScan)
    work = list[int]()
    for size in (2_000, 16_000):
        CountingScan.spent = 0
        choice_from_text(f'<tool_call>{{"name": "get_weather", "arguments": {{"city": "{piece * 9}', TOOLS)
        choice_from_text(piece * (size // len(piece)), TOOLS)
        work.append(CountingScan.spent)
    assert work[1] <= 10 * work[0] + 100_000


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {"gemma3-tool-code"}))  # which is a fence itself
def test_a_fence_that_is_the_whole_answer_holds_calls(name: str) -> None:
    """text-calls: A fence that is the whole answer holds calls."""
    fenced = f"`````\n{EXAMPLES[name]}\n`````"
    choice = choice_from_text(fenced, TOOLS)
    assert [(call.name, call.args) for call in choice.tool_calls or ()] == PARIS
    assert choice.text is None
    assert choice_from_text(f"So:\n{fenced}", TOOLS).tool_calls is None


@pytest.mark.parametrize(
    "text",
    [
        "The model ends with <|endoftext|> or <|im_end|>, as its template says.",
        "It closes its thoughts with [/THINK]. Then it answers.",
        "Then comes <|end|>, and then <|call|>.",
        "I cut the </think> tag off.",
        "A header is <|start|>assistant<|channel|>final<|message|>, in short.",
    ],
)
def test_tokens_in_a_sentence_are_its_words(text: str) -> None:
    """text-calls: Tokens in a sentence are its words."""
    choice = choice_from_text(text, TOOLS)
    assert (choice.text, choice.reasoning, choice.tool_calls) == (text, None, None)
    tagged = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    behind = choice_from_text(f"{tagged}\n{text}", TOOLS)
    assert [call.name for call in behind.tool_calls or ()] == ["now"]


TWICE = [
    '<tool_call>{"name": "get_weather", "arguments": {"city": "x", "city": "y"}}</tool_call>',
    '<tool_call>{"name": "get_weather", "arguments": {"city": "x"}, "parameters": {"city": "y"}}</tool_call>',
    '<tool_call>{"name": "get_weather", "name": "now", "arguments": {"city": "x"}}</tool_call>',
    '{"name": "get_weather", "arguments": {"city": "x"}, "arguments": {"city": "y"}}',
    "<function=get_weather><parameter=city>x</parameter><parameter=city>y</parameter></function>",
    '<invoke name="now"><parameter name="x">1</parameter><parameter name="x">2</parameter></invoke>',
    "[get_weather(city='x', city='y')]",
    "[get_weather(city={'a': 1, 'a': 2})]",
    '<|tool_call>call:get_weather{city:<|"|>x<|"|>,city:<|"|>y<|"|>}<tool_call|>',
    '[TOOL_CALLS]get_weather[ARGS]{"city": "x", "city": "y"}',
]


@pytest.mark.parametrize("text", TWICE)
def test_nothing_wins_silently(text: str) -> None:
    """text-calls: Nothing wins silently."""
    calls = choice_from_text(text, TOOLS).tool_calls
    assert calls is not None
    assert (len(calls), [bad.code for bad in calls.invalid]) == (0, ["duplicate_key"])


@pytest.mark.skipif(CORPUS is None, reason="the answers are those of the corpus")
def test_answers_of_public_models_are_read() -> None:
    """text-calls: Answers of public models are read."""
    tallies, reasons = measure(Path(str(CORPUS), "answers"))
    assert sum(reasons.values()) - reasons["reach"] < 0.02 * reasons["reach"]
    assert sum(each.calls for each in tallies) > 15_400


OPENERS = [
    *("<tool_call>", "<tool_call>{", "<function=get_weather>\n<parameter=city>\n", "[", "{", "\n[", "\n{"),
    *("`", "> ", '\n{"name":', '{"name": "get_weather", "arguments": {', "```\n", "\n```json\n{"),
    *("[TOOL_CALLS]", "<think>", '<invoke name="get_weather">'),
    *('<invoke name="get_weather"><parameter name="city">', "</think>", "<channel|>"),
    *("[TOOL_CALLS]get_weather[ARGS]{", "<|channel|>", "<|message|>", "<|channel|>analysis<|message|>"),
    *("(", "'", "<tool_call>get_weather<arg_key>city</arg_key><arg_value>"),
    *("<|tool_call>call:get_weather{city:", "\\", '"', "\n[get_weather(city=", "[get_weather(city=["),
    ']<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>',
    *("<|tool_call_start|>[get_weather(city=[", "<|tool_call_begin|>functions.get_weather:0"),
    *("</parameter>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"),
    *('<|open|>call tool="get_weather"<|sep|>', '<function name="get_weather"><param name="city">'),
    *(">>>get_weather\n{", "assistantcommentary", " \n"),
]


@pytest.mark.parametrize("piece", OPENERS)
def test_many_openers_end(piece: str) -> None:
    """text-calls: Hostile text ends."""
    for text in (piece * 4_000, f"x {piece * 4_000} y"):
        calls = choice_from_text(text, TOOLS).tool_calls
        assert calls is None or len(calls.in_order()) <= 1_001


@pytest.mark.parametrize("name", EXAMPLES)
def test_many_calls_are_bounded(name: str) -> None:
    """
    text-calls: Hostile text ends
    text-calls: A budget that is spent says so
    """
    calls = choice_from_text(f"{EXAMPLES[name]}\n" * 3_000, TOOLS).tool_calls
    assert calls is not None
    assert len(calls.in_order()) <= 1_001
    if name != "mistral-bare":
        assert "more calls than the 1,000" in calls.invalid[-1].message
        assert (calls.invalid[-1].name, calls.invalid[-1].code) == (None, "malformed_call")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a \n\n[[ ## completed ## ]]\n ", "a "),
        ("\n [[ ## completed ## ]]", ""),
        ("a [[ ## completed ## ]]", "a [[ ## completed ## ]]"),
        ("a" + "\n" * 100_000 + "b", "a" + "\n" * 100_000 + "b"),
    ],
)
def test_the_marker_of_an_end_is_taken_away(text: str, plain: str) -> None:
    """text-calls: Time grows with length."""
    assert sigadapt.ChatAdapter().plain(text) == plain
