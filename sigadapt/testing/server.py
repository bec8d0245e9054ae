"""The HTTP server of a loopback provider: aiohttp on 127.0.0.1, with its own thread and event loop."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeAlias

from aiohttp import web

from sigadapt.testing.exchange import Response

Respond: TypeAlias = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Response]]
"""Makes a response of method, path with query, headers and body; never raises."""

_HOST = "127.0.0.1"
_BACKLOG = 1024
# Seconds that unfinished requests get when the server stops; their clients have left the `with` block.
_GRACE = 0.1
# How many functions of a script may block at once; the pool starts a thread for each as needed.
_BLOCKED = 128


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
