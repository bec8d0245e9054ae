"""`dspy.Tool` as a source of tools."""

from collections.abc import Callable
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


class Desk:
    """A desk."""

    def __call__(self, room: int) -> bool:
        raise AssertionError


def facts(tool: dspy.Tool) -> ToolDecl:
    return ToolDecl.of(tool)


def test_a_tool_loses_nothing_of_its_function():
    """tool-declarations: A DSPy tool keeps its name, description and parameters."""
    told = facts(dspy.Tool(book))
    assert (told.name, told.description, told.func) == ("book", "Book a room.", book)
    assert told.parameters["required"] == ["room"]
    assert told.parameters["properties"] == {
        "room": {"type": "integer", "minimum": 1, "description": "Its number."},
        "note": {"type": "string", "default": ""},
    }


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


def test_args_given_to_the_tool_are_the_declaration():
    """tool-declarations: A DSPy tool keeps its name, description and parameters."""
    args: dict[str, Any] = {"room": {"type": "string"}, "floor": {"type": "integer", "default": 1}}
    told = facts(dspy.Tool(book, args=args))
    assert told.parameters == {"type": "object", "properties": args, "required": ["room"]}


def test_args_changed_afterwards_are_the_declaration():
    tool = dspy.Tool(book)
    assert tool.args is not None
    tool.args["room"]["description"] = "better words"
    assert facts(tool).parameters["properties"]["room"]["description"] == "better words"


def test_callable_objects_and_lambdas_are_read():
    assert facts(dspy.Tool(Desk())).parameters["required"] == ["room"]
    nameless: Callable[[int], int] = lambda room: room  # noqa: E731
    assert facts(dspy.Tool(nameless, name="f")).parameters["required"] == ["room"]


def test_a_function_that_no_model_could_call_is_refused():
    def odd(room: int, /): ...

    with pytest.raises(InvalidToolDecl):
        facts(dspy.Tool(odd))


def test_a_given_schema_replaces_the_tool_s():
    given = {"type": "object"}
    told = ToolDecl.of(dspy.Tool(book, name="reserve"), parameters=given)
    assert (told.name, told.parameters) == ("reserve", given)
