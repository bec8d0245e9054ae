"""The tracer of what runs here, if somebody traces (`sigadapt.tracing`), and what it is told of.

Who reports reads `tracer_here.get().tracer`, which is None where nobody traces: no function runs for that.
"""

from contextlib import AbstractContextManager
from contextvars import ContextVar
from threading import Lock
from typing import Any, Protocol


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
