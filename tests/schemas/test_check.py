"""JSON Schemas that may be declared, and arguments judged by them."""

import json
from typing import Any

import jsonschema
import pytest
from budgets import share
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import table

from sigadapt import ToolDecl
from sigadapt.errors import InvalidToolDecl


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def refusal(parameters: Any) -> InvalidToolDecl:
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl("f", parameters=parameters)
    assert caught.value.tool == "f"
    return caught.value


def flaw(parameters: Any, args: dict[str, Any]) -> Any:
    return ToolDecl("f", parameters=parameters).flaw_of(args)


@pytest.mark.parametrize("parameters", table(__file__, "UNCHANGED"))
def test_object_schemas_are_taken_unchanged(parameters: dict[str, Any]):
    """tool-declarations: A dict schema passes through unchanged."""
    before = json.dumps(parameters)
    assert ToolDecl("f", parameters=parameters).parameters == parameters
    assert json.dumps(parameters) == before


@pytest.mark.parametrize(
    ("parameters", "path"),
    [
        ([], ""),
        (True, ""),
        ({"description": "x"}, ""),
        ({"type": "string"}, "/type"),
        ({"type": ["object", "null"]}, "/type"),
        (of(a={"minimum": "x"}), "/properties/a/minimum"),
        (of(a={"items": [{"type": "string"}]}), "/properties/a/items"),
        (of(**{"b/c": {"required": "x"}}), "/properties/b~1c/required"),
        (of(a={"pattern": "("}), "/properties/a/pattern"),
        (of(a={"enum": [{1: 2}]}), "/properties/a/enum/0"),
        (of(a={"default": float("nan")}), "/properties/a/default"),
        (of(a={"enum": ("x",)}), "/properties/a/enum"),
    ],
)
def test_invalid_schemas_are_refused_with_their_place(parameters: Any, path: str):
    """tool-declarations: An invalid schema is refused with its place.
    tool-declarations: A schema that is no object schema is refused.
    """
    error = refusal(parameters)
    assert (error.code, error.path) == ("invalid_schema", path)


@pytest.mark.parametrize(("word", "hint"), table(__file__, "HINTS"))
def test_type_words_get_a_hint(word: str, hint: str):
    """tool-declarations: A type word that is not JSON Schema's is refused with a hint."""
    error = refusal(of(a={"anyOf": [{"type": ["null", word]}]}))
    assert (error.code, error.path, error.fix) == ("invalid_schema", "/properties/a/anyOf/0/type", hint)


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    for _ in range(levels):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize("odd", [deep(300), deep(100_000), {"a": object()}, {"a": {1: 2}}, {"a": {1, 2}}])
def test_arguments_that_are_no_json_do_not_fit(odd: dict[str, Any]):
    found = flaw(of(a={"$ref": "#"}), odd)
    assert found is not None
    assert found.code == "schema_mismatch"
    assert "not JSON" in found.message


@pytest.mark.parametrize("number", [10**400, -(2**63), 2**64, 1.0, 1e15])
def test_integers_of_any_size_and_integral_floats_are_integers(number: float):
    assert flaw(of(a={"type": "integer"}), {"a": number}) is None
    assert flaw(of(a={"type": "integer", "maximum": -(10**30)}), {"a": number})


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.0])
    | st.text("ab", max_size=3)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
)
words = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def some(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    named = st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    several = st.lists(inner, min_size=1, max_size=2)
    keywords = {
        "type": words | st.lists(words, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "pattern": st.sampled_from(["^a", "b$", "a+"]),
        "properties": named,
        "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
        "additionalProperties": inner | st.booleans(),
        "propertyNames": inner,
        "minProperties": st.integers(0, 2),
        "items": inner | st.booleans(),
        "prefixItems": several,
        "contains": inner,
        "uniqueItems": st.booleans(),
        "maxItems": st.integers(0, 2),
        "anyOf": several,
        "allOf": several,
        "oneOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
    }
    return st.fixed_dictionaries({}, optional=keywords)


def is_unclear(parameters: dict[str, Any], args: dict[str, Any]) -> bool:
    """Where `uniqueItems` meets 1 and true, python-jsonschema itself is not consistent."""
    return "uniqueItems" in json.dumps(parameters) and "true" in json.dumps(args) + json.dumps(parameters)


@settings(max_examples=share(400))
@given(
    st.recursive(st.just({}), some, max_leaves=8), st.dictionaries(st.sampled_from("ab"), values, max_size=2)
)
def test_arguments_are_judged_as_jsonschema_judges_them(part: dict[str, Any], args: dict[str, Any]):
    """tool-call-outputs: Calls are checked against the declarations."""
    parameters = {"type": "object", "allOf": [part]}
    expected = jsonschema.Draft202012Validator(parameters).is_valid(args)
    if not is_unclear(parameters, args):
        assert (flaw(parameters, args) is None) == expected


@settings(max_examples=share(300))
@given(
    st.dictionaries(
        st.sampled_from(["type", "properties", "$ref", "items", "anyOf", "$id", "pattern"]), values
    )
)
def test_any_json_is_a_schema_or_an_error(parameters: dict[str, Any]):
    """tool-declarations: An invalid schema is refused with its place."""
    try:
        decl = ToolDecl("f", parameters=parameters)
    except InvalidToolDecl as error:
        assert error.code in ("invalid_schema", "remote_ref")  # noqa: PT017  (either outcome is right)
    else:
        decl.flaw_of({"a": 1})
