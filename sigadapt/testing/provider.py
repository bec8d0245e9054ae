"""The loopback provider: a context manager that answers as the real providers do, on this machine alone."""

import threading
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from typing_extensions import Self

from sigadapt.testing.answers import LoopbackError
from sigadapt.testing.exchange import Response, read, refused, written
from sigadapt.testing.received import Received
from sigadapt.testing.script import Script, policy
from sigadapt.testing.server import Server
from sigadapt.testing.wires import WIRES, wire_at
from sigadapt.testing.wires.wire import Wire


class LoopbackProvider:
    """A provider on 127.0.0.1 that speaks every wire of `WIRES`, plays a script and keeps what it was sent.

    The wire follows from the path asked for, so one provider serves any of them at once. Nothing is executed,
    nothing leaves the machine, and no key is checked. Requests are answered concurrently.

    Args:
        script: replies taken in order of arrival, of which the last repeats; or a function of the `Received`
            request. The function may block (up to 128 at once do not hold up others) or be async.
        keep: how many of the last requests `received` holds; None for all of them.

    Raises:
        LoopbackError: at once, for a script that is empty or none. On leaving the block, the first of
            `problems`, as it is: what the script's function raised, or a LoopbackError for a path no wire
            serves, a body that is no JSON object, or a reply that its wire cannot carry. The client has
            meanwhile got an HTTP error that says the same.

    Example:
        >>> import dspy
        >>> from sigadapt.testing import Answer, Call
        >>> script = [Answer(calls=[Call("get_weather", {"city": "Paris"})]), Answer(text="Sunny.")]
        >>> with LoopbackProvider(script) as provider:
        ...     lm = dspy.LM(**provider.lm_options("anthropic"))
        ...     call = lm(dspy.lm15.Request(model=lm.model, messages=(dspy.lm15.Message.user("Hi"),)))
        ...     text = lm(dspy.lm15.Request(model=lm.model, messages=(dspy.lm15.Message.user("And?"),)))
        >>> call.tool_calls[0].name, call.tool_calls[0].input, text.text
        ('get_weather', {'city': 'Paris'}, 'Sunny.')
        >>> [(request.wire, request.path) for request in provider.received]
        [('anthropic', '/messages'), ('anthropic', '/messages')]
    """

    def __init__(self, script: Script, *, keep: int | None = None) -> None:
        self._policy = policy(script)
        self._server: Server | None = None
        self._lock = threading.Lock()
        self._count = 0
        self._received: deque[Received] = deque(maxlen=keep)
        self._problems: list[Exception] = []

    def __enter__(self) -> Self:
        if self._server is not None:
            raise LoopbackError("the provider is already running", code="already_running")
        self._server = Server(self._respond)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._running.stop()
        self._server = None
        # An interrupt is let through; any other error of the block stays as the context of this one.
        if self._problems and (error is None or isinstance(error, Exception)):
            raise self._problems[0]

    @property
    def url(self) -> str:
        """The address, such as `http://127.0.0.1:40123`; LoopbackError outside of the `with` block."""
        return self._running.url

    @property
    def received(self) -> tuple[Received, ...]:
        """The requests so far, in order of arrival."""
        with self._lock:
            return tuple(self._received)

    @property
    def problems(self) -> tuple[Exception, ...]:
        """What went wrong in the script or the requests so far; the first is raised on leaving the block."""
        return tuple(self._problems)

    def base_url(self, wire: str) -> str:
        """What `dspy.LM(api_base=...)` takes for a wire, on both of DSPy's engines.

        Of the official SDKs, OpenAI's takes the same; the others append more of the path and take `url`.
        """
        return self.url + _row(wire).suffix

    def lm_options(self, wire: str, **changes: Any) -> dict[str, Any]:
        """The arguments with which `dspy.LM` asks this provider over a wire, without cache and retries.

        Args:
            wire: a key of `WIRES`.
            changes: `dspy.LM` arguments to add or replace, such as `engine="litellm"`. Ollama's own wire is
                reached by LiteLLM's engine alone, which is set here; with `engine="auto"` DSPy speaks OpenAI
                chat to Ollama.
        """
        row = _row(wire)
        return {
            "model": row.model,
            "api_base": self.base_url(wire),
            "api_key": "loopback",
            "cache": False,
            "num_retries": 0,
            **row.options,
            **changes,
        }

    @property
    def _running(self) -> Server:
        if self._server is None:
            raise LoopbackError("the provider is not running", code="not_running", fix="Use it in `with`.")
        return self._server

    async def _respond(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Response:
        wire = wire_at(path) if method == "POST" else None
        if wire is None:
            return self._refused(_unknown(method, path), None)
        try:
            received = self._record(wire, path, headers, content)
            return written(await self._policy(received), wire, received)
        except Exception as error:  # noqa: BLE001  whatever it is, it is raised on leaving the block
            return self._refused(error, wire)

    def _refused(self, error: Exception, wire: Wire | None) -> Response:
        self._problems.append(error)
        return refused(error, wire)

    def _record(self, wire: Wire, path: str, headers: Mapping[str, str], content: bytes) -> Received:
        received = read(self._count + 1, wire, path, headers, content)
        with self._lock:
            self._count += 1
            self._received.append(received)
        return received


def _row(wire: str) -> Wire:
    if wire not in WIRES:
        raise LoopbackError(f"no wire {wire!r}", code="unknown_wire", fix=f"Use one of {', '.join(WIRES)}.")
    return WIRES[wire]


def _unknown(method: str, path: str) -> LoopbackError:
    served = ", ".join(row.format.PATH.pattern for row in WIRES.values())
    return LoopbackError(f"no wire serves {method} {path}", code="unknown_path", fix=f"Served: POST {served}")
