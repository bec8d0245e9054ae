"""The events of a run, which `sigadapt.stream` yields, and the order in which they come (`Steps`).

Every event has `.step`, which counts the calls of predictors from 1 and never falls: a result that comes late
has the number of what was told before it. `.within` is the id of the tool call in which the program runs that
the event is about; None outside of any tool.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import RLock
from typing import Any, TypeAlias

import dspy

from sigadapt.signatures.calls import InvalidToolCall, ToolCall
from sigadapt.signatures.tool_results.tool_result import ToolResult


@dataclass(frozen=True)
class Origin:
    """The predictor that a step is the call of.

    Attributes:
        predictor: the module.
        agent: the agent that calls it; None outside of any.
        texts: the inputs of that agent, else of the predictor, that are texts.
        has_calls: whether the predictor may call tools.
    """

    predictor: dspy.Module
    agent: dspy.Module | None
    texts: frozenset[str]
    has_calls: bool


@dataclass(frozen=True, kw_only=True)
class BaseEvent:
    """What all events have: the step, and the id of the tool call in which the program runs.

    `origin` is the predictor of the step; None for what no predictor did. Two events are equal without it.
    """

    step: int = 0
    within: str | None = None
    origin: Origin | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class TextDelta(BaseEvent):
    """A piece of an output field's text; `field` is None for text beside calls that is no output.

    An agent's outputs are texts too, although the model writes them as a call of the agent's `submit`.
    `is_anew` says that the field's text begins here: what came of it before was said beside it, or replaced.

    Example:
        >>> TextDelta("It is su", "answer", step=1).text
        'It is su'
    """

    text: str
    field: str | None = None
    is_anew: bool = False


@dataclass(frozen=True)
class ReasoningDelta(BaseEvent):
    """A piece of the thinking that the provider shows."""

    text: str


@dataclass(frozen=True)
class CallDelta(BaseEvent):
    """A piece of a call's arguments, while the model writes them: progress to show, never to parse."""

    index: int
    id: str | None
    name: str | None
    arguments: str


@dataclass(frozen=True)
class CallReady(BaseEvent):
    """A whole call, checked: a ToolCall, or an InvalidToolCall with its code."""

    call: ToolCall | InvalidToolCall


@dataclass(frozen=True)
class Progress(BaseEvent):
    """How far the tool of a call has come, as it says by `ToolContext.progress`; `fraction` is 0 to 1."""

    call_id: str
    message: str
    fraction: float | None = None


@dataclass(frozen=True)
class ResultReady(BaseEvent):
    """The result of a call. A tool that failed has a failed one, with the message of its error."""

    call_id: str
    result: ToolResult


@dataclass(frozen=True)
class Confirm(BaseEvent):
    """The run waits for a person to decide on these requests. `Failed` follows, with the error to resume."""

    requests: Sequence[Any]


@dataclass(frozen=True)
class ServerCall(BaseEvent):
    """A call of a tool that the provider ran itself."""

    call: Any


@dataclass(frozen=True)
class SourceReady(BaseEvent):
    """A source that the provider cites."""

    source: Any


@dataclass(frozen=True)
class FileReady(BaseEvent):
    """A file that a provider's tool made."""

    file: Any


@dataclass(frozen=True)
class Used(BaseEvent):
    """The tokens of one step, under DSPy's names; there is none for an answer from the cache."""

    usage: dict[str, Any]


@dataclass(frozen=True)
class Ended(BaseEvent):
    """The end of a run: its prediction."""

    prediction: dspy.Prediction


@dataclass(frozen=True)
class Failed(BaseEvent):
    """The end of a run that failed. The iterator raises the error next."""

    error: BaseException


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | CallDelta
    | CallReady
    | Progress
    | ResultReady
    | Confirm
    | ServerCall
    | SourceReady
    | FileReady
    | Used
    | Ended
    | Failed
)
"""Any event of a run."""


@dataclass(eq=False)
class Step:
    """One call of a predictor, or what runs between two of them."""

    within: str | None  # the id of the call whose tool runs it
    origin: Origin | None = None  # the predictor
    number: int = 0  # from 1, in the order of their beginnings
    is_open: bool = True
    held: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])  # what emits its events


class Steps:
    """The steps of a run: the events of a later one are held back until those before it have ended.

    So texts of steps that run side by side do not mix, and the numbers of steps never fall.

    Args:
        deliver: takes each event, in the thread in which it happens.
    """

    def __init__(self, deliver: Callable[[Event], None]) -> None:
        self._deliver = deliver
        self._lock = RLock()
        self._running: list[Step] = []  # with those that ended behind one that runs
        self._count = self._latest = 0

    @property
    def last_number(self) -> int:
        """The number of the step that began last, for what no step did."""
        return max(self._count, 1)

    def begin(self, step: Step) -> None:
        """Number a step, and put it behind those that run."""
        with self._lock:
            self._count += 1
            step.number = self._count
            self._running.append(step)

    def emit(self, step: Step, kind: type[Event], *values: Any) -> None:
        """Send an event of a step, or hold it back."""
        with self._lock:
            if step in self._running and step is not self._running[0]:
                step.held.append(partial(self.emit, step, kind, *values))
                return
            self._latest = max(self._latest, step.number)
            self._deliver(kind(*values, step=self._latest, within=step.within, origin=step.origin))

    def end(self, step: Step) -> None:
        """End a step, and send what was held back behind it."""
        with self._lock:
            step.is_open = False
            while self._running:
                first = self._running[0]
                held = first.held
                first.held = []
                for emit in held:
                    emit()
                if first.is_open:
                    return
                self._running.pop(0)

    def running(self) -> list[Step]:
        """Return the steps that run, and those that ended behind one."""
        with self._lock:
            return [*self._running]
