"""Where a program is (`Frame`), and which of the calls without a result a tool that begins to run answers.

Who runs the calls of a turn says the id of each. A program that runs a tool itself, as `dspy.ReAct` does,
says none, so its call is guessed from where it runs (`guess`): its name, and the frames around it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sigadapt.runs.events import Step
from sigadapt.signatures.calls import InvalidToolCall, ToolCall

AnyCall = ToolCall | InvalidToolCall


@dataclass(eq=False)
class UnansweredCall:
    """A call that was emitted, and whose result was not."""

    call: AnyCall
    step: Step  # that made it
    owner: "Frame"  # the module whose predictor made it
    is_submit: bool = False  # whether it is an agent's answer, and no event has it
    has_begun: bool = False  # whether a tool runs it

    def is_for(self, tool: str) -> bool:
        """Whether a tool of this name may run it."""
        return not self.has_begun and isinstance(self.call, ToolCall) and self.call.name == tool


@dataclass(eq=False)
class Frame:
    """A module, model or tool that runs, in the program."""

    caller: "Frame | None" = None
    within: str | None = None  # the id of the call whose tool runs it
    step: Any = None  # the step of a predictor
    instance: Any = None  # the module or the model
    agent: "Frame | None" = None  # the agent that runs here; inside of a tool, none outside of it
    texts: frozenset[str] = frozenset()  # the inputs of a module that are texts
    calls: list[UnansweredCall] = field(default_factory=list[UnansweredCall])  # of a module's predictors
    answers: UnansweredCall | None = None  # the call that a tool answers

    def with_callers(self) -> Iterator["Frame"]:
        """Yield this frame and those that called it; inside of a tool, none outside of it."""
        frame: Frame | None = self
        while frame is not None:
            yield frame
            frame = frame.caller if frame.answers is None else None

    def is_inside(self, other: "Frame") -> bool:
        """Return whether this is the other frame, or runs in it, at whatever depth."""
        frame: Frame | None = self
        while frame is not None and frame is not other:
            frame = frame.caller
        return frame is not None


def call_of_id(frame: Frame, call_id: str) -> UnansweredCall | None:
    """Return the call of an id, whether it has begun or not."""
    return next(_calls_of_id(frame, call_id), None)


def call_to_run(frame: Frame, call_id: str | None, tool: str, args: Any) -> UnansweredCall | None:
    """Return the call that a tool begins to run. Predictors of one program may share an id."""
    if call_id is None:
        return guess(frame, tool, args)
    return _first_with(args, (call for call in _calls_of_id(frame, call_id) if call.is_for(tool)))


def _calls_of_id(frame: Frame, call_id: str) -> Iterator[UnansweredCall]:
    for around in frame.with_callers():
        yield from (call for call in around.calls if call.call.id == call_id)


def guess(frame: Frame, tool: str, args: Any) -> UnansweredCall | None:
    """Return the nearest call of a tool's name, for a tool of which nobody says whose call it runs."""
    for around in frame.with_callers():
        call = _first_with(args, (call for call in around.calls if call.is_for(tool)))
        if call is not None:
            return call
    return None


def _first_with(args: Any, calls: Iterable[UnansweredCall]) -> UnansweredCall | None:
    """Return the first call with these arguments, else the first.

    It ends at that call: to look at all those of a long turn for each one is work that squares.
    """
    first: UnansweredCall | None = None
    for call in calls:
        if isinstance(call.call, ToolCall) and call.call.args == args:
            return call
        first = first or call
    return first
