"""JSON text as a source of tools."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from signatures.sources.test_dicts import SCHEMA, SHAPES

from sigadapt import ToolDecls
from sigadapt.errors import InvalidToolDecl

LISTS: list[Any] = [
    [{"name": "search", "parameters": SCHEMA}],
    [[{"name": "search", "parameters": SCHEMA}], {"type": "web_search"}],
]


@pytest.mark.parametrize("shape", [*SHAPES.values(), *LISTS])
def test_json_text_declares_what_its_value_does(shape: Any):
    """tool-declarations: JSON text declares what its value does."""
    text = json.dumps(shape, indent=1)
    assert isinstance(text, ToolDecls)
    assert ToolDecls(text) == ToolDecls(shape)
    assert ToolDecls(text)["search"].parameters == SCHEMA
    assert ToolDecls([text, {"name": "g"}]).to_openai()[:-1] == ToolDecls(shape).to_openai()


@pytest.mark.parametrize(
    "text", ['{"name": "f"', "[1, 2", '{"name": NaN}', '{"name": "f", "name": "g"}', "{'a': 1}"]
)
def test_text_that_is_no_json_is_refused(text: str):
    """tool-declarations: Text that is no JSON is refused."""
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecls(text)
    assert caught.value.code == "invalid_json"


@given(st.sampled_from(["", "{", "["]), st.text())
def test_any_text_is_tools_or_an_error(start: str, text: str):
    """tool-declarations: Text that is no JSON is refused."""
    try:
        decls = ToolDecls(start + text)
    except InvalidToolDecl as error:
        assert error.reason  # noqa: PT017
    else:
        assert list(decls) == []
