"""Read one recorded answer with sigadapt, and with DSPy's own adapter."""

from collections.abc import Callable
from typing import Any

import dspy

import sigadapt
from benchmarks.board.readers import QUESTION, Read, Task, read
from sigadapt import ToolCalls, ToolDecls


class Ours(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls | None = dspy.OutputField()


class Theirs(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


def with_sigadapt(task: Task) -> Read:
    """Read with sigadapt. The calls hold the text, beside calls or alone."""
    tools = ToolDecls([_declared(tool) for tool in task["tools"]])
    calls = _asked(task, sigadapt.ChatAdapter(), Ours, tools).calls
    return read([(call.id, call.name, call.args) for call in calls], calls.text)


def with_dspy(task: Task) -> Read:
    """Read with DSPy's adapter and native function calling. Its calls have no place for a text."""
    tools = [
        dspy.Tool(
            lambda **_: "",
            name=tool["name"],
            desc=tool["description"] or "",
            args=(tool["parameters"] or {}).get("properties") or {},
        )
        for tool in task["tools"]
    ]
    out = _asked(task, dspy.ChatAdapter(use_native_function_calling=True), Theirs, tools)
    calls = out.calls.tool_calls if out.calls else ()
    return read([(getattr(call, "id", None), call.name, call.args) for call in calls], None)


def _declared(tool: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tool.items() if value is not None}


def _asked(task: Task, adapter: dspy.Adapter, signature: Any, tools: Any) -> Any:
    program = dspy.Predict(signature)
    with dspy.context(lm=dspy.LM(**task["lm"]), adapter=adapter):
        if not task["stream"]:
            return program(question=QUESTION, tools=tools)
        streamed: Any = dspy.streamify(program, async_streaming=False)
        *_, out = streamed(question=QUESTION, tools=tools)
        return out


READERS: dict[str, Callable[[Task], Read]] = {"sigadapt": with_sigadapt, "DSPy's adapter": with_dspy}
