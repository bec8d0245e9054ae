"""What the commands' tests show, read and replay, as a user's module would have it."""

import dspy
from mcp.types import ListToolsResult, Tool

from sigadapt import ToolCalls, ToolDecls, ToolResults, Toolset


def get_weather(city: str, days: int = 1) -> str:
    """Weather forecast for a city."""
    raise AssertionError("a tool was executed")


class Assist(dspy.Signature):
    """Answer the question, with tools where they help."""

    question: str = dspy.InputField()
    days: int = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    results: ToolResults | None = dspy.InputField(default=None)
    answer: str | None = dspy.OutputField()
    calls: ToolCalls | None = dspy.OutputField()


class OfDSPy(dspy.Signature):
    """Use DSPy's own types."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": False}
DOTTED = {"name": "files.read", "description": "Read a file.", "parameters": SCHEMA}
TOOLS = [get_weather, DOTTED]
LISTED = ListToolsResult(tools=[Tool.model_validate({"name": "now", "inputSchema": {"type": "object"}})])
TOOLSET = Toolset("weather", [get_weather]).prefixed("w_")
DECLS = ToolDecls(TOOLS)
PROGRAM = dspy.Predict(Assist)


def broken() -> None:
    raise AssertionError


TWO_TITLED = [
    Tool.model_validate({"name": name, "title": name.title(), "inputSchema": {"type": "object"}})
    for name in ("one", "two")
]

UNDESCRIBED = [{"name": "f"}]

HOSTILE = {"name": "a\x1b[31mb\u202e\x9b", "description": "\x1b]0;title\x07", "parameters": SCHEMA}
