"""What runs here: the run that is open (`sigadapt.Run`), the turn of an agent, and who traces it.

A run rides in DSPy's settings, which DSPy takes along into its threads and which tasks copy. So every request
and every tool finds the run that it belongs to, whatever the program sets for itself. So do the agents whose
tools run around: whoever runs a tool for an agent says so (`inside_tool`).

Who reports to the tracer (`sigadapt.tracing`) reads `tracer_here.get().tracer`, which is None where nobody
traces: no function runs for that.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from threading import Lock
from typing import Any, Protocol

from dspy.dsp.utils.settings import thread_local_overrides
from dspy.dsp.utils.utils import dotdict

from sigadapt.dspy_boundary.contract import AGENTS
from sigadapt.dspy_boundary.internals import innermost_module

_RUN = "sigadapt_run"
_TOOLS = "sigadapt_tools"
"""The names of the settings. DSPy leaves settings that it does not know as they are."""


class OpenTurn(Protocol):
    """One turn of an agent (`turns/agent_turn.py`)."""

    def run(self, name: str, arguments: Mapping[str, Any], start: Callable[[], Any]) -> Any:
        """Run the tool of a call by `start`, and keep its result."""
        ...

    async def arun(self, name: str, arguments: Mapping[str, Any], start: Callable[[], Any]) -> Any:
        """Do the same in async code."""
        ...


class OpenLedger(Protocol):
    """What an open run counts and refuses (`runs/ledger.py`)."""

    def begin_step(self, turn: Any) -> None:
        """Begin the step of an agent."""
        ...

    def begin_request(self, model: str, has_price: Callable[[], bool]) -> None:
        """Count a request that goes out now, or raise why it may not."""
        ...

    def count_answer(self, usage: Mapping[str, Any], cost: float | None) -> None:
        """Count what an answer used."""
        ...

    def check_calls(self, count: int, *, is_last_turn: bool = False) -> None:
        """Raise why a turn of this many calls may not run."""
        ...

    def count_calls(self, count: int) -> None:
        """Count calls that begin to run now, or raise why they may not; below 0, take back calls."""
        ...

    def note_result(self, call_id: str, result: Any) -> None:
        """Keep the result of a call of an agent before the agent itself has it."""
        ...

    def seconds_left(self) -> float | None:
        """Return how long a tool may run at most; None without a limit."""
        ...


class OpenRun(Protocol):
    """A run that is open (`runs/run.py`)."""

    deps: Any
    state: dict[str, Any]

    @property
    def ledger(self) -> OpenLedger:
        """What it counts and refuses."""
        ...


class RunPlace:
    """Where a run stands in the settings. It is empty once the run is over, wherever a copy of it is left."""

    __slots__ = ("outer", "run")

    def __init__(self, run: OpenRun, outer: "RunPlace | None") -> None:
        self.run: OpenRun | None = run
        self.outer = outer


open_turn: ContextVar[OpenTurn | None] = ContextVar("open_turn", default=None)
"""The turn of an agent of DSPy's whose calls are about to run here."""


running_call: ContextVar[str | None] = ContextVar("running_call", default=None)
"""The id of the call whose tool is about to run here. The tool sets it to None before its function begins: a
program inside of it has tools of the same name."""


def call_in_turn(name: str, arguments: dict[str, Any], start: Callable[[], Any]) -> Any:
    """Run a tool, and let the turn of the agent of DSPy's that asked for it keep its result."""
    turn = open_turn.get()
    if turn is not None:
        return turn.run(name, arguments, start)
    with _inside_tool_of_loop():
        return start()


async def acall_in_turn(name: str, arguments: dict[str, Any], start: Callable[[], Any]) -> Any:
    """Do the same as `call_in_turn` in async code."""
    turn = open_turn.get()
    if turn is not None:
        return await turn.arun(name, arguments, start)
    with _inside_tool_of_loop():
        return await start()


def is_run_by_agent() -> bool:
    """Return whether one of DSPy's agents runs the tool that begins here."""
    return isinstance(innermost_module(), AGENTS)


def _inside_tool_of_loop() -> AbstractContextManager[None]:
    """Return the context of a tool that DSPy's own loop begins, if it is not begun by hand inside of one."""
    agent = innermost_module()
    is_of_loop = isinstance(agent, AGENTS) and agent not in agents_around()
    return inside_tool(agent) if is_of_loop else nullcontext()


@contextmanager
def inside_tool(agent: Any) -> Generator[None]:
    """Note that what runs in the block is inside of a tool of an agent, and has turns of its own."""
    overrides: Any = thread_local_overrides
    token = overrides.set(dotdict({**overrides.get(), _TOOLS: (*agents_around(), agent)}))
    turn_token = open_turn.set(None)
    try:
        yield
    finally:
        overrides.reset(token)
        open_turn.reset(turn_token)


def agents_around() -> tuple[Any, ...]:
    """Return whose tools run around what runs here, the outermost first; None is a turn that is resumed."""
    overrides: Any = thread_local_overrides.get()
    return overrides.get(_TOOLS, ())


def open_place() -> RunPlace | None:
    """Return the place of the innermost run that is open here."""
    overrides: Any = thread_local_overrides.get()
    place: RunPlace | None = overrides.get(_RUN)
    while place is not None and place.run is None:
        place = place.outer
    return place


def current_ledger() -> OpenLedger | None:
    """Return the ledger of the innermost run that is open here; None outside of any."""
    place = open_place()
    return None if place is None or place.run is None else place.run.ledger


def enter_run(place: RunPlace) -> Callable[[], None]:
    """Put a run into the settings of this task or thread, and return what takes it out again."""
    overrides: Any = thread_local_overrides
    token = overrides.set(dotdict({**overrides.get(), _RUN: place}))
    turn_token = open_turn.set(None)

    def leave() -> None:
        place.run = None
        with suppress(ValueError):  # another task, such as that which closes a generator
            overrides.reset(token)
            open_turn.reset(turn_token)

    return leave


class ToolCallSpan(Protocol):
    """The span of a call that runs. It is the current one in the context in which it began."""

    def end(self, value: Any = None, error: BaseException | str | None = None) -> None:
        """End it with what the call gave, or why it failed. To wait is no failure.

        Only the first end counts.
        """
        ...

    def leave(self) -> None:
        """Make the span before it the current one again, in the context in which it began."""
        ...


class RequestSpan(Protocol):
    """The span of a request that is under way."""

    def take(self, choice: Any, fault: BaseException | str | None) -> None:
        """Take the answer, and why it is none that can be used."""
        ...


class Tracer(Protocol):
    """What makes spans. None of its methods raises."""

    def agent(self, agent: Any) -> AbstractContextManager[None]:
        """Return the context in which an agent runs."""
        ...

    def request(self, record: Any) -> AbstractContextManager[RequestSpan]:
        """Return the context in which a request is sent and answered."""
        ...

    def requests_of_dspy(self) -> AbstractContextManager[None]:
        """Return the context in which DSPy's own code sends requests."""
        ...

    def call(self, call: Any) -> ToolCallSpan:
        """Begin the span of a call, in the context in which its tool runs next."""
        ...

    def position(self) -> str:
        """Return the current span as text, as a run that waits keeps it; empty without one."""
        ...

    def resuming(self, position: str) -> AbstractContextManager[None]:
        """Return the context in which a run goes on that waited: its first spans link to that position."""
        ...


class TracerPlace:
    """Where the tracer stands of a process or of a `with` block. It is empty once the tracing is over."""

    def __init__(self) -> None:
        self.tracer: Tracer | None = None
        self._tracers: list[Tracer] = []
        self._lock = Lock()

    def add(self, tracer: Tracer) -> None:
        """Trace with this tracer, before those that were added earlier."""
        with self._lock:
            self._tracers.append(tracer)
            self.tracer = tracer

    def remove(self, tracer: Tracer) -> None:
        """Trace no longer with this tracer, if it traces here."""
        with self._lock:
            self._tracers = [other for other in self._tracers if other is not tracer]
            self.tracer = self._tracers[-1] if self._tracers else None


tracers_of_process = TracerPlace()
"""The tracers of all threads."""


tracer_here: ContextVar[TracerPlace] = ContextVar("tracer_here", default=tracers_of_process)
"""The place of the innermost block that is traced; that of the process outside of any."""
