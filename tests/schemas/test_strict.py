"""Strict mode: what is closed is told, and what would mean something else is refused."""

from copy import deepcopy
from itertools import pairwise
from typing import Any

import pytest
from internals import StrictRules, StrictTool, strict_tool

from sigadapt.errors import InvalidToolDecl

Json = dict[str, Any]

TEXT = {"type": "string"}
CLOSED: Json = {"type": "object", "properties": {"t": TEXT}, "required": ["t"], "additionalProperties": False}
OPEN: Json = {"type": "object", "properties": {"t": TEXT}, "required": ["t"]}


def of(part: Any, **more: Any) -> Json:
    whole = {"type": "object", "properties": {"p": part}, "required": ["p"], "additionalProperties": False}
    return {**whole, **more}


def strict(parameters: Json) -> StrictTool:
    return strict_tool({"type": "function", "function": {"name": "f", "parameters": parameters}})


def refused_at(parameters: Json) -> str | None:
    with pytest.raises(InvalidToolDecl) as caught:
        strict(parameters)
    assert (caught.value.code, caught.value.tool) == ("not_strict", "f")
    return caught.value.path


@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"type": "object"}, "/properties/p"),
        ({"type": ["object", "null"]}, "/properties/p"),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, "/properties/p/anyOf/0"),
        ({"type": "array", "items": {"type": "object"}}, "/properties/p/items"),
        ({"type": "array", "prefixItems": [{"type": "object"}]}, "/properties/p/prefixItems/0"),
        ({**OPEN, "additionalProperties": True}, "/properties/p/additionalProperties"),
        ({"type": "object", "additionalProperties": TEXT}, "/properties/p/additionalProperties"),
        ({**OPEN, "type": ["object", "null"], "required": []}, "/properties/p/properties/t"),
        ({**OPEN, "unevaluatedProperties": TEXT}, "/properties/p/unevaluatedProperties"),
        ({**OPEN, "required": ["t", "u"]}, "/properties/p/required"),
        ({}, "/properties/p"),
        ({"description": "anything"}, "/properties/p"),
        (True, "/properties/p"),
        ({"$ref": "#/x-own"}, "/properties/p/$ref"),
        ({"$ref": "#anchor"}, "/properties/p/$ref"),
        ({"$ref": "#/$defs/D"}, "/$defs/D"),
    ],
)
def test_what_would_mean_something_else_is_refused_with_its_place(part: Any, path: str):
    """request-shaping: A schema that strict mode cannot take is refused."""
    defs = {"D": {"type": "object"}} if "$defs" in str(part) else {}
    assert refused_at(of(part, **{"$defs": defs, "x-own": OPEN})) == path


def test_arguments_of_any_name_are_refused():
    """request-shaping: A schema that strict mode cannot take is refused."""
    assert refused_at({"type": "object"}) == ""
    assert refused_at({"anyOf": [CLOSED, {"type": "object"}]}) == "/anyOf/1"


@pytest.mark.parametrize(
    ("part", "closed"),
    [
        (OPEN, ("/properties/p",)),
        ({**OPEN, "type": ["object", "null"]}, ("/properties/p",)),
        ({"anyOf": [OPEN, {"type": "null"}]}, ("/properties/p/anyOf/0",)),
        ({"type": "array", "items": OPEN}, ("/properties/p/items",)),
        ({"$ref": "#/$defs/D"}, ("/$defs/D",)),
        ({"type": "object", "properties": {}}, ("/properties/p",)),
        ({"properties": {"t": TEXT}, "required": ["t"]}, ("/properties/p",)),
        (CLOSED, ()),
        ({"type": "object", "additionalProperties": False}, ()),
        ({"$ref": "#"}, ()),
        ({"enum": [{"a": 1}, None]}, ()),
    ],
)
def test_what_is_closed_is_told(part: Json, closed: tuple[str, ...]):
    """request-shaping: An object that is closed is on record."""
    parameters = of(part, **({"$defs": {"D": OPEN}} if "$defs" in str(part) else {}))
    before = deepcopy(parameters)
    made = strict(parameters)
    assert made.closed == closed
    assert parameters == before
    assert made.tool["function"]["parameters"]["additionalProperties"] is False


def test_a_nullable_object_is_sent_closed():
    """request-shaping: An object that is closed is on record."""
    made = strict(of({**OPEN, "type": ["object", "null"]}))
    part = made.tool["function"]["parameters"]["properties"]["p"]
    assert part == {**CLOSED, "type": ["object", "null"]}


def chain(last: str) -> Json:
    """Definitions of which each refers to the next one, and the last one to `last`."""
    names = ["A", "B", "C", last]
    return {
        name: {**CLOSED, "properties": {"t": {"$ref": f"#/$defs/{following}"}}}
        for name, following in pairwise(names)
    }


def test_a_chain_of_definitions_is_followed_to_its_end():
    """request-shaping: A schema that strict mode cannot take is refused."""
    whole = of({"$ref": "#/$defs/A"}, **{"$defs": {**chain("D"), "D": CLOSED}})
    straight = {"type": "function", "function": {"name": "f", "parameters": whole}}
    assert strict_tool(straight, StrictRules(recursion=False)).closed == ()
    around = of({"$ref": "#/$defs/A"}, **{"$defs": chain("A")})
    circle = {"type": "function", "function": {"name": "f", "parameters": around}}
    assert strict_tool(circle, StrictRules(recursion=True)).closed == ()
    with pytest.raises(InvalidToolDecl, match="recursive") as caught:
        strict_tool(circle, StrictRules(recursion=False))
    assert str(caught.value.path).startswith("/$defs/")
    dangling = of({"$ref": "#/$defs/A"}, **{"$defs": chain("nobody")})
    assert refused_at(dangling) == "/$defs/C/properties/t/$ref"
