"""Gemini's type words become JSON Schema's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import in_json_schema

PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {"type": "OBJECT", "properties": {"type": {"type": "STRING"}, "A": {"type": "ARRAY", "items": {}}}},
        {"type": "object", "properties": {"type": {"type": "string"}, "A": {"type": "array", "items": {}}}},
    ),
    ({"type": "ARRAY", "items": {"type": "NUMBER"}}, {"type": "array", "items": {"type": "number"}}),
    ({"minItems": "2", "maxLength": 3}, {"minItems": 2, "maxLength": 3}),
    ({"any_of": [{"type": "NULL"}], "max_length": 3}, {"anyOf": [{"type": "null"}], "maxLength": 3}),
    (
        {"type": "STRING", "nullable": True, "enum": ["A"]},
        {"type": ["string", "null"], "enum": ["A", None]},
    ),
    (
        {"anyOf": [{"type": "STRING"}], "nullable": True},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
    ),
    ({"type": "STRING", "nullable": False}, {"type": "string"}),
    ({"description": "STRING", "default": "OBJECT"}, {"description": "STRING", "default": "OBJECT"}),
]


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_words_are_translated(theirs: dict[str, Any], ours: dict[str, Any]):
    """tool-declarations: Gemini's type words become JSON Schema's."""
    before = str(theirs)
    assert in_json_schema(theirs) == ours
    assert str(theirs) == before


def test_json_schema_passes_through():
    """tool-declarations: A dict schema passes through unchanged."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "$defs": {"n": {}},
    }
    assert in_json_schema(schema) is schema


words = st.sampled_from(
    ["type", "items", "properties", "anyOf", "any_of", "nullable", "minItems", "enum", "a"]
)
values = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["STRING", "OBJECT", "1", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=4),
)


@given(values)
def test_any_json_is_translated_and_once_is_enough(schema: Any):
    once = in_json_schema(schema)
    assert in_json_schema(once) == once
