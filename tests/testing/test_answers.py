"""What a script can say, before any wire has seen it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigadapt.testing import Answer, Call, Failure, LoopbackError, LoopbackProvider

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)


@given(st.text(), st.integers(1, 20))
def test_pieces_make_up_the_text(text: str, size: int):
    pieces = list(Answer(chunk=size).pieces(text))
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= size for piece in pieces)


@pytest.mark.slow
@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON_VALUES))
def test_arguments_read_the_same_as_text_and_as_object(arguments: dict[str, object]):
    call = Call("f", arguments)
    assert Call("f", call.text).object == call.object == arguments


@pytest.mark.parametrize("text", ["", "not json", '{"city":"Par', "[1]", "null", '"{}"'])
def test_text_that_is_no_object_is_refused_as_object(text: str):
    """loopback-provider: Arguments that are no object are refused on a wire of objects."""
    with pytest.raises(LoopbackError, match="this wire carries objects") as caught:
        _ = Call("get_weather", text).object
    assert caught.value.tool == "get_weather"
    assert caught.value.code == "invalid_script"


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Answer, {"chunk": 0}),
        (Answer, {"chunk": -8}),
        (Answer, {"chunk": "8"}),
        (Failure, {"status": "429"}),
        (LoopbackProvider, {"script": [Answer(text="Hi."), 7]}),
        (LoopbackProvider, {"script": [Answer(text="Hi.")], "keep": -1}),
    ],
)
def test_what_cannot_be_played_is_refused_at_once(kind: Any, arguments: dict[str, Any]):
    """loopback-provider: A script that is none is refused."""
    with pytest.raises(LoopbackError) as caught:
        kind(**arguments)
    assert caught.value.code == "invalid_script"


@pytest.mark.parametrize("script", [[], (), "text", b"bytes", None, 7])
def test_a_script_that_is_none_is_refused_at_once(script: object):
    """loopback-provider: A script that is none is refused."""
    with pytest.raises(LoopbackError, match="a script is a sequence"):
        LoopbackProvider(script)  # pyright: ignore[reportArgumentType]
