"""Strict mode: what is closed is told, and what would mean something else is refused."""

import re
from copy import deepcopy
from typing import Any

import dspy
import pytest
from support import Ask, lm_of

import sigadapt
from sigadapt.errors import InvalidToolDecl
from sigadapt.testing import Answer, LoopbackProvider

Json = dict[str, Any]

TEXT = {"type": "string"}
CLOSED: Json = {"type": "object", "properties": {"t": TEXT}, "required": ["t"], "additionalProperties": False}
OPEN: Json = {"type": "object", "properties": {"t": TEXT}, "required": ["t"]}


def of(part: Any, **more: Any) -> Json:
    whole = {"type": "object", "properties": {"p": part}, "required": ["p"], "additionalProperties": False}
    return {**whole, **more}


def strict(parameters: Json) -> tuple[Json, list[str]]:
    """The schema of a strict tool as a provider gets it, and the places where it was closed."""
    tools: Any = [{"name": "f", "parameters": parameters, "strict": True}]
    with LoopbackProvider([Answer(text="Hi.")]) as provider:
        lm: Any = lm_of(provider)
        with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter()):
            dspy.Predict(Ask)(question="q", tools=tools)
    changes: Any = lm.history[0].get("changes", ())
    closed = [place for change in changes for place in re.findall(r"'(/[^']*)'", change.why)]
    (tool,) = provider.received[0].body["tools"]
    assert (tool["type"], tool["function"]["strict"]) == ("function", True)
    return tool["function"]["parameters"], closed


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
    defs = {"D": {"type": "object"} if "$defs" in str(part) else {**CLOSED, "$anchor": "anchor"}}
    assert refused_at(of(part, **{"$defs": defs, "x-own": OPEN})) == path


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
    sent, places = strict(parameters)
    assert places == [*closed]
    assert parameters == before
    assert sent["additionalProperties"] is False
