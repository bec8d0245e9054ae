"""Calls in unusual JSON: an object keyed `function`, a null, half of a surrogate pair."""

import pytest
from support import get_weather

from sigadapt.response import choice_from_text


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
