"""The limits that a user can meet, from both sides, by their numbers: a changed constant fails here."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import sigadapt
from sigadapt import ToolCalls, ToolDecls
from sigadapt.errors import InvalidOption, InvalidToolDecl


def tool(**properties: Any) -> ToolDecls:
    schema = {"type": "object", "properties": properties}
    return ToolDecls([{"name": "f", "parameters": schema}])


def deep_default(levels: int) -> ToolDecls:
    value: Any = 0
    for _ in range(levels - 3):  # beside the root, its properties and the property
        value = [value]
    return tool(x={"default": value})


def enum(values: int) -> ToolDecls:
    return tool(x={"enum": list(range(values))})


def patterns(count: int) -> ToolDecls:
    return tool(**{f"p{number}": {"type": "string", "pattern": f"^{number}$"} for number in range(count)})


def in_lists(levels: int) -> ToolDecls:
    source: Any = {"name": "f"}
    for _ in range(levels):
        source = [source]
    return ToolDecls(source)


@pytest.mark.parametrize(
    ("declare", "largest", "reason"),
    [
        (deep_default, 100, "nested deeper than 100 levels"),
        (enum, 99_990, "more than 100000 values"),
        (patterns, 500, "more than 500 patterns"),
        (in_lists, 16, "nest deeper than 16 levels"),
    ],
    ids=["levels of a schema", "values of a schema", "patterns of a schema", "lists around a source"],
)
def test_a_declaration_has_limits(declare: Callable[[int], ToolDecls], largest: int, reason: str) -> None:
    """tool-declarations: A schema of hostile depth or size is refused"""
    assert len(declare(largest)) == 1
    with pytest.raises(InvalidToolDecl, match=reason):
        declare(largest + (20 if declare is enum else 1))


def test_a_secret_has_sixteen_bytes() -> None:
    """conversations: An approval is signed"""
    assert len(sigadapt.trust.sign(ToolCalls([{"name": "f", "args": {}}]), "x" * 16)) == 1
    with pytest.raises(InvalidOption, match="16 bytes"):
        sigadapt.trust.sign(ToolCalls([{"name": "f", "args": {}}]), "x" * 15)


def test_requests_are_asked_again_so_often() -> None:
    """adapter-plug-in: Every option is a documented parameter"""
    parameters = inspect.signature(sigadapt.ChatAdapter).parameters
    assert {name: parameters[name].default for name in ("max_reasks", "max_pauses")} == {
        "max_reasks": 1,
        "max_pauses": 8,
    }
