"""The index that the adapter's search looks words up in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import ToolIndex
from support import json_values

Json = dict[str, Any]
TOOLS: list[Json] = [
    {"name": "getUserProfile", "description": "Read who somebody is."},
    {"name": "HTTPServer.restart_all", "description": "Start again."},
    {
        "name": "f",
        "parameters": {
            "properties": {
                "to": {
                    "type": "object",
                    "properties": {"zipCode": {"type": "string", "description": "Where parcels go."}},
                },
                "unit": {"enum": ["furlong", 7, None]},
            }
        },
    },
    {"name": "天気", "description": "東京の天気を調べる"},
    {"name": "überweisen", "description": "Geld senden"},
]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("user profiles", "getUserProfile"),
        ("get_user_profile", "getUserProfile"),
        ("http servers", "HTTPServer.restart_all"),
        ("the ZIP of a parcel", "f"),
        ("furlongs", "f"),
        ("今日の天気", "天気"),
        ("Überweisen!", "überweisen"),
    ],
)
def test_a_tool_is_found_by_its_words(query: str, name: str):
    """tool-search: A tool is found by the words of its declaration."""
    assert ToolIndex(TOOLS).best(query, 5)[:1] == [name]


@given(st.lists(st.fixed_dictionaries({"name": st.text(), "parameters": json_values}), max_size=5), st.text())
def test_any_words_of_any_tools_are_looked_up(tools: list[Json], query: str):
    """tool-search: A tool is found by the words of its declaration."""
    index = ToolIndex(tools)
    found = index.best(query, 3)
    assert found == index.best(query, 3)
    assert len(found) == len(set(found)) <= 3
    assert set(found) <= {tool["name"] for tool in tools}
