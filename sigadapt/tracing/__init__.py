"""Traces of agents, requests and calls, as spans of OpenTelemetry's GenAI conventions.

`instrument` begins, and `uninstrument` ends. Where nobody instruments, nothing of OpenTelemetry is imported.
It needs `opentelemetry-api` alone (`pip install 'sigadapt[otel]'`); what keeps the spans is the program's
choice.
"""

from contextlib import suppress
from contextvars import Token
from typing import TYPE_CHECKING

from typing_extensions import Self

from sigadapt.dspy_boundary.current_run import Tracer, TracerPlace, tracer_here, tracers_of_process
from sigadapt.dspy_boundary.patches import TRACES, install
from sigadapt.errors import InvalidOption
from sigadapt.json_values import cut

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

__all__ = ["Tracing", "instrument"]


class Tracing:
    """What `instrument` began. `uninstrument()` or the end of its `with` block ends it.

    Called plainly, `instrument` holds for the process and all its threads. In a `with` block it holds for
    that block alone, and for the threads and tasks that sigadapt starts in it.
    """

    def __init__(self, tracer: Tracer) -> None:
        install(TRACES)
        self._tracer = tracer
        self._place = tracers_of_process
        self._place.add(tracer)
        self._token: Token[TracerPlace] | None = None

    def uninstrument(self) -> None:
        """Make no more spans; those that have begun end. A second time does nothing."""
        self._place.remove(self._tracer)

    def __enter__(self) -> Self:
        self._place.remove(self._tracer)
        self._place = TracerPlace()
        self._place.add(self._tracer)
        self._token = tracer_here.set(self._place)
        return self

    def __exit__(self, *_: object) -> None:
        self.uninstrument()
        if self._token is not None:
            with suppress(ValueError):  # another task, such as that which closes a generator
                tracer_here.reset(self._token)


def instrument(tracer_provider: "TracerProvider | None" = None, *, content: bool = False) -> Tracing:
    """Write a span for each run of an agent, each request and each call of a tool.

    The spans are `invoke_agent`, `chat` and `execute_tool`, one in another. The innermost `with` block
    counts; outside of any, what was instrumented last.

    Args:
        tracer_provider: OpenTelemetry's provider; None for the global one.
        content: whether spans hold what was said: messages, arguments, results and what errors say. Keys
            of the model and texts that look like keys are masked.

    Raises:
        InvalidOption: `missing_extra`, if OpenTelemetry's API is not installed; for what is no provider.

    Example:
        >>> from sigadapt.tracing import instrument
        >>> with instrument():
        ...     pass  # what runs here has spans of the global provider
    """
    try:
        from sigadapt.tracing.spans import SpanTracer  # which imports it, for programs that instrument alone
    except ImportError as error:
        raise InvalidOption(
            "OpenTelemetry's API is not installed",
            code="missing_extra",
            fix="Install the extra `sigadapt[otel]`, which is opentelemetry-api.",
        ) from error
    if tracer_provider is not None and not hasattr(tracer_provider, "get_tracer"):
        raise InvalidOption(
            f"expected a TracerProvider, got {cut(repr(tracer_provider))}",
            field="tracer_provider",
            fix="Give a `TracerProvider()` of OpenTelemetry's SDK, or nothing for the global one.",
        )
    return Tracing(SpanTracer(tracer_provider, content=content))
