"""What a step of an agent enters, between the first and the second request of a run that isn't the first."""

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import dspy
import pytest
from support import serving

import sigadapt
from sigadapt import ToolDecls
from sigadapt.testing import Answer, Call, Received

PACKAGE = Path(sigadapt.__file__).parent
KINDS = ("annotations", "callables", "dicts", "docstrings", "langchain", "mcp", "models")
READERS = {str(PACKAGE / "signatures" / "sources" / f"{kind}.py") for kind in KINDS}
"""The files that read tools. The others beside them recognize a tool that was read, or run one."""


RECOGNIZE = ("accepts", "jsonable")
"""Functions of these files that read no tool: what runs a call asks them."""


def functions() -> list[Callable[..., str]]:
    return [function(number) for number in range(10)]


def function(number: int) -> Callable[..., str]:
    def weather(city: str) -> str:
        """Weather for a city."""
        return city

    weather.__name__ = f"tool_{number}"
    return weather


FORMS: dict[str, Callable[[], Sequence[Any]]] = {
    "functions": functions,
    "`dspy.Tool`s": lambda: [dspy.Tool(each) for each in functions()],
    "`ToolDecls.to_dspy()`": lambda: ToolDecls(functions()).to_dspy(),
}


def walk(tools: Sequence[Any]) -> list[str]:
    """The files of the package that are entered in one step of a second run, in order."""
    entered: list[str] = []
    requests: list[int] = []

    def note(frame: Any, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)) and frame.f_code.co_name not in RECOGNIZE:
            entered.append(file)

    def reply(received: Received) -> Answer:
        requests.append(len(entered))
        turns = sum(row["role"] == "assistant" for row in received.body["messages"])
        if turns < 2:
            return Answer(calls=[Call(f"tool_{turns}", {"city": "Paris"})])
        return Answer(calls=[Call("submit", {"answer": "Sunny."})])

    agent = cast("Any", dspy).ReActV2("question -> answer", tools=[*tools], max_iters=20)
    with serving(reply, tool_calling="native"), dspy.context(disable_history=True, trace=None):
        agent(question="Weather?")
        requests.clear()
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            agent(question="Weather?")
        finally:
            sys.setprofile(before)
    first, second, *_ = requests
    return entered[first:second]


def sources_read(entered: list[str]) -> int:
    return sum(file in READERS for file in entered)


@pytest.mark.parametrize("form", FORMS)
def test_a_step_reads_no_tool_again(form: str) -> None:
    """call-cost: A step of an agent is walked."""
    entered = walk(FORMS[form]())
    assert sources_read(entered) == 0
    assert sum(before != after for before, after in pairwise(entered)) > 50  # so the walk saw the step
