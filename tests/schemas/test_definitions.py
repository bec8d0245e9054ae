"""Definitions that each argument brings, joined into one schema."""

from typing import Any

import dspy
import jsonschema_rs
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, create_model
from typing_extensions import TypedDict

from sigadapt import ToolDecl

Values = st.SearchStrategy[Any]
NAMES = st.sampled_from(["Item", "Item_2", "Box", "Node"])


async def run(**args: Any) -> None: ...


def object_schema(arguments: dict[str, Any]) -> dict[str, Any]:
    """The schema of a DSPy tool with such arguments."""
    parameters = ToolDecl.of(dspy.Tool(run, "f", "F.", arguments, {})).parameters
    return {key: value for key, value in parameters.items() if key != "required"}


def with_containers(inner: Values) -> Values:
    return st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y"]), inner)


ATOMS: Values = st.sampled_from([1, "a", None, True])
VALUES = st.recursive(ATOMS, with_containers, max_leaves=6)


class Span(TypedDict):
    x: int


class Node(BaseModel):
    x: int
    y: "list[Node]" = []


@st.composite
def types(draw: st.DrawFn) -> Any:
    """A type whose schema has definitions, some of which have the same names."""
    inner: Any = draw(st.sampled_from([int, str, Span, Node]))
    sequence: Any = list
    fields: dict[str, Any] = {"x": (inner, ...), "y": (sequence[inner], [])}
    model: Any = create_model(draw(NAMES), **fields)
    return draw(st.sampled_from([model, list[model], dict[str, model], model | None]))


@given(st.lists(types(), min_size=1, max_size=4), st.data())
def test_the_verdicts_are_those_of_each_argument(kinds: list[Any], data: st.DataObject):
    """tool-declarations: Arguments of a DSPy tool may bring definitions."""
    schemas = {f"a{number}": TypeAdapter(kind).json_schema() for number, kind in enumerate(kinds)}
    schema = object_schema(schemas)
    jsonschema_rs.meta.validate(schema)
    assert not any("$defs" in argument for argument in schema["properties"].values())
    for name, argument in schemas.items():
        value = data.draw(VALUES | st.fixed_dictionaries({"x": VALUES}))
        assert jsonschema_rs.is_valid(schema, {name: value}) == jsonschema_rs.is_valid(argument, value)


def test_what_an_author_wrote_is_not_changed():
    argument = {"$defs": {"Item": {"type": "string"}}, "items": {"$ref": "#/$defs/Item"}}
    identified = {"$id": "https://a.test/", **argument}
    own_place = {"items": {"$ref": "#/properties/a/$defs/Item"}, "$defs": argument["$defs"]}
    schema = object_schema({"a": own_place, "b": identified, "c": argument})
    assert schema["properties"]["a"] == own_place
    assert schema["properties"]["b"] == identified
    assert "$defs" in argument
    assert jsonschema_rs.is_valid(schema, {"a": ["x"], "b": ["x"], "c": ["x"]})
    assert not jsonschema_rs.is_valid(schema, {"c": [1]})
