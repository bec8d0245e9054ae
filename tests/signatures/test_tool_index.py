"""The index that the adapter's search looks words up in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import ToolIndex
from support import json_values
from tables import table

Json = dict[str, Any]
TOOLS: list[Json] = table(__file__, "TOOLS")


@pytest.mark.parametrize(("query", "name"), table(__file__, "FOUND"))
def test_a_tool_is_found_by_its_words(query: str, name: str):
    """tool-search: A tool is found by the words of its declaration."""
    assert ToolIndex(TOOLS).best(query, 5)[:1] == [name]


@pytest.mark.parametrize(
    ("query", "description"),
    [
        ("za\u0308hler", "Z\u00e4hler ablesen"),  # one letter as two signs
        ("STRASSE", "Straße finden"),
        ("istanbul", "İstanbul hava durumu"),
        ("full", "\uff26\uff35\uff2c\uff2c width"),
        ("\u0e2d\u0e32\u0e01\u0e32\u0e28", "\u0e2a\u0e20\u0e32\u0e1e\u0e2d\u0e32\u0e01\u0e32\u0e28"),
        ("मौसम", "मौसम की जानकारी"),
    ],
)
def test_a_word_is_found_in_any_spelling_of_its_letters(query: str, description: str):
    """tool-search: A tool is found by the words of its declaration."""
    assert ToolIndex([*TOOLS, {"name": "x", "description": description}]).best(query, 5)[:1] == ["x"]


@given(st.lists(st.fixed_dictionaries({"name": st.text(), "parameters": json_values}), max_size=5), st.text())
def test_any_words_of_any_tools_are_looked_up(tools: list[Json], query: str):
    """tool-search: A tool is found by the words of its declaration."""
    index = ToolIndex(tools)
    found = index.best(query, 3)
    assert found == index.best(query, 3)
    assert len(found) == len(set(found)) <= 3
    assert set(found) <= {tool["name"] for tool in tools}
