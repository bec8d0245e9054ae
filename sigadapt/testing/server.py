"""The HTTP server of a loopback provider: aiohttp on 127.0.0.1, in a thread and an event loop of its own."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeAlias

from aiohttp import web

from sigadapt.testing.exchange import Response

Respond: TypeAlias = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Response]]
"""Method, path with query, headers and body to a response; never raises."""

_HOST = "127.0.0.1"
# Seconds given to requests still in hand when the server stops: their clients have left the `with` block.
_GRACE = 0.1
# A script's function that blocks holds a thread; the pool makes them as they are needed.
_BLOCKED = 128


class Server:
    """A running server.

    Args:
        respond: what answers each request; it runs in the server's loop.
    """

    def __init__(self, respond: Respond) -> None:
        listener = socket.create_server((_HOST, 0), backlog=1024)
        self.url = f"http://{_HOST}:{listener.getsockname()[1]}"
        started: Future[Callable[[], object]] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(respond, listener, started), name="sigadapt-loopback", daemon=True
        )
        self._thread.start()
        try:
            self._stop = started.result()
        except Exception:
            listener.close()
            raise

    def stop(self) -> None:
        """Close every connection and end the thread."""
        self._stop()
        self._thread.join()

    def _run(
        self, respond: Respond, listener: socket.socket, started: "Future[Callable[[], object]]"
    ) -> None:
        try:
            asyncio.run(_serve(respond, listener, started))
        except Exception as error:
            if started.done():
                raise
            started.set_exception(error)  # for the thread that waits for it


async def _serve(respond: Respond, listener: socket.socket, started: "Future[Callable[[], object]]") -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    loop.set_default_executor(ThreadPoolExecutor(_BLOCKED, thread_name_prefix="sigadapt-script"))

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        # Read from the stream, because `request.read()` refuses bodies above a megabyte.
        content = await request.content.read()
        response = await respond(request.method, request.path_qs, request.headers, content)
        return await _send(response, request)

    runner = web.ServerRunner(web.Server(handle, access_log=None), shutdown_timeout=_GRACE)
    await runner.setup()
    try:
        await web.SockSite(runner, listener, backlog=1024).start()
        started.set_result(lambda: loop.call_soon_threadsafe(stopped.set))
        await stopped.wait()
    finally:
        await runner.cleanup()


async def _send(response: Response, request: web.BaseRequest) -> web.StreamResponse:
    headers = {"Content-Type": response.content_type}
    if len(response.chunks) == 1:
        return web.Response(status=response.status, headers=headers, body=response.chunks[0])
    stream = web.StreamResponse(status=response.status, headers=headers)
    await stream.prepare(request)
    for chunk in response.chunks:
        await stream.write(chunk)
    await stream.write_eof()
    return stream
