"""Markup that can only be a call, in which none of a declared tool can be read: a bad call with its text."""

# ruff: noqa: RUF001  (tokens of models hold full-width bars)

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_cases import MARKED, streamed

from sigadapt.response import choice_from_text

TOOLS = [{"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}}}, {"name": "now"}]
SCHEMAS: dict[str, Any] = {"get_weather": {"properties": {"city": {"type": "string"}}}, "now": {}}
KIMI = "<|tool_call_begin|>{}<|tool_call_argument_begin|>{{}}<|tool_call_end|>"

# What is cut off in the name of the tool.
CUT = [
    "<tool_call>get_wea",
    '<minimax:tool_call>\n<invoke name="get_wea',
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_w",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_w",
    "[TOOL_CALLS]get_w",
    "<minimax:tool_call>\n<inv",
    "<|tool_calls_section_begin|><|tool_call_",
]
# The text, the code and the name of the bad call, and what is left of the text.
HALF: list[tuple[str, str, str | None, str | None]] = [
    ("<tool_call>", "malformed_call", None, None),
    ("<tool_call>get_weather is a tool.</tool_call>", "malformed_call", "get_weather", None),
    ("<tool_call>\nget_weather: Paris\n</tool_call>", "malformed_call", "get_weather", None),
    (
        "I look.\n<tool_call>\n<parameter=city>\nParis\n</parameter>\n</tool_call>",
        "malformed_call",
        None,
        "I look.",
    ),
    ('<tool_call>{"name": "", "arguments": {}}</tool_call>', "missing_name", None, None),
    ('<tool_call>{"name": "fly", "arguments": {}}</tool_call>', "unknown_tool", "fly", None),
    ("<tool_call>\n<function=fly>\n</function>\n</tool_call>", "unknown_tool", "fly", None),
    ("[TOOL_CALLS]get_weather: Paris", "malformed_call", "get_weather", None),
    (KIMI.format("call_9d"), "unknown_tool", "call_9d", None),
    *((text, "malformed_call", None, None) for text in CUT),
    ("I look.\n<tool_call>get_wea", "malformed_call", None, "I look."),
    ("<|channel|>commentary to=browser.search<|message|>{}<|call|>", "unknown_tool", "browser.search", None),
]


@pytest.mark.parametrize(("text", "code", "name", "said"), HALF)
def test_half_a_call_is_a_bad_call(text: str, code: str, name: str | None, said: str | None) -> None:
    """text-calls: Markup that can only be a call is a call or told."""
    choice = choice_from_text(text, TOOLS)
    assert choice.text == said
    assert choice.tool_calls is not None
    [call] = choice.tool_calls.invalid
    assert (call.code, call.name, call.altered) == (code, name, ("recovered",))
    prompted: dict[str, Any] = {"undeclared": True, "call_format": "hermes"}
    for how in ({}, prompted):
        _, shown, answer = streamed(text, SCHEMAS, 3, **how)
        assert (shown.strip(), answer) == (said or "", said)


UNKNOWN = [
    '<acme:run tool="get_weather">\n<acme:in key="city">Paris</acme:in>\n</acme:run>',
    '<|do|>get_weather<|with|>{"city": "Paris"}<|done|>',
    '<tool: function>\nget_weather {"city": "Paris"}\n</tool>',
    "<get_weather>\n<city>Paris</city>\n</get_weather>",
    "<now>{}</now>",
    '<|sep|>get_weather\n```json\n{"city": "Paris"}\n```',
]


@pytest.mark.parametrize("text", UNKNOWN)
@pytest.mark.parametrize("size", [1, 7])
def test_a_call_in_unknown_markup_is_told(text: str, size: int) -> None:
    """text-calls: A call in markup of no known format is told."""
    choice = choice_from_text(f"I look.\n{text}", TOOLS)
    assert choice.text == "I look."
    assert choice.tool_calls is not None
    [call] = choice.tool_calls.invalid
    assert (call.code, call.name, call.arguments) == ("unread_call", call.name, text)
    assert streamed(text, SCHEMAS, size)[0] == ""


@given(data=st.data(), size=st.integers(1, 9))
def test_half_a_call_is_not_shown(data: st.DataObject, size: int) -> None:
    """streaming: Markup of a call is not shown."""
    example = data.draw(st.sampled_from([*MARKED.values()]))
    start = data.draw(st.integers(0, len(example)))
    text = example[:start] + example[data.draw(st.integers(start, len(example))) :]
    _, shown, said = streamed(text, SCHEMAS, size)
    assert shown.strip() == (said or "").strip()
