"""The options of an adapter are checked when it is built, before any request."""

import dataclasses
import inspect
from typing import Any

import pytest
from support import ADAPTERS

import sigadapt
from sigadapt.errors import InvalidOption


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(
    ("options", "field", "told"),
    [
        ({"tool_calling": "sometimes"}, "tool_calling", "'auto', 'native' or 'prompted'"),
        ({"on_invalid": "drop"}, "on_invalid", "'raise', 'keep' or 'reask'"),
        ({"validate_args": 1}, "validate_args", "expected a boolean, got"),
        ({"parallel_tool_calls": "yes"}, "parallel_tool_calls", "expected a boolean, got"),
        ({"tool_callin": "native"}, "tool_callin", "Did you mean 'tool_calling'?"),
        ({"zzz": 1}, "zzz", "It takes "),
        ({"call_format": ["hermes"]}, "call_format", "['hermes'] is not a text format to ask for"),
        ({"formats": 1}, "formats", "1 is not a known text format"),
        ({"formats": [["hermes"]]}, "formats", "['hermes'] is not a known text format"),
        ({"formats": iter(["hermes"])}, "formats", "can be read only once"),
        ({"replay_reasoning": 0}, "replay_reasoning", "'reasoning' or 'reasoning_content', got 0"),
        ({"replay_reasoning": []}, "replay_reasoning", "'reasoning' or 'reasoning_content', got []"),
    ],
)
def test_an_option_that_cannot_work_is_refused_at_once(
    adapter: Any, options: dict[str, Any], field: str, told: str
) -> None:
    """adapter-plug-in: An unknown option is refused.

    adapter-plug-in: A value that an option does not take is refused.
    """
    with pytest.raises(InvalidOption) as caught:
        adapter(**options)
    assert caught.value.field == field
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "adapter",
    [
        sigadapt.ChatAdapter,
        sigadapt.JSONAdapter,
        sigadapt.adapters.XMLAdapter,
        sigadapt.adapters.BAMLAdapter,
        sigadapt.adapters.TwoStepAdapter,
    ],
)
def test_every_option_stands_in_the_signature(adapter: Any) -> None:
    """adapter-plug-in: Every option is a documented parameter."""
    parameters = inspect.signature(adapter).parameters
    own, documented = inspect.getdoc(adapter) or "", inspect.getdoc(sigadapt.ChatAdapter) or ""
    assert "Args:" in own or "Takes the same arguments as" in own
    assert own == documented or "`ChatAdapter`" in own or "`JSONAdapter`" in own
    for option in dataclasses.fields(sigadapt.ChatAdapter().options):
        parameter = parameters[option.name]
        assert parameter.annotation is not parameter.empty
        assert parameter.default == option.default
        assert f"    {option.name}: " in documented
