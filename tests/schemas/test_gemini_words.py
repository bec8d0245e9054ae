"""Gemini's type words become JSON Schema's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from sigadapt import ToolDecls
from sigadapt.errors import InvalidToolDecl


def in_json_schema(schema: Any) -> Any:
    """A part of a schema that is declared as Gemini takes it, as it is kept."""
    parameters = {"type": "OBJECT", "properties": {"p": schema}}
    function = {"name": "f", "parameters": parameters}
    (decl,) = ToolDecls([{"functionDeclarations": [function]}])
    assert decl.parameters["type"] == "object"
    return decl.parameters["properties"]["p"]


PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = table(__file__, "PAIRS")


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_words_are_translated(theirs: dict[str, Any], ours: dict[str, Any]):
    """tool-declarations: Gemini's type words become JSON Schema's."""
    before = str(theirs)
    assert in_json_schema(theirs) == ours
    assert str(theirs) == before


types = st.sampled_from(["STRING", "OBJECT", "ARRAY", "NULL", "integer"])
schemas: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {}, optional={"type": types, "nullable": st.booleans(), "enum": st.just(["A", "B"])}
    ),
    lambda inner: (
        st.fixed_dictionaries(
            {},
            optional={
                "type": types,
                "nullable": st.booleans(),
                "minItems": st.sampled_from(["1", 2]),
                "items": inner,
                "properties": st.dictionaries(st.sampled_from(["type", "items", "a"]), inner, max_size=2),
                "anyOf": st.lists(inner, min_size=1, max_size=2),
            },
        )
        | st.lists(inner, min_size=1, max_size=2).map(lambda each: {"any_of": each})
    ),
    max_leaves=6,
)
words = st.sampled_from(
    ["type", "items", "properties", "anyOf", "any_of", "nullable", "minItems", "enum", "a"]
)
values = st.recursive(
    st.none() | st.booleans() | st.sampled_from(["STRING", "OBJECT", "1", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=4),
)


@given(schemas | values)
def test_any_json_is_translated_and_once_is_enough(schema: Any):
    try:
        once = in_json_schema(schema)
    except InvalidToolDecl as error:  # a declaration is a valid schema, once it is translated
        assert error.code == "invalid_schema"  # noqa: PT017
    else:
        assert in_json_schema(once) == once
