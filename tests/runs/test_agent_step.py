"""What a step of an agent enters, as the benchmarks walk it."""

import importlib
from typing import Any

import pytest

AGENTS: Any = importlib.import_module("benchmarks.agents")


@pytest.mark.parametrize("form", AGENTS.forms())
def test_a_step_reads_no_tool_again(form: str) -> None:
    """call-cost: A step of an agent is walked."""
    step = AGENTS.walk(AGENTS.forms()[form])
    assert step.sources_read == 0
    assert step.moves > 50  # so the walk saw the step


def test_a_walk_sees_a_tool_that_is_read() -> None:
    """call-cost: A step of an agent is walked."""
    tools = AGENTS.forms()["functions"]

    def tool_0(city: str) -> str:
        """Weather for a city."""
        tool_1.__doc__ = f"{tool_1.__doc__} Really."
        return city

    def tool_1(city: str) -> str:
        """Weather for a city."""
        return city

    assert AGENTS.walk([tool_0, tool_1, *tools[2:]]).sources_read > 0
