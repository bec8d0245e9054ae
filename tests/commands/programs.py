"""What the commands' tests show and read, as a user's module would have it."""

from typing import Any, cast

import dspy
from mcp.types import ListToolsResult, Tool

import sigadapt
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
MANY = [{"name": f"tool_{n}", "description": "x" * n, "parameters": {"type": "object"}} for n in range(9)]
PROGRAM = dspy.Predict(Assist)
CHOSEN = dspy.Predict(Assist, tool_choice="required", temperature=0.5)


def broken() -> None:
    raise AssertionError


TWO_WITH_META = [
    Tool.model_validate({"name": name, "_meta": {"titled": name.title()}, "inputSchema": {"type": "object"}})
    for name in ("one", "two")
]

UNDESCRIBED = [{"name": "f"}]

HOSTILE = {"name": "a\x1b[31mb\u202e\x9b", "description": "\x1b]0;title\x07", "parameters": SCHEMA}

SEARCH = {"type": "web_search_20250305", "name": "web_search"}


class AssistMaybe(Assist):
    """Answer the question, perhaps with tools."""

    tools: ToolDecls | None = dspy.InputField(default=None)  # pyright: ignore[reportIncompatibleVariableOverride]


class Pipeline(dspy.Module):
    """A module with a forward of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = dspy.Predict("question, hints: list[str] -> answer")

    def forward(self, query: str, hints: list[str] | None = None, times: int = 1) -> dspy.Prediction:
        """Ask, in capitals."""
        return self.ask(question=query.upper() * times, hints=hints or [])


class WithTools(dspy.Module):
    """A module whose forward takes tools."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = dspy.Predict(Assist)

    def forward(self, query: Any, tools: Any) -> Any:
        """Ask with the tools."""
        return self.ask(question=query, days=1, tools=tools)


class Async(dspy.Module):
    """A module that runs in a loop alone."""

    def __init__(self) -> None:
        super().__init__()
        self.ask = dspy.Predict("question -> answer")

    async def aforward(self, query: str) -> dspy.Prediction:
        """Ask."""
        return await self.ask.acall(question=f"Well, {query}?")


class Empty(dspy.Module):
    """A module that asks nothing."""

    def forward(self, query: str) -> str:
        """Return the query."""
        return query


class Typed(dspy.Signature):
    """Take values of many types."""

    text: str | None = dspy.InputField()
    texts: list[str] = dspy.InputField()
    either: list[str] | str = dspy.InputField()
    by_name: dict[str, int] = dspy.InputField()
    some: tuple[str, ...] | None = dspy.InputField()
    answer: str = dspy.OutputField()


PIPELINE, WITH_TOOLS, EMPTY = Pipeline(), WithTools(), Empty()
AGENT = cast("Any", dspy.ReActV2)("question -> answer", tools=[get_weather])

TOKEN = "tok-of-a-test-1234"  # noqa: S105  (of no server)
SERVERS = [
    sigadapt.server_tools.McpServer("docs", "https://mcp.test/", token=TOKEN),
    sigadapt.server_tools.WebSearch(),
]
ASYNC = Async()
