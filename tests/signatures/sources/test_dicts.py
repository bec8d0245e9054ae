"""Dicts in every provider's shape."""

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from sigadapt import ToolDecl, ToolDecls
from sigadapt.errors import InvalidToolDecl

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
NAMED: dict[str, Any] = {"name": "search", "description": "Search."}

SHAPES: dict[str, dict[str, Any]] = {
    "openai chat": {"type": "function", "function": {**NAMED, "parameters": SCHEMA}},
    "openai chat without type": {"function": {**NAMED, "parameters": SCHEMA}},
    "openai responses": {"type": "function", **NAMED, "parameters": SCHEMA},
    "anthropic": {**NAMED, "input_schema": SCHEMA},
    "anthropic custom": {"type": "custom", **NAMED, "input_schema": SCHEMA},
    "gemini": {"functionDeclarations": [{**NAMED, "parametersJsonSchema": SCHEMA}]},
    "gemini in snake case": {"function_declarations": [{**NAMED, "parameters_json_schema": SCHEMA}]},
    "gemini's own": {"functionDeclarations": [{**NAMED, "parameters": SCHEMA}]},
    "gemini alone": {**NAMED, "parametersJsonSchema": SCHEMA},
    "bedrock": {"toolSpec": {**NAMED, "inputSchema": {"json": SCHEMA}}},
    "mcp": {**NAMED, "inputSchema": SCHEMA},
    "bare": {**NAMED, "parameters": SCHEMA},
}


def refusal(source: dict[str, Any]) -> InvalidToolDecl:
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(source)
    return caught.value


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_gives_the_same(shape: str):
    """tool-declarations: Every provider's dict shape is read."""
    source = SHAPES[shape]
    before = copy.deepcopy(source)
    facts = ToolDecl.of(source)
    assert (facts.name, facts.description, facts.parameters) == ("search", "Search.", SCHEMA)
    assert (facts.returns, facts.strict, facts.extras) == (None, None, None)
    assert source == before


@pytest.mark.parametrize(
    "shape", ["openai chat", "openai responses", "anthropic", "gemini", "bedrock", "bare"]
)
def test_a_tool_without_parameters_gives_none(shape: str):
    """tool-declarations: A tool without parameters takes none."""
    without = {
        "openai chat": {"type": "function", "function": NAMED},
        "openai responses": {"type": "function", **NAMED},
        "anthropic": {**NAMED, "input_schema": None},
        "gemini": {"functionDeclarations": [NAMED]},
        "bedrock": {"toolSpec": NAMED},
        "bare": NAMED,
    }
    facts = ToolDecl.of(without[shape])
    assert (facts.name, facts.parameters) == ("search", {"type": "object", "properties": {}})


def test_a_list_of_functions_gives_each():
    """tool-declarations: A shape that holds several tools gives all of them."""
    told = ToolDecls({"functionDeclarations": [{"name": "b"}, {"name": "a"}]})
    assert [facts.name for facts in told] == ["b", "a"]
    assert len(ToolDecls({"functionDeclarations": []})) == 0
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of({"functionDeclarations": [{"name": "a"}, {"name": "b"}]})
    assert caught.value.fix == "Use ToolDecls."


@pytest.mark.parametrize("shape", SHAPES)
def test_gemini_s_words_are_translated_in_any_shape(shape: str):
    """tool-declarations: Gemini's type words become JSON Schema's."""
    theirs = {"type": "OBJECT", "properties": {"q": {"type": "STRING"}}, "required": ["q"]}

    def replaced(value: Any) -> Any:
        if value is SCHEMA:
            return theirs
        if isinstance(value, dict):
            return {key: replaced(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        return [replaced(item) for item in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]

    facts = ToolDecl.of(replaced(SHAPES[shape]))
    assert facts.parameters == SCHEMA


def test_a_given_schema_replaces_the_dict_s():
    given_schema = {"type": "object"}
    assert ToolDecl.of(SHAPES["mcp"], parameters=given_schema).parameters == given_schema


NO_FUNCTIONS: list[tuple[dict[str, Any], str]] = table(__file__, "NO_FUNCTIONS")


@pytest.mark.parametrize(("source", "seen"), NO_FUNCTIONS)
def test_what_declares_no_function_is_refused(source: dict[str, Any], seen: str):
    """tool-declarations: Something that declares no tool is refused."""
    error = refusal(source)
    assert error.code == "unknown_source"
    assert seen in str(error)


def test_hostile_depth_in_gemini_s_words_is_refused():
    inner: dict[str, Any] = {"type": "STRING"}
    for _ in range(5000):
        inner = {"type": "OBJECT", "properties": {"a": inner}}
    assert refusal({"functionDeclarations": [{"name": "x", "parameters": inner}]}).code == "invalid_schema"
    assert refusal({"name": "x", "parameters": inner}).code == "invalid_schema"


@pytest.mark.parametrize("value", [{}, {"googleSearch": {}}, [], "x", None])
def test_other_values_are_not_read(value: Any):
    assert refusal(value).code == "unknown_source"


MARKS = "name type function parameters input_schema inputSchema toolSpec functionDeclarations json"
marks = st.sampled_from(MARKS.split())
values = st.recursive(
    st.none() | st.sampled_from(["x", "function", "custom", "OBJECT", 1]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(marks, inner, max_size=3),
)


@given(st.dictionaries(marks, values, max_size=4))
def test_any_dict_is_read_or_refused(source: dict[str, Any]):
    """tool-declarations: Something that declares no tool is refused."""
    try:
        assert all(decl.name for decl in ToolDecls(source))
    except InvalidToolDecl as error:
        assert error.reason  # noqa: PT017  (either outcome is right)


NATIVE: list[dict[str, Any]] = table(__file__, "NATIVE")


@pytest.mark.parametrize("spec", NATIVE)
def test_native_tools_ride_untouched(spec: dict[str, Any]):
    """tool-declarations: A provider's own tools ride untouched beside functions."""
    given = [{"name": "a"}, spec, {"name": "b"}]
    assert isinstance(given, ToolDecls)
    decls = ToolDecls(given)
    assert decls.to_openai()[1] == spec
    assert [decl.name for decl in decls] == ["a", "b"]
    assert len(decls) == 2
    assert ToolDecls.model_validate_json(decls.model_dump_json()) == decls
    assert pickle.loads(pickle.dumps(decls)) == decls  # noqa: S301
    assert decls != ToolDecls([{"name": "a"}, {"name": "b"}])


@pytest.mark.parametrize("value", table(__file__, "NOT_NATIVE"))
def test_what_may_be_a_function_is_not_native(value: object):
    try:
        assert len(ToolDecls(value)) == 1
    except InvalidToolDecl as error:
        assert error.code == "unknown_source"  # noqa: PT017  (either outcome is right)


def test_what_is_no_json_is_refused():
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecls({"type": "web_search", "filters": {1, 2}})
    assert (caught.value.code, caught.value.tool) == ("invalid_schema", "web_search")


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
