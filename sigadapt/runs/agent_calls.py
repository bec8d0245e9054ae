"""AgentCalls: the calls of one turn of `sigadapt.ReAct`, as they run, and what the agent makes of them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

import dspy

from sigadapt.dspy_boundary.current_run import open_turn, running_call
from sigadapt.dspy_boundary.tracer import ToolCallSpan, tracer_here
from sigadapt.errors import UnboundToolCall
from sigadapt.runs.agent_tools import ToolsetTool
from sigadapt.schemas.json_values import is_object
from sigadapt.signatures.calls import RefusedToolCall
from sigadapt.signatures.tool_functions.open_call import CallStop, open_call
from sigadapt.signatures.tool_results.function_calls import Outcome, is_async
from sigadapt.signatures.tool_results.tool_result import failure_in
from sigadapt.turns.agent_turn import AgentTurn, failure_value
from sigadapt.turns.side_by_side import TurnCall

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
        self.to_run: list[TurnCall] = []
        for n, call in enumerate(calls.tool_calls):
            tool = self._tool_named(call.name)
            if isinstance(call, RefusedToolCall):
                self._outcomes[n] = Outcome(error=UnboundToolCall(call.as_invalid()))
            elif tool is None:
                self._outcomes[n] = Outcome(f"Unknown tool: {call.name}")
            else:
                self._positions.append(n)
                self.to_run.append(_turn_call(tool, call.args or {}))

    def _tool_named(self, name: str) -> dspy.Tool | None:
        tool = self._tools.get(name)
        if tool is not None and not isinstance(tool, ToolsetTool):
            return tool
        if self._turn is None or name not in self._turn.decls:
            return None
        return self._turn.decls[name].to_dspy()

    @contextmanager
    def running(self) -> Generator[None]:
        """Count the calls before one of them begins, and let programs inside of the tools have turns."""
        names = [self._calls.tool_calls[position].name for position in self._positions]
        counted = {n for n, name in enumerate(names) if name != "submit"}
        self._count(len(counted))
        token = open_turn.set(None)
        try:
            yield
        finally:
            open_turn.reset(token)
            self._count(len(self._begun & counted) - len(counted))

    def _count(self, count: int) -> None:
        if self._turn is not None:
            self._turn.count_calls(count)

    def begin(self, position: int) -> None:
        """Note that a call begins to run."""
        self._begun.add(position)
        call = self._call_at(position)
        running_call.set(call.id)
        tracer = tracer_here.get().tracer
        if tracer is not None and call.name != "submit":
            self._spans[position] = tracer.call(call)
        if self._turn is None:
            open_call.set(None)
            return
        open_call.set(self._turn.open_call(call))
        self._turn.begin(call)

    def end(self, position: int, outcome: Outcome) -> None:
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

    def results(self, outcomes: list[Outcome]) -> AgentResults:
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
            elif call.name == "submit" and is_object(value):
                final_outputs = value
            values.append(value)
            failures.append(error is not None or n not in self._positions)
        rows = dspy.ToolCallResults.from_tool_calls_and_values(self._calls, values, failures)
        return rows, final_outputs


def _turn_call(tool: Any, arguments: dict[str, Any]) -> TurnCall:
    waits = is_async(tool.func)
    start = partial(tool.acall if waits else tool, **arguments)
    return TurnCall(start, is_async=waits, sequential=getattr(tool, "is_sequential", False))
