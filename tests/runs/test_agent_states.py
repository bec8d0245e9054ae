"""What an agent loads: its own state and that of `dspy.ReActV2`, and never that of a `dspy.ReAct`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from agents import DSPY_AGENT, Shop

import sigadapt
from sigadapt.errors import InvalidOption

OLD_AGENT: Any = dspy.ReAct
AGENTS: dict[str, Callable[[], Any]] = {
    "sigadapt.ReAct": lambda: sigadapt.ReAct("question -> answer", tools=Shop().tools),
    "dspy.ReActV2": lambda: DSPY_AGENT("question -> answer", tools=Shop().tools),
    "dspy.ReAct": lambda: OLD_AGENT("question -> answer", tools=Shop().tools),
}


class Desk(dspy.Module):
    """A module with an agent."""

    def __init__(self, agent: Any) -> None:
        super().__init__()
        self.agents = [agent]


def with_demo(agent: Any) -> Any:
    """An agent that was optimized: its fields have other prefixes, and it has an example."""
    predictor = agent.react
    for name in ("next_tool_name", "next_tool_args"):
        predictor.signature = predictor.signature.with_updated_fields(name, prefix="Now:")
    predictor.demos = [dspy.Example(question="q", next_tool_name="stock", next_tool_args={})]
    return agent


def through_file(old: Any, new: Any, folder: Path) -> None:
    old.save(folder / "state.json")
    new.load(folder / "state.json")


LOADS: dict[str, Callable[[Any, Any, Path], Any]] = {
    "load_state": lambda old, new, _: new.load_state(old.dump_state()),
    "load": through_file,
}
PLACES: dict[str, Callable[[Any], Any]] = {"alone": lambda agent: agent, "in a module": Desk}


@pytest.mark.parametrize("is_optimized", [False, True])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", LOADS)
@pytest.mark.dspy_3_4
def test_the_state_of_an_old_agent(how: str, place: str, is_optimized: bool, tmp_path: Path) -> None:
    """agent-runs: The state of a dspy.ReAct is refused."""
    old = with_demo(AGENTS["dspy.ReAct"]()) if is_optimized else AGENTS["dspy.ReAct"]()
    program = PLACES[place](AGENTS["sigadapt.ReAct"]())
    before = program.dump_state()
    with pytest.raises(InvalidOption, match=r"state of a dspy\.ReAct.*Optimize this agent"):
        LOADS[how](PLACES[place](old), program, tmp_path)
    assert program.dump_state() == before


@pytest.mark.parametrize("source", ["sigadapt.ReAct", "dspy.ReActV2"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", LOADS)
def test_the_state_of_such_an_agent(how: str, place: str, source: str, tmp_path: Path) -> None:
    """agent-runs: The state of a dspy.ReAct is refused."""
    old = PLACES[place](AGENTS[source]())
    [predictor] = old.predictors()
    predictor.signature = predictor.signature.with_instructions("Be brisk.")
    program = PLACES[place](AGENTS["sigadapt.ReAct"]())
    LOADS[how](old, program, tmp_path)
    assert [each.signature.instructions for each in program.predictors()] == ["Be brisk."]
