"""Values that a command gives a program: text for text, JSON for anything else."""

from typing import Any

import pytest
from commands import programs
from internals import inputs_of

from sigadapt import ToolDecls
from sigadapt.errors import InvalidOption


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("text=[1]", "[1]"),
        ("either=a, b", "a, b"),
        ('texts=["a", "b"]', ["a", "b"]),
        ('by_name={"a": 1}', {"a": 1}),
        ('some=["a"]', ["a"]),
    ],
)
def test_only_a_field_of_text_takes_text(given: str, value: Any) -> None:
    """command-line: An input that nobody gave is a placeholder, and said so."""
    values, placeholders = inputs_of(programs.Typed.input_fields, [given], ToolDecls(), None)
    name = given.partition("=")[0]
    assert values[name] == value
    assert name not in placeholders


@pytest.mark.parametrize("given", ["texts=a", "by_name=a", "some=a"])
def test_a_value_that_is_neither_text_nor_json_is_refused(given: str) -> None:
    """command-line: An error is one line, and never a traceback."""
    with pytest.raises(InvalidOption, match="is not JSON"):
        inputs_of(programs.Typed.input_fields, [given], ToolDecls(), None)
