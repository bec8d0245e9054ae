"""`dspy.Tool` as a source of tools."""

from typing import Annotated, Any

import dspy
import pytest
from pydantic import Field

from sigadapt import ToolDecl
from sigadapt.errors import InvalidToolDecl


def book(room: Annotated[int, Field(ge=1)], note: str = "", *rest: str) -> bool:
    """Book a room.

    Args:
        room: Its number.
    """
    raise AssertionError


def facts(tool: dspy.Tool) -> ToolDecl:
    return ToolDecl.of(tool)


def test_names_and_descriptions_given_to_the_tool_are_kept():
    """tool-declarations: A DSPy tool keeps its name, description and parameters."""
    told = facts(
        dspy.Tool(book, name="reserve", desc="Args:\n    as written", arg_desc={"room": "which one"})
    )
    assert (told.name, told.description) == ("reserve", "Args:\n    as written")
    assert told.parameters["properties"]["room"] == {
        "type": "integer",
        "minimum": 1,
        "description": "which one",
    }


def test_a_function_that_no_model_could_call_is_refused():
    def odd(room: int, /): ...

    with pytest.raises(InvalidToolDecl):
        facts(dspy.Tool(odd))


def test_a_given_schema_replaces_the_tool_s():
    given = {"type": "object"}
    told = ToolDecl.of(dspy.Tool(book, name="reserve"), parameters=given)
    assert (told.name, told.parameters) == ("reserve", given)


class OwnTool(dspy.Tool):
    """A class of tools that a program has."""


@pytest.mark.parametrize(("schema", "required"), [(True, ["a"]), (False, ["a"]), ({"default": 1}, [])])
def test_a_given_schema_may_be_a_boolean(schema: Any, required: list[str]):
    parameters = facts(dspy.Tool(book, args={"a": schema})).parameters
    assert (parameters["properties"]["a"], parameters["required"]) == (schema, required)


@pytest.mark.parametrize("schema", [3, None, "a"])
def test_a_given_schema_that_is_none_is_refused(schema: Any):
    with pytest.raises(InvalidToolDecl, match="at /properties/a: not a valid JSON Schema"):
        facts(dspy.Tool(book, args={"a": schema}))


@pytest.mark.parametrize(("desc", "description"), [(None, "Declared."), ("Its own.", "Its own.")])
def test_a_tool_of_a_users_class_over_a_declaration_is_declared_as_that(desc: str | None, description: str):
    """tool-declarations: A DSPy tool keeps its name, description and parameters."""

    def search(query: str) -> str: ...  # pyright: ignore[reportReturnType]

    decl = ToolDecl.of(search, description="Declared.", strict=True)
    make: Any = OwnTool
    mine = facts(make(decl, name="mine", desc=desc))
    assert (mine.name, mine.description, mine.strict) == ("mine", description, True)
    assert mine.parameters == decl.parameters
