"""Where a call ends that the model did not end: it is read, or it is a bad call, or it stays text."""

from typing import Any

import pytest
from support import get_weather
from tables import table
from text_cases import streamed

from sigadapt.response import choice_from_text

STRING, ANY_OBJECT = {"type": "string"}, {"type": "object"}
WEATHER = {"city": STRING, "days": {"type": "integer"}, "near": ANY_OBJECT}
TOOLS: list[Any] = [
    {"name": "get_weather", "parameters": {"properties": WEATHER, "required": ["city"]}},
    {"name": "now", "parameters": {"properties": {}}},
    {"name": "ask", "parameters": {"properties": {"a": STRING, "arguments": ANY_OBJECT}}},
    {"name": "free", "parameters": ANY_OBJECT},
    {
        "name": "mix",
        "parameters": {"properties": {**WEATHER, "ref": {"type": ["integer", "string"]}, "any": {}}},
    },
]
SCHEMAS = {tool["name"]: tool["parameters"] for tool in TOOLS}
ENDS: list[tuple[str, list[Any], list[Any], str | None]] = table(__file__, "ENDS")


@pytest.mark.parametrize(("text", "good", "bad", "said"), ENDS)
def test_what_was_written_is_read_or_told_or_text(text: str, good: Any, bad: Any, said: str | None) -> None:
    """text-calls: A broken call is a bad call with its raw text."""
    choice = choice_from_text(text, TOOLS)
    calls = choice.tool_calls
    assert [[call.name, call.args] for call in calls or ()] == good
    assert [[call.code, call.arguments] for call in (calls.invalid if calls is not None else ())] == bad
    assert choice.text == said
    assert streamed(text, SCHEMAS, 7)[1].strip() == (said or "").strip()


@pytest.mark.parametrize(
    "text",
    [
        '{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}',
        '{"function": "get_weather", "arguments": {"city": "Paris"}}',
        '{"type": "function", "function": {"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"}}',
        '{"function": {}}',
        '{"function": {"arguments": {"city": "Paris"}}}',
        '{"function": null}',
        '{"function": ["get_weather"]}',
        '[{"function": {"name": 7}}]',
    ],
)
def test_an_object_keyed_function_is_read_or_left(text: str) -> None:
    """text-calls: Calls in a text are typed calls."""
    calls = choice_from_text(text, [get_weather]).tool_calls
    good = calls is not None and [call.args for call in calls] == [{"city": "Paris"}]
    assert good == ('"Paris"' in text.replace("\\", "") and "get_weather" in text)
