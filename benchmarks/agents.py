"""What an agent costs: runs of `dspy.ReActV2` beside those under DSPy's adapter, and a walk of one step."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import dspy
from dspy import lm15

import sigadapt
from benchmarks.measure import Table, medians, micro, times
from benchmarks.subjects import answer_with, functions
from sigadapt import ToolDecls

ROUNDS = 6
TOOLS = 10
PACKAGE = Path(sigadapt.__file__).parent
_KINDS = ("annotations", "callables", "dicts", "docstrings", "langchain", "mcp", "models")
READERS = {str(PACKAGE / "signatures" / "sources" / f"{kind}.py") for kind in _KINDS}
"""The files that read tools. The others beside them recognize a tool that was read, or run one."""


class Scripted:
    """An engine that answers at once: a call in each of so many rounds, then `submit`."""

    supports_function_calling, supports_response_schema = True, False
    supported_params = ("tools", "tool_choice")

    def __init__(self, rounds: int = ROUNDS, watch: Callable[[], None] = lambda: None) -> None:
        self.rounds = rounds
        self.watch = watch  # called at each request

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Answer by the number of the model's turns so far."""
        self.watch()
        turn = sum(message.role == "assistant" for message in request.messages)
        name, arguments = "submit", {"answer": "Sunny."}
        if turn < self.rounds:
            name, arguments = f"tool_{turn}", {"city": "Paris"}
        part = lm15.ToolCallPart(id=f"call_{turn}", name=name, input=arguments)
        function = {"name": name, "arguments": json.dumps(arguments)}
        message = {"role": "assistant", "tool_calls": [{"id": part.id, "function": function}]}
        return answer_with(part, request, {"choices": [{"finish_reason": "tool_calls", "message": message}]})


def running(adapter: dspy.Adapter, tools: Sequence[Any], engine: Scripted) -> Callable[[], object]:
    """A run of an agent under an adapter."""
    agent: Any = dspy.ReActV2("question -> answer", tools=[*tools], max_iters=20)
    lm = dspy.LM("openai/x", engine=engine, cache=False)

    def run() -> object:
        with dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=None):
            return agent(question="Weather?")

    return run


def tables(seconds: float) -> Iterator[Table]:
    """The runs, then the walk of a step."""
    yield runs(seconds)
    yield steps()


def forms() -> dict[str, Sequence[Any]]:
    """The same tools, as programs give them to an agent."""
    declared = functions(TOOLS)
    return {
        "functions": declared,
        "`dspy.Tool`s": [dspy.Tool(function) for function in declared],
        "`ToolDecls.to_dspy()`": ToolDecls(declared).to_dspy(),
    }


def runs(seconds: float) -> Table:
    """Six rounds, with each form of tools."""
    native = sigadapt.ChatAdapter(tool_calling="native")
    dspys = dspy.ChatAdapter(use_native_function_calling=True)
    rows: list[list[str]] = []
    for form, tools in forms().items():
        ours, theirs = medians(
            [running(native, tools, Scripted()), running(dspys, tools, Scripted())], seconds
        )
        rows.append([form, times(ours / theirs), micro(ours), micro(theirs)])
    told = f"`dspy.ReActV2` with {TOOLS} tools, {ROUNDS} rounds and `submit`. The model answers at once."
    return Table("A run of an agent", told, ("tools", "ratio to DSPy's", "sigadapt", "DSPy"), rows)


class Step(NamedTuple):
    """What happened in the package between two requests: the files entered, in order, and sources read."""

    entered: list[str]

    @property
    def moves(self) -> int:
        """How often one file called into another."""
        return sum(before != after for before, after in pairwise(self.entered))

    @property
    def sources_read(self) -> int:
        """How many functions of the readers of sources were entered."""
        return sum(file in READERS for file in self.entered)


def walk(tools: Sequence[Any]) -> Step:
    """Walk one step of a second run: an answer is read, a tool runs, the next request is written."""
    entered: list[str] = []
    requests: list[int] = []

    def note(frame: Any, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            entered.append(file)

    engine = Scripted(rounds=2, watch=lambda: requests.append(len(entered)))
    run = running(sigadapt.ChatAdapter(tool_calling="native"), tools, engine)
    run()
    requests.clear()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    first, second, *_ = requests
    return Step(entered[first:second])


def steps() -> Table:
    """The walk of a step, with each form of tools."""
    rows: list[list[str]] = []
    for form, tools in forms().items():
        step = walk(tools)
        files = len(set(step.entered))
        rows.append([form, str(len(step.entered)), str(files), str(step.moves), str(step.sources_read)])
    told = (
        "What runs in sigadapt between the first and the second request of a run that isn't the first: it "
        "reads an answer, runs a tool and writes a request. A move is a call from one file into another. The "
        "last column counts functions that read tools anew."
    )
    return Table("A step of an agent", told, ("tools", "functions", "files", "moves", "reading tools"), rows)
