"""Arguments that came decoded: judged as their text would be, and kept as text whatever they are."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Flaw, check_decoded, json_like, parse_arguments
from support import json_values


def nested(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"a": leaf}
    return leaf


BAD = {
    "NaN": ({"a": [1, math.nan]}, "invalid_json", "/a/1"),
    "infinity": ({"a": {"b/c": -math.inf}}, "invalid_json", "/a/b~1c"),
    "a key that is no text": ({"a": {1: 2}}, "invalid_json", "/a"),
    "bytes": ({"a": b"x"}, "invalid_json", "/a"),
    "a tuple": ({"a": (1,)}, "invalid_json", "/a"),
    "an integer that cannot be written": ({"a": 1 << 20_000}, "invalid_json", "/a"),
    "an array": ([1, 2], "not_an_object", None),
    "a text": ("{}", "not_an_object", None),
    "a number": (3, "not_an_object", None),
    "a boolean": (False, "not_an_object", None),
    "NaN alone": (math.nan, "invalid_json", ""),
}


@pytest.mark.parametrize(("value", "code", "path"), BAD.values(), ids=BAD)
def test_bad_arguments(value: Any, code: str, path: str | None) -> None:
    """response-choice: Arguments that are no object become a tagged bad call"""
    text, flaw = check_decoded(value)
    assert isinstance(flaw, Flaw)
    assert (flaw.code, flaw.path) == (code, path)
    assert text == json_like(value)
    assert len(flaw.message) < 400


@pytest.mark.slow
@pytest.mark.parametrize("levels", [1, 200, 201, 1_000, 100_000])
@pytest.mark.parametrize("leaf", [{}, [], 0, "é", {"b": 1}], ids=["object", "array", "0", "text", "member"])
def test_depth_is_judged_as_the_text_would_be(levels: int, leaf: Any) -> None:
    """response-choice: Arguments that are no object become a tagged bad call"""
    value = nested(levels, leaf)
    around = levels + (leaf == {"b": 1})
    text, args = check_decoded(value)
    as_text = parse_arguments(text)
    assert text == '{"a":' * levels + json.dumps(leaf, ensure_ascii=False).replace(" ", "") + "}" * levels
    if around <= 200:
        assert args == value
        assert as_text == value
    else:
        assert isinstance(args, Flaw)
        assert isinstance(as_text, Flaw)
        assert args.code == as_text.code == "invalid_json"
        assert "(nested deeper than 200 levels)" in args.message
        assert args.path == "/a" * 200


def test_none_sent_is_the_empty_object() -> None:
    """response-choice: A call without arguments has none"""
    assert check_decoded(None) == ("", {})


@given(st.dictionaries(st.text(), json_values))
def test_any_json_object_is_itself(value: dict[str, Any]) -> None:
    """response-choice: Arguments come out as they were sent"""
    text, args = check_decoded(value)
    assert args == value
    assert json.loads(text) == value


anything = st.recursive(
    st.none() | st.integers() | st.floats() | st.text() | st.binary() | st.just("\ud800"),
    lambda children: st.lists(children) | st.dictionaries(st.integers() | st.text() | st.binary(), children),
)


@given(anything)
def test_any_python_value_is_judged(value: Any) -> None:
    """response-choice: Any JSON gives a Choice or UnreadableResponse"""
    text, args = check_decoded(value)
    assert isinstance(text, str)
    assert isinstance(args, (dict, Flaw))
    if isinstance(args, dict):
        assert parse_arguments(text) == args
