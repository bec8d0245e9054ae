"""Pydantic model classes as tools."""

from collections.abc import Callable

import pydantic
import pytest

from sigadapt import ToolDecl
from sigadapt.errors import InvalidToolDecl


class Node(pydantic.BaseModel):
    """A node."""

    children: list["Node"] = []


def test_a_recursive_model_has_an_object_at_its_root():
    """tool-declarations: A recursive type stays recursive."""
    facts = ToolDecl.of(Node)
    assert facts.parameters["type"] == "object"
    assert facts.parameters["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert facts.parameters["$defs"]["Node"]["type"] == "object"


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
