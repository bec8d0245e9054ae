"""Pydantic model classes as tools."""

import gc
import weakref
from collections.abc import Callable
from typing import Annotated

import dspy
import pydantic
import pytest
from pydantic import Field

from sigadapt import ToolDecl
from sigadapt.errors import InvalidToolDecl


class Point(pydantic.BaseModel):
    """A point.

    In the plane.
    """

    model_config = pydantic.ConfigDict(extra="forbid")

    x: Annotated[float, Field(description="east", ge=0)]
    y: float = 0.0


class Question(dspy.Signature):
    """Answer."""

    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


class Node(pydantic.BaseModel):
    """A node."""

    children: list["Node"] = []


def test_a_model_is_a_tool():
    """tool-declarations: A function's parameters become a schema."""
    facts = ToolDecl.of(Point)
    assert (facts.name, facts.description, facts.func) == ("Point", "A point.\n\nIn the plane.", Point)
    assert facts.parameters == {
        "type": "object",
        "properties": {
            "x": {"type": "number", "minimum": 0, "description": "east"},
            "y": {"type": "number", "default": 0.0},
        },
        "required": ["x"],
        "additionalProperties": False,
    }


def test_a_recursive_model_has_an_object_at_its_root():
    """tool-declarations: A recursive type stays recursive."""
    facts = ToolDecl.of(Node)
    assert facts.parameters["type"] == "object"
    assert facts.parameters["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert facts.parameters["$defs"]["Node"]["type"] == "object"


def test_each_reading_has_a_schema_of_its_own():
    ToolDecl.of(Point).parameters.clear()
    assert ToolDecl.of(Point).parameters["required"] == ["x"]


def test_a_given_schema_replaces_the_derived_one():
    given = {"type": "object"}
    assert ToolDecl.of(Point, parameters=given).parameters == given


def test_a_model_without_a_schema_is_refused():
    class Odd(pydantic.BaseModel):
        call: Callable[[], int]

    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(Odd)
    assert caught.value.code == "underivable"
    assert caught.value.tool is not None
    assert caught.value.tool.endswith("Odd")


def test_a_model_that_is_no_object_is_refused():
    """tool-declarations: A schema that is no object schema is refused."""
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(pydantic.RootModel[list[int]])
    assert caught.value.code == "invalid_schema"


def test_an_instance_of_a_model_is_no_tool():
    for source in (Point(x=1), int):
        with pytest.raises(InvalidToolDecl) as caught:
            ToolDecl.of(source)
        assert caught.value.code == "unknown_source"


def test_what_was_derived_does_not_keep_the_class_alive():
    class Short(pydantic.BaseModel):
        x: int

    ToolDecl.of(Short)
    watched = weakref.ref(Short)
    del Short
    gc.collect()
    assert watched() is None
