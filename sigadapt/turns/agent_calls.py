"""The tools of `sigadapt.ReAct`, and the calls of one of its turns, as they run.

The agent keeps a `dspy.Tool` for each tool, as `dspy.ReActV2` does. A toolset is resolved for each request,
so the agent holds a `ToolsetTool` in its place. The adapter replaces it by the tools of the request, with
which the calls run.
"""

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import dspy

from sigadapt.dspy_boundary.contract import RefusableTool
from sigadapt.dspy_boundary.current_run import ToolCallSpan, inside_tool, running_call, tracer_here
from sigadapt.dspy_boundary.internals import SUBMIT, innermost_module, refuse_left
from sigadapt.errors import InvalidToolDecl, UnboundToolCall
from sigadapt.json_values import is_object, is_sequence
from sigadapt.signatures import mcp_servers
from sigadapt.signatures.awaiting import Outcome, Steps
from sigadapt.signatures.calls import RefusedToolCall
from sigadapt.signatures.sources.runnable import forgotten_adapter, is_written_into_prompt
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ResolvableTools, ToolDecls, flat
from sigadapt.signatures.tool_functions.open_call import CallStop, open_call
from sigadapt.signatures.tool_results.function_calls import is_async
from sigadapt.signatures.tool_results.tool_result import failure_in
from sigadapt.signatures.toolset import Toolset
from sigadapt.turns.agent_turn import AgentTurn, failure_value
from sigadapt.turns.side_by_side import TurnCall, arun_turn, run_turn

_SERVER_TOOLS = "server tools"


class ToolsetTool(RefusableTool, ResolvableTools):  # pyright: ignore[reportIncompatibleVariableOverride]
    """What stands for a toolset among an agent's tools."""

    _toolset: Toolset

    def __init__(self, toolset: Toolset, name: str) -> None:
        dspy.Tool.__init__(self, _refuse_call, name=name, desc="", args={}, arg_types={})
        self._toolset = toolset

    @property
    def toolset(self) -> Toolset:
        """The toolset."""
        return self._toolset

    def resolve(self) -> ToolDecls:
        """Return the tools outside of a request."""
        return self._toolset.resolve()

    async def aresolve(self) -> ToolDecls:
        """Return the tools outside of a request; await what is async."""
        return await self._toolset.aresolve()

    def steps(self, context: Any) -> Steps[ToolDecls]:
        """Return the tools for a request, as steps for `run` or `arun`."""
        return self._toolset.steps(context)

    def refuse(self) -> NoReturn:
        """Refuse an adapter that resolves no toolset."""
        raise self._refusal()

    def __repr__(self) -> str:
        if is_written_into_prompt() and forgotten_adapter("") is not None:
            raise self._refusal()
        return f"ToolsetTool({self.name!r})"

    def _refusal(self) -> Exception:
        reason = f"toolset {self.name!r} is resolved for each request, which {{adapter}} does not do"
        return forgotten_adapter(reason) or InvalidToolDecl(reason.format(adapter="this"), tool=self.name)


async def _refuse_call(**_: Any) -> NoReturn:
    # Async, so that `sigadapt.stream` awaits the agent, as an async toolset needs.
    raise InvalidToolDecl("a toolset isn't a tool: it is resolved for each request", code="unknown_source")


def _items(tools: Any) -> Iterator[Any]:
    """Yield tools and toolsets one by one; a live MCP session becomes a toolset."""
    if mcp_servers.accepts(tools):
        yield Toolset(type(tools).__name__, tools)
    elif is_sequence(tools):
        for item in tools:
            yield from _items(item)
    else:
        yield from flat(tools)


def tools_for_agent(tools: Any) -> list[dspy.Tool]:
    """Return tools in any form that ToolDecls accepts, as an agent of DSPy's keeps them.

    Raises:
        InvalidToolDecl: as ToolDecls; `no_function`, for a tool without a function to run.
    """
    toolsets: list[Toolset] = []
    entries: list[Any] = []
    for item in _items(tools):
        if isinstance(item, Toolset):
            toolsets.append(item)
        else:
            entries.append(item)
    decls = ToolDecls(entries)
    functions = [decl.to_dspy() for decl in decls.tools]
    server_tools = [entry for entry in decls.entries if not isinstance(entry, ToolDecl)]
    if server_tools:
        toolsets.append(Toolset(_SERVER_TOOLS, server_tools))
    keys = {SUBMIT, *(decl.name for decl in decls.tools)}
    return [*functions, *(ToolsetTool(toolset, _new_key(toolset.name, keys)) for toolset in toolsets)]


def _new_key(name: str, keys: set[str]) -> str:
    """Return the name for a toolset in the agent, which keeps its tools by name, and add it to the keys.

    Two MCP servers, or one toolset with two prefixes, may have one name.
    """
    key = name
    number = 1
    while key in keys:
        number += 1
        key = f"{name} ({number})"
    keys.add(key)
    return key


AgentResults = tuple[dspy.ToolCallResults, dict[str, Any] | None]
"""The results of a turn, and the agent's final outputs if it has submitted them."""


class AgentCalls:
    """The calls of one turn, with the tools that run them.

    Args:
        calls: the calls, good and bad, in order.
        tools: the agent's tools, by name.
        turn: what the run around the agent keeps of the turn; None if the agent's own predictor was replaced.
    """

    def __init__(self, calls: dspy.ToolCalls, tools: dict[str, dspy.Tool], turn: AgentTurn | None) -> None:
        self._calls = calls
        self._tools = tools
        self._turn = turn
        self._outcomes: dict[int, Outcome] = {}  # of calls that cannot run, by position
        self._positions: list[int] = []  # of those that can
        self._begun: set[int] = set()
        self._spans: dict[int, ToolCallSpan] = {}
        self._to_run: list[TurnCall] = []
        for n, call in enumerate(calls.tool_calls):
            tool = self._tool_named(call.name)
            if isinstance(call, RefusedToolCall):
                self._outcomes[n] = Outcome(error=UnboundToolCall(call.as_invalid()))
            elif tool is None:
                self._outcomes[n] = Outcome(f"Unknown tool: {call.name}")
            else:
                self._positions.append(n)
                self._to_run.append(_turn_call(tool, call.args or {}))

    def _tool_named(self, name: str) -> dspy.Tool | None:
        tool = self._tools.get(name)
        if tool is not None and not isinstance(tool, ToolsetTool):
            return tool
        if self._turn is None or name not in self._turn.decls:
            return None
        return self._turn.decls[name].to_dspy()

    def run(self) -> AgentResults:
        """Run the calls from sync code, and return their results."""
        with self._running():
            outcomes = run_turn(self._to_run, on_begin=self._begin, on_end=self._end)
        return self._results(outcomes)

    async def arun(self) -> AgentResults:
        """Run the calls from async code, and return their results."""
        with self._running():
            outcomes = await arun_turn(self._to_run, on_begin=self._begin, on_end=self._end)
        return self._results(outcomes)

    @contextmanager
    def _running(self) -> Generator[None]:
        """Count the calls before one of them begins, and let programs inside of the tools have turns."""
        names = [self._calls.tool_calls[position].name for position in self._positions]
        counted = {n for n, name in enumerate(names) if name != SUBMIT}
        self._count(len(counted))
        try:
            with inside_tool(innermost_module()):
                yield
        finally:
            self._count(len(self._begun & counted) - len(counted))

    def _count(self, count: int) -> None:
        if self._turn is not None and count:
            self._turn.count_calls(count)

    def _begin(self, position: int) -> None:
        """Note that a call begins to run."""
        refuse_left()
        self._begun.add(position)
        call = self._call_at(position)
        running_call.set(call.id)
        tracer = tracer_here.get().tracer
        if tracer is not None and call.name != SUBMIT:
            self._spans[position] = tracer.call(call)
        if self._turn is None:
            open_call.set(None)
            return
        open_call.set(self._turn.open_call(call))
        self._turn.begin(call)

    def _end(self, position: int, outcome: Outcome) -> None:
        """Keep the outcome of a call at once, in whatever thread it ended."""
        if position in self._spans:
            self._spans[position].end(outcome.value, outcome.error or failure_in(outcome.value))
        if self._turn is None:
            return
        call = self._call_at(position)
        if isinstance(outcome.error, CallStop):
            self._begun.discard(position)  # it counts when it runs again
            self._turn.stop(call, outcome.error)
        elif isinstance(outcome.error, asyncio.CancelledError):
            self._turn.cancel(call)
        else:
            self._turn.take_outcome(call, outcome)

    def _call_at(self, position: int) -> dspy.ToolCalls.ToolCall:
        return self._calls.tool_calls[self._positions[position]]

    def _results(self, outcomes: list[Outcome]) -> AgentResults:
        """Return the turn's results in the order of the calls, and the final outputs, if any.

        Raises:
            InputNeeded: if a call waits.
        """
        if self._turn is not None and self._turn.is_waiting:
            raise self._turn.input_needed()
        by_position = {**self._outcomes, **dict(zip(self._positions, outcomes, strict=True))}
        values: list[Any] = []
        failures: list[bool] = []
        final_outputs: dict[str, Any] | None = None
        for n, call in enumerate(self._calls.tool_calls):
            value, error = by_position[n]
            if isinstance(error, Exception):
                write = failure_value if self._turn is None else self._turn.failure_value
                value = write(call.name, error)
            elif call.name == SUBMIT and is_object(value):
                final_outputs = value
            values.append(value)
            failures.append(error is not None or n not in self._positions)
        rows = dspy.ToolCallResults.from_tool_calls_and_values(self._calls, values, failures)
        return rows, final_outputs


def _turn_call(tool: Any, arguments: dict[str, Any]) -> TurnCall:
    waits = is_async(tool.func)
    start = partial(tool.acall if waits else tool, **arguments)
    return TurnCall(start, is_async=waits, sequential=getattr(tool, "is_sequential", False))
