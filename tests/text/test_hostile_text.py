"""Hostile texts: thousands of openers, nested without end; each ends, with bounded work."""

# ruff: noqa: RUF001  (tokens of models hold full-width bars)

import pytest
from text_cases import EXAMPLES, tool

from sigadapt import ChatAdapter
from sigadapt.response import choice_from_text

TOOLS = [tool("get_weather", city="string")]
MANY = 4_000
PIECES = [
    *(
        "<tool_call>",
        "<tool_call>{",
        "<function=get_weather>\n<parameter=city>\n",
        "[",
        "{",
        "\n[",
        "\n{",
        "`",
        "> ",
    ),
    *(
        '\n{"name":',
        '{"name": "get_weather", "arguments": {',
        "```\n",
        "\n```json\n{",
        "[TOOL_CALLS]",
        "<think>",
    ),
    *(
        '<invoke name="get_weather">',
        '<invoke name="get_weather"><parameter name="city">',
        "</think>",
        "<channel|>",
    ),
    *(
        "[TOOL_CALLS]get_weather[ARGS]{",
        "<|channel|>",
        "<|message|>",
        "<|channel|>analysis<|message|>",
        "(",
        "'",
    ),
    *(
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>",
        "<|tool_call>call:get_weather{city:",
        "\\",
        '"',
    ),
    *(
        "\n[get_weather(city=",
        "[get_weather(city=[",
        ']<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>',
    ),
    *("<|tool_call_start|>[get_weather(city=[", "<|tool_call_begin|>functions.get_weather:0", "</parameter>"),
    *(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{",
        '<|open|>call tool="get_weather"<|sep|>',
    ),
    *('<function name="get_weather"><param name="city">', ">>>get_weather\n{", "assistantcommentary", " \n"),
]


@pytest.mark.parametrize("piece", PIECES)
def test_many_openers_end(piece: str) -> None:
    """text-calls: Hostile text ends."""
    for text in (piece * MANY, f"x {piece * MANY} y"):
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
    assert ChatAdapter().plain(text) == plain
