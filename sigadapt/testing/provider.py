"""The loopback provider: a context manager that answers on this machine as the real providers do.

Its server, of aiohttp, listens on 127.0.0.1 with its own thread and event loop. Requests become `Received`,
replies a `Response`.
"""

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from aiohttp import web
from typing_extensions import Self

from sigadapt.json_values import is_object
from sigadapt.testing.answers import (
    Answer,
    Failure,
    LoopbackError,
    Received,
    Reply,
    Response,
    Script,
    check_reply,
    dumps,
    policy,
)
from sigadapt.testing.recording import record
from sigadapt.testing.wires import WIRES, wire_at
from sigadapt.testing.wires.wire import Wire
from sigadapt.trust.masking import LOOPBACK_KEY

_HOST = "127.0.0.1"
_BACKLOG = 1024
# Seconds that unfinished requests get when the server stops; their clients have left the `with` block.
_GRACE = 0.1
# How many functions of a script may block at once; the pool starts a thread for each as needed.
_BLOCKED = 128
JSON = "application/json"


Respond: TypeAlias = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Response]]
"""Makes a response of method, path with query, headers and body; never raises."""


def read(number: int, wire: Wire, path: str, headers: Mapping[str, str], content: bytes) -> Received:
    """Parse a request; a LoopbackError says that its body is not a JSON object."""
    try:
        body = json.loads(content)
    except ValueError:
        body = None
    if not is_object(body):
        raise LoopbackError(f"the body sent to {path} is not a JSON object", code="unreadable_request")
    match = wire.format.PATH.fullmatch(path)
    groups = match.groupdict() if match else {}
    return Received(
        number=number,
        wire=wire.name,
        path=path,
        headers={name.lower(): value for name, value in headers.items()},
        body=body,
        model=groups.get("model") or str(body.get("model", "")),
        stream=wire.format.streams(path, body),
    )


def write(reply: Reply, wire: Wire, request: Received) -> Response:
    """Write a reply in the wire's format, whole or streamed; a LoopbackError says that it cannot be."""
    check_reply(reply)
    try:
        return _response_of(reply, wire, request)
    except (TypeError, ValueError, AttributeError) as error:  # such as NaN, bytes or half a character
        reason = f"the reply cannot be sent over {wire.name}: {type(error).__name__}: {error}"
        raise LoopbackError(reason, fix="For a body that is no JSON, give bytes.") from error


def _response_of(reply: Reply, wire: Wire, request: Received) -> Response:
    form = wire.format
    if isinstance(reply, Answer):
        if request.stream:
            return Response(200, form.STREAM_TYPE, list(form.encode(form.stream(reply, request))))
        return _whole(200, form.render(reply, request))
    if isinstance(reply, Failure):
        body = form.failure(reply.status, reply.message) if reply.body is None else reply.body
        return _whole(reply.status, body)
    if isinstance(reply, bytes):
        content_type = form.STREAM_TYPE if request.stream else JSON
        return Response(200, content_type, [reply])
    return _whole(200, reply)


def refuse(error: Exception, wire: Wire | None) -> Response:
    """Write an error of the script or of the request, in the wire's error shape, for the client to see."""
    status = {"unknown_path": 404, "unreadable_request": 400}.get(getattr(error, "code", ""), 500)
    form = (wire or WIRES["openai"]).format
    return _whole(status, form.failure(status, f"loopback provider: {type(error).__name__}: {error}"))


def _whole(status: int, body: Mapping[str, Any] | bytes) -> Response:
    content = body if isinstance(body, bytes) else dumps(body).encode()
    return Response(status, JSON, [content])


class Server:
    """A running server; `respond` answers each request, in the server's event loop."""

    def __init__(self, respond: Respond) -> None:
        # Made here and not in the thread, so that a failure is raised here and clients can connect at once.
        self._loop = asyncio.new_event_loop()
        self._listener = socket.create_server((_HOST, 0), backlog=_BACKLOG)
        self.url = f"http://{_HOST}:{self._listener.getsockname()[1]}"
        self._stopped = asyncio.Event()

        def run() -> None:
            with closing(self._loop):
                self._loop.run_until_complete(self._serve(respond))

        self._thread = threading.Thread(target=run, name="sigadapt-loopback", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Close every connection, wait for running functions of the script, and end the thread."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    async def _serve(self, respond: Respond) -> None:
        self._loop.set_default_executor(ThreadPoolExecutor(_BLOCKED, thread_name_prefix="sigadapt-script"))

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            # Read from the stream: `request.read()` refuses bodies of more than a megabyte.
            content = await request.content.read()
            response = await respond(request.method, request.path_qs, request.headers, content)
            headers = {"Content-Type": response.content_type}
            if len(response.chunks) == 1:
                return web.Response(status=response.status, headers=headers, body=response.chunks[0])
            stream = web.StreamResponse(status=response.status, headers=headers)
            await stream.prepare(request)
            for chunk in response.chunks:
                await stream.write(chunk)
            await stream.write_eof()
            return stream

        runner = web.ServerRunner(web.Server(handle, access_log=None), shutdown_timeout=_GRACE)
        await runner.setup()
        await web.SockSite(runner, self._listener, backlog=_BACKLOG).start()
        await self._stopped.wait()
        await runner.cleanup()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # cancelled ones end before the loop closes
        await self._loop.shutdown_default_executor()


class LoopbackProvider:
    """A provider on 127.0.0.1 that speaks every wire of `WIRES`, plays a script and records the requests.

    The path of a request decides its wire, so one provider serves all wires. No tool is run, nothing leaves
    the machine, and API keys are not checked. Requests are answered concurrently.

    Args:
        script: replies, given in order of arrival, of which the last repeats; or a function of the `Received`
            request. The function may be async, or block: up to 128 blocked requests do not delay others.
        keep: how many of the last requests `received` keeps; None keeps all of them.
        record: a file to which each request and its response are added as a line of JSON
            (`testing/recording.py`), without what is not known to be harmless.

    Raises:
        LoopbackError: `invalid_script`, at once, for a script that is empty or of an unknown type.

    Leaving the `with` block raises the first of `problems`: the exception of the script's function, or a
    LoopbackError for a path that no wire serves, a body that is not a JSON object, or a reply that its
    wire cannot carry. The client gets an HTTP error with the same message.

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

    def __init__(
        self,
        script: Script,
        *,
        keep: int | None = None,
        record: str | PathLike[str] | None = None,
    ) -> None:
        if keep is not None and (type(keep) is not int or keep < 0):
            raise LoopbackError(f"expected how many requests are kept, got {keep!r}", field="keep")
        self._policy = policy(script)
        self._server: Server | None = None
        self._lock = threading.Lock()
        self._count = 0
        self._received: deque[Received] = deque(maxlen=keep)
        self._problems: list[Exception] = []
        self._recording = None if record is None else Path(record)

    def start(self) -> Self:
        """Start the server without a `with` block, as in a notebook. It runs until the process ends.

        Example:
            >>> from sigadapt.testing import Answer
            >>> LoopbackProvider([Answer(text="Hi.")]).start().url.startswith("http://127.0.0.1:")
            True
        """
        if self._server is not None:
            raise LoopbackError("the provider is already running", code="already_running")
        self._server = Server(self._respond)
        return self

    __enter__ = start

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._running.stop()
        self._server = None
        # An interrupt passes through; any other error of the block becomes the context of this one.
        if self._problems and (error is None or isinstance(error, Exception)):
            raise self._problems[0]

    @property
    def url(self) -> str:
        """The address, such as `http://127.0.0.1:40123`; raises LoopbackError outside of the `with` block."""
        return self._running.url

    @property
    def received(self) -> tuple[Received, ...]:
        """The requests so far, in order of arrival; the last `keep` of them."""
        with self._lock:
            return tuple(self._received)

    @property
    def problems(self) -> tuple[Exception, ...]:
        """The errors of the script and of requests so far; leaving the block raises the first."""
        return tuple(self._problems)

    def base_url(self, wire: str) -> str:
        """Return the `api_base` of `dspy.LM` for a wire, the same on both of DSPy's engines.

        OpenAI's SDK takes it too. The other official SDKs append more of the path and take `url`.
        """
        return self.url + _row(wire).suffix

    def lm_options(self, wire: str, **changes: Any) -> dict[str, Any]:
        """Return the arguments of `dspy.LM` for this provider and a wire, without cache and retries.

        Args:
            wire: a key of `WIRES`.
            changes: `dspy.LM` arguments to add or replace, such as `engine="litellm"`. For Ollama this engine
                is the default, because only LiteLLM speaks Ollama's own wire; with `engine="auto"` DSPy
                speaks OpenAI chat to Ollama.
        """
        row = _row(wire)
        return {
            "model": row.model,
            "api_base": self.base_url(wire),
            "api_key": LOOPBACK_KEY,
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
        wire: Wire | None = None
        try:
            wire = _wire_of(method, path)
            received = read(self._count + 1, wire, path, headers, content)
            with self._lock:
                self._count += 1
                self._received.append(received)
            response = write(await self._policy(received), wire, received)
            if self._recording is not None:
                record(self._recording, received, response)
        except Exception as error:  # noqa: BLE001  (leaving the block raises it)
            self._problems.append(error)
            return refuse(error, wire)
        return response


def _row(wire: str) -> Wire:
    if wire not in WIRES:
        fix = f"Use one of {', '.join(WIRES)}."
        raise LoopbackError(f"{wire!r} is not a wire", code="unknown_wire", fix=fix)
    return WIRES[wire]


def _wire_of(method: str, path: str) -> Wire:
    wire = wire_at(path) if method == "POST" else None
    if wire is None:
        fix = f"Served: POST {', '.join(row.format.PATH.pattern for row in WIRES.values())}"
        raise LoopbackError(f"no wire serves {method} {path}", code="unknown_path", fix=fix)
    return wire
