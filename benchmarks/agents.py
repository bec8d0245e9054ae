"""What an agent costs: runs of `dspy.ReActV2` beside those under DSPy's adapter."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dspy
from dspy import lm15

import sigadapt
from benchmarks.measure import Table, medians, micro, times
from benchmarks.subjects import answer_with, functions
from sigadapt import ToolDecls

ROUNDS = 6
TOOLS = 10


class Scripted:
    """An engine that answers at once: a call in each round, then `submit`."""

    supports_function_calling, supports_response_schema = True, False
    supported_params = ("tools", "tool_choice")

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Answer by the number of the model's turns so far."""
        turn = sum(message.role == "assistant" for message in request.messages)
        name, arguments = "submit", {"answer": "Sunny."}
        if turn < ROUNDS:
            name, arguments = f"tool_{turn}", {"city": "Paris"}
        part = lm15.ToolCallPart(id=f"call_{turn}", name=name, input=arguments)
        function = {"name": name, "arguments": json.dumps(arguments)}
        message = {"role": "assistant", "tool_calls": [{"id": part.id, "function": function}]}
        return answer_with(part, request, {"choices": [{"finish_reason": "tool_calls", "message": message}]})


def running(adapter: dspy.Adapter, tools: Sequence[Any]) -> Callable[[], object]:
    """A run of an agent under an adapter."""
    agent: Any = dspy.ReActV2("question -> answer", tools=[*tools], max_iters=20)
    lm = dspy.LM("openai/x", engine=Scripted(), cache=False)

    def run() -> object:
        with dspy.context(lm=lm, adapter=adapter, disable_history=True, trace=None):
            return agent(question="Weather?")

    return run


def tables(seconds: float) -> Iterator[Table]:
    """The runs."""
    yield runs(seconds)


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
        ours, theirs = medians([running(native, tools), running(dspys, tools)], seconds)
        rows.append([form, times(ours / theirs), micro(ours), micro(theirs)])
    told = f"`dspy.ReActV2` with {TOOLS} tools, {ROUNDS} rounds and `submit`. The model answers at once."
    return Table("A run of an agent", told, ("tools", "ratio to DSPy's", "sigadapt", "DSPy"), rows)
