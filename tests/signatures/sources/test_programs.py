"""DSPy signatures and modules as tools."""

import datetime as dt
from typing import Any, cast

import dspy
import pydantic
import pytest
from tables import table

import sigadapt
from sigadapt import ToolDecl
from sigadapt.errors import InvalidToolDecl


class Place(pydantic.BaseModel):
    city: str
    near: "Place | None" = None


class Weather(dspy.Signature):
    """Tell the weather."""

    place: Place = dspy.InputField(desc="Where.")
    days: int = dspy.InputField(ge=1, default=3)
    on: dt.date | None = dspy.InputField(default=None)
    report: str = dspy.OutputField(desc="In one line.")
    stations: list[Place] = dspy.OutputField()
    nearest: Place = dspy.OutputField()


PARAMETERS: dict[str, Any] = table(__file__, "PARAMETERS")


def ask(city: str) -> str:
    """Ask a station."""
    raise AssertionError


AGENTS = [kind(Weather, tools=[ask]) for kind in (sigadapt.ReAct, cast("Any", dspy).ReActV2)]


@pytest.mark.parametrize("source", [Weather, dspy.Predict(Weather), *AGENTS])
def test_inputs_are_parameters_and_outputs_the_result(source: Any):
    """tool-declarations: A DSPy signature is declared by its fields."""
    decl = ToolDecl.of(source)
    assert (decl.name, decl.description) == ("Weather", "Tell the weather.")
    assert {key: value for key, value in decl.parameters.items() if key != "$defs"} == PARAMETERS
    assert decl.parameters["$defs"]["Place"]["properties"]["near"]["anyOf"][0] == {"$ref": "#/$defs/Place"}
    assert decl.returns is not None
    assert list(decl.returns["properties"]) == ["report", "stations", "nearest"]
    assert decl.returns["properties"]["report"] == {"type": "string", "description": "In one line."}
    assert decl.returns["$defs"].keys() == {"Place"}
    assert decl.flaw_of({"place": {"city": "Paris"}, "days": 2}) is None
    assert decl.flaw_of({"place": {"city": "Paris"}, "days": 0}) is not None


def test_func_is_for_the_caller():
    """tool-declarations: Nothing declared is ever called."""
    module = dspy.Predict(Weather)
    assert ToolDecl.of(module).func is module
    made = ToolDecl.of(Weather).func
    assert isinstance(made, dspy.Predict)
    assert made.signature is Weather


class Opaque(dspy.Module):
    def forward(self, **kwargs: Any) -> Any:
        raise AssertionError


def test_a_module_that_does_not_say_what_it_takes_is_refused():
    """tool-declarations: A DSPy module is declared by what it takes."""
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(Opaque())
    assert (caught.value.code, caught.value.tool) == ("underivable", "Opaque")
    given = ToolDecl.of(Opaque(), parameters={"type": "object"})
    assert (given.name, given.parameters) == ("Opaque", {"type": "object"})


def test_an_input_without_a_schema_is_refused():
    class Bad(dspy.Signature):
        tool: dspy.Tool = dspy.InputField()
        answer: str = dspy.OutputField()

    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(Bad)
    assert caught.value.code == "underivable"
    assert "'tool'" in caught.value.reason


@pytest.mark.parametrize("value", [dspy.Predict, dspy.Module, 5, "x", int])
def test_nothing_else_is_read(value: object):
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(value)
    assert caught.value.code == "unknown_source"
