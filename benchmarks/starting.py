"""What comes before the first call: importing, declaring tools, and the prompt's length."""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

import dspy
from dspy import lm15
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic_ai import Tool

import sigadapt
from benchmarks.measure import Table, medians, micro, times
from benchmarks.subjects import Free, Ours, Theirs, functions, tool
from sigadapt import ToolDecls

MANY = 200
NOWHERE = "/nonexistent"  # a prefix for bytecode under which there is none


def tables(seconds: float) -> Iterator[Table]:
    """The comparisons, each row taken for so many seconds."""
    yield declaring(seconds)
    yield importing(5 if seconds else 1)
    yield prompt()


def declaring(seconds: float) -> Table:
    """200 functions, to what goes into a request."""
    known = functions(MANY)
    ways = {
        "sigadapt, the first time": lambda: ToolDecls(functions(MANY)).to_openai(),
        "sigadapt, again": lambda: ToolDecls(known).to_openai(),
        "pydantic-ai": lambda: [Tool(function).tool_def for function in functions(MANY)],
        "LangChain": lambda: [convert_to_openai_tool(function) for function in functions(MANY)],
        "dspy.Tool": lambda: [dspy.Tool(function) for function in functions(MANY)],
    }
    taken = medians(list(ways.values()), seconds)
    rows = [[name, times(one / taken[-1]), micro(one / MANY)] for name, one in zip(ways, taken, strict=True)]
    told = "200 functions with three parameters each. sigadapt derives each schema once."
    return Table("Declaring functions", told, ("", "ratio to DSPy's", "a function"), rows)


def importing(repeats: int) -> Table:
    """The package on top of dspy, in fresh interpreters: the import itself, and every public name."""
    rows: list[list[str]] = []
    for what in ("import sigadapt", "from sigadapt import *"):
        code = f"import time; import dspy; t = time.perf_counter(); {what}; print(time.perf_counter() - t)"
        taken = [started(code, PYTHONDONTWRITEBYTECODE="") for _ in range(repeats + 1)][1:]
        none = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": NOWHERE}
        unwritten = [started(code, **none) for _ in range(repeats)]
        rows.append(
            [f"`{what}`", *(f"{statistics.median(each) * 1e3:.0f} ms" for each in (taken, unwritten))]
        )
    told = "In a fresh interpreter, on top of `import dspy`. sigadapt loads a name when you first use it."
    return Table("Importing", told, ("", "bytecode written", "none written"), rows)


def started(code: str, **environment: str) -> float:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return float(done.stdout)


class Counting(Free):
    """The engine, counting what it was told in words."""

    size = 0

    def complete(self, request: lm15.Request) -> lm15.Response:
        """The same answer; the text is counted."""
        Counting.size = len(str(request.system or "")) + sum(len(m.text or "") for m in request.messages)
        return super().complete(request)


def prompt() -> Table:
    """The text of a request with one short question and one tool."""
    asking = {
        "sigadapt": (sigadapt.ChatAdapter(tool_calling="native"), Ours, ToolDecls([tool(0)])),
        "DSPy": (dspy.ChatAdapter(use_native_function_calling=True), Theirs, [dspy.Tool(tool(0))]),
    }
    sizes: list[int] = []
    for adapter, signature, tools in asking.values():
        lm = dspy.LM("openai/x", engine=Counting(), cache=False)
        with dspy.context(lm=lm, adapter=adapter, trace=None):
            dspy.Predict(signature)(question="q", tools=tools)
        sizes.append(Counting.size)
    rows = [[name, times(n / sizes[-1]), str(n)] for name, n in zip(asking, sizes, strict=True)]
    told = "Characters of system text and messages. [prompt.md](prompt.md) counts tokens as well."
    return Table("The prompt's length", told, ("", "ratio to DSPy's", "characters"), rows)
