"""DSPy signatures and modules as tools."""

import datetime as dt
import logging
from typing import Any

import dspy
import pydantic
import pytest

from sigadapt import ToolDecl, ToolDecls
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


PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "place": {"$ref": "#/$defs/Place", "description": "Where."},
        "days": {"type": "integer", "minimum": 1, "default": 3},
        "on": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
    },
    "required": ["place"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("source", [Weather, dspy.Predict(Weather)])
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


@pytest.mark.parametrize(
    "module", [dspy.ChainOfThought(Weather), dspy.ReAct(Weather, tools=[])], ids=["ChainOfThought", "ReAct"]
)
def test_modules_of_dspy_are_declared_by_their_signature(module: dspy.Module):
    """tool-declarations: A DSPy module is declared by what it takes."""
    decl = ToolDecl.of(module, name="weather")
    assert list(decl.parameters["properties"]) == ["place", "days", "on"]
    assert decl.func is module


class Research(dspy.Module):
    """Look something up."""

    def forward(self, topic: str, depth: int = 1) -> Any:
        """Research a topic.

        Args:
            topic: What to look up.
        """
        raise AssertionError


class Silent(dspy.Module):
    async def aforward(self, topic: str) -> Any:
        """Research a topic."""
        raise AssertionError


class Wrapper(dspy.Module):
    """Wrap."""

    def __init__(self) -> None:
        super().__init__()
        self.step = dspy.Predict(Weather)

    def forward(self, **kwargs: Any) -> Any:
        raise AssertionError


class Opaque(dspy.Module):
    def forward(self, **kwargs: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    ("module", "name", "description", "parameters"),
    [
        (Research(), "Research", "Look something up.", ["topic", "depth"]),
        (Silent(), "Silent", "Research a topic.", ["topic"]),
        (Wrapper(), "Wrapper", "Wrap.", ["place", "days", "on"]),
    ],
)
def test_own_modules_are_declared_by_forward(
    module: dspy.Module, name: str, description: str, parameters: list[str]
):
    """tool-declarations: A DSPy module is declared by what it takes."""
    decl = ToolDecl.of(module)
    assert (decl.name, decl.description) == (name, description)
    assert list(decl.parameters["properties"]) == parameters


def test_docstrings_of_forward_describe_parameters():
    assert ToolDecl.of(Research()).parameters["properties"]["topic"]["description"] == "What to look up."


def test_a_module_that_does_not_say_what_it_takes_is_refused():
    """tool-declarations: A DSPy module is declared by what it takes."""
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(Opaque())
    assert (caught.value.code, caught.value.tool) == ("underivable", "Opaque")
    given = ToolDecl.of(Opaque(), parameters={"type": "object"})
    assert (given.name, given.parameters) == ("Opaque", {"type": "object"})


def test_a_signature_without_a_name_asks_for_one():
    """tool-declarations: A tool without a name is refused."""
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecls(dspy.Predict("question -> answer"))
    assert caught.value.code == "missing_name"
    assert ToolDecl.of(dspy.Predict("question -> answer"), name="ask").name == "ask"


def test_an_input_without_a_schema_is_refused():
    class Bad(dspy.Signature):
        tool: dspy.Tool = dspy.InputField()
        answer: str = dspy.OutputField()

    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(Bad)
    assert caught.value.code == "underivable"
    assert "'tool'" in caught.value.reason


def test_a_derived_schema_is_the_declaration_s_own():
    first, second = ToolDecl.of(Weather), ToolDecl.of(Weather)
    assert first.parameters == second.parameters
    assert first.parameters is not second.parameters


@pytest.mark.parametrize("value", [dspy.Predict, dspy.Module, 5, "x", int])
def test_nothing_else_is_read(value: object):
    with pytest.raises(InvalidToolDecl) as caught:
        ToolDecl.of(value)
    assert caught.value.code == "unknown_source"


def test_reading_a_module_logs_nothing(caplog: pytest.LogCaptureFixture):
    """tool-declarations: Nothing declared is ever called."""
    logger = logging.getLogger("dspy")
    logger.propagate = True
    try:
        for module in (Research(), Silent(), dspy.Predict(Weather)):
            ToolDecl.of(module)
    finally:
        logger.propagate = False
    assert caplog.records == []
