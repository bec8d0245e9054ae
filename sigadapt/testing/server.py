"""HTTP of a loopback provider: requests become `Received`, replies a `Response`, which aiohttp serves.

The server listens on 127.0.0.1, with its own thread and event loop.
"""

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple, TypeAlias

from aiohttp import web

from sigadapt.json_values import is_mapping, is_object
from sigadapt.testing.answers import Answer, Failure, LoopbackError, Received, Reply, dumps
from sigadapt.testing.wires import WIRES
from sigadapt.testing.wires.wire import Wire

_HOST = "127.0.0.1"
_BACKLOG = 1024
# Seconds that unfinished requests get when the server stops; their clients have left the `with` block.
_GRACE = 0.1
# How many functions of a script may block at once; the pool starts a thread for each as needed.
_BLOCKED = 128
JSON = "application/json"


class Response(NamedTuple):
    """An HTTP response; the body of a stream has one chunk for each event."""

    status: int
    content_type: str
    chunks: list[bytes]


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
    if is_mapping(reply):
        return _whole(200, reply)
    raise LoopbackError(f"a script replies with Answer, Failure, dict or bytes, not {type(reply).__name__}")


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
