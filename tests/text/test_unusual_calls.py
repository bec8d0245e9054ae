"""Calls in unusual JSON: an object keyed `function`, a null, half of a surrogate pair."""

import pytest
from support import get_weather

from sigadapt import choice_from_response
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


@pytest.mark.parametrize("kind", ["integer", "boolean", "array"])
def test_a_written_null_of_a_nullable_argument_is_null(kind: str) -> None:
    """text-calls: The schema types what the format does not."""
    schema = {"type": "object", "properties": {"n": {"type": kind, "nullable": True}}}
    text = "<tool_call>\n<function=f>\n<parameter=n>\nnull\n</parameter>\n</function>\n</tool_call>"
    calls = choice_from_text(text, [{"name": "f", "parameters": schema}]).tool_calls
    assert calls is not None
    assert [call.args for call in calls] == [{"n": None}]


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00"])
def test_half_a_surrogate_pair_is_on_record(half: str) -> None:
    """conversations: A text with half of a surrogate pair is read with U+FFFD."""
    function = {"name": "f", "arguments": f'{{"a": "x{half}y"}}'}
    message = {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    choice = choice_from_response({"choices": [{"finish_reason": "tool_calls", "message": message}]})
    assert choice.tool_calls is not None
    [call] = choice.tool_calls
    assert (call.args, "unicode" in call.altered) == ({"a": "x\ufffdy"}, True)
    whole = function["arguments"].replace(half, "\\ud83d\\ude00")
    function["arguments"] = whole
    choice = choice_from_response({"choices": [{"finish_reason": "tool_calls", "message": message}]})
    assert choice.tool_calls is not None
    assert (choice.tool_calls[0].args, choice.tool_calls[0].altered) == ({"a": "x\U0001f600y"}, ())
