"""The one parser of arguments: an object as sent, or a flaw with its code."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import json_values
from tables import table

from sigadapt import InvalidToolCall, choice_from_response


def read(text: str, *, cut_off: bool = False) -> Any:
    """The call whose arguments a model sent as a text."""
    called = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}]
    finish = "length" if cut_off else "tool_calls"
    body = {"choices": [{"message": {"content": None, "tool_calls": called}, "finish_reason": finish}]}
    calls = choice_from_response(body).tool_calls
    assert calls is not None
    [call] = calls.in_order()
    return call


@pytest.mark.parametrize(("text", "args"), table(__file__, "OBJECTS"))
def test_an_object_comes_out_as_it_was_sent(text: str, args: dict[str, Any]) -> None:
    """response-choice: Arguments come out as they were sent."""
    assert read(text).args == args


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"city":"Paris"', "invalid_json"),
        ("not json", "invalid_json"),
        ("{'city': 'Paris'}", "invalid_json"),
        ('{"city":"Paris"} and more', "invalid_json"),
        ('{"city":"Paris"}{}', "invalid_json"),
        ('{"a":NaN}', "invalid_json"),
        ('{"a":Infinity}', "invalid_json"),
        ('{"a":1e999}', "invalid_json"),
        ('{"a":[0,{"b":-1E+400}]}', "invalid_json"),
        ('{"a":' + "1" * 400 + ".0}", "invalid_json"),
        ('{"a":' + "1" * 250 + "e60}", "invalid_json"),
        ("\ufeff{}", "invalid_json"),
        ('{"a":' + "[" * 100_000, "invalid_json"),
        ('{"a":' * 100_000, "invalid_json"),
        ("[1,2]", "not_an_object"),
        ("42", "not_an_object"),
        ("true", "not_an_object"),
        ('"{}"', "not_an_object"),
        ('{"city":"Paris","city":"Rome"}', "duplicate_key"),
        ('{"a":{"b":1,"b":1}}', "duplicate_key"),
    ],
)
def test_what_is_no_object_is_a_flaw_with_its_code(text: str, code: str) -> None:
    """response-choice: Arguments that are no object become a tagged bad call."""
    flaw = read(text)
    assert isinstance(flaw, InvalidToolCall)
    assert flaw.code == code
    assert len(flaw.message) < 400
    assert flaw.path is None


@pytest.mark.parametrize(("text", "cut_off", "message"), table(__file__, "FLAWS"))
def test_a_flaw_says_what_is_wrong_and_shows_it(text: str, cut_off: bool, message: str) -> None:
    """response-choice: Arguments that are no object become a tagged bad call.
    tool-call-outputs: An error's sentence has a readable length.
    """
    flaw = read(text, cut_off=cut_off)
    assert isinstance(flaw, InvalidToolCall)
    assert flaw.message == message


@pytest.mark.slow
@given(st.dictionaries(st.text(), json_values))
def test_any_object_round_trips(value: dict[str, Any]) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert read(text).args == value


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")), st.booleans())
def test_any_text_is_an_object_or_a_flaw(text: str, cut_off: bool) -> None:
    call = read(text, cut_off=cut_off)
    if not isinstance(call, InvalidToolCall):
        assert not text.strip() or json.loads(text) in (call.args, None)


@given(st.dictionaries(st.text(), json_values), st.data())
def test_a_prefix_of_an_object_is_never_an_object(value: dict[str, Any], data: st.DataObject) -> None:
    """response-choice: A call cut off at the length limit is truncated."""
    text = json.dumps(value, separators=(",", ":"))
    end = data.draw(st.integers(0, len(text) - 1))
    flaw = read(data.draw(st.sampled_from(["", " "])) + text[:end], cut_off=True)
    assert isinstance(flaw, InvalidToolCall)
    assert flaw.code == "truncated"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":"\\ud800"}', "\ufffd"),
        ('{"a":"\ud800"}', "\ufffd"),
        ('{"a":"\\ud83d\\ude00 \\udc00"}', "😀 \ufffd"),
        ('{"a":"\\\\ud800 \\ud800x"}', "\\ud800 \ufffdx"),
        ('{"a":"\ud83d\ude00"}', "😀"),
    ],
)
def test_half_a_surrogate_pair_is_read_as_the_replacement_character(text: str, value: str):
    """conversations: A text with half of a surrogate pair is read with U+FFFD."""
    call = read(text)
    assert (call.args, call.altered) == ({"a": value}, ("unicode",) if "\ufffd" in value else ())
