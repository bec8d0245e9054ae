"""Strict mode: what is closed is told, and what would mean something else is refused."""

import re
from copy import deepcopy
from typing import Any

import dspy
import pytest
from support import Ask, lm_of
from tables import table

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


@pytest.mark.parametrize(("part", "path"), table(__file__, "REFUSED"))
def test_what_would_mean_something_else_is_refused_with_its_place(part: Any, path: str):
    """request-shaping: A schema that strict mode cannot take is refused."""
    defs = {"D": {"type": "object"} if "$defs" in str(part) else {**CLOSED, "$anchor": "anchor"}}
    assert refused_at(of(part, **{"$defs": defs, "x-own": OPEN})) == path


@pytest.mark.parametrize(("part", "closed"), table(__file__, "CLOSED_AT"))
def test_what_is_closed_is_told(part: Json, closed: tuple[str, ...]):
    """request-shaping: An object that is closed is on record."""
    parameters = of(part, **({"$defs": {"D": OPEN}} if "$defs" in str(part) else {}))
    before = deepcopy(parameters)
    sent, places = strict(parameters)
    assert places == [*closed]
    assert parameters == before
    assert sent["additionalProperties"] is False
