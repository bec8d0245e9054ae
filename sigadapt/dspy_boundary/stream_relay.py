"""Send to a stream of `dspy.streamify` from the threads and loops in which tools run.

That stream belongs to one event loop: code elsewhere that awaits it hangs, and AnyIO refuses threads that it
has not started. So while tools run elsewhere, DSPy's settings have a `StreamRelay` in the stream's place.
"""

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from sigadapt.dspy_boundary.internals import settings, streaming_to
from sigadapt.dspy_boundary.patches import install_for_streams


class StreamRelay:
    """Sends on the loop of a stream, from any thread."""

    is_direct = True  # elsewhere than on that loop, `send` never awaits

    def __init__(self, stream: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._stream = stream
        self._loop = loop
        install_for_streams()

    async def send(self, item: Any) -> None:
        """Block until the loop of the stream has taken the item; on that loop, await it."""
        sending = self._stream.send(item)
        try:
            is_on_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_on_loop = False
        if is_on_loop:  # a coroutine that went back to this loop, as those of MCP sessions do
            await sending
        else:
            asyncio.run_coroutine_threadsafe(sending, self._loop).result()


def relayed_from_thread() -> AbstractContextManager[Any]:
    """Return a context in which what sync code starts elsewhere can send to the open stream.

    If this thread runs a loop, the loop waits for what is started, and nothing can send through it.
    """
    if not _needs_relay():
        return nullcontext()
    from anyio import from_thread  # a tenth of the import's time

    try:
        loop = from_thread.run_sync(asyncio.get_running_loop)
    except RuntimeError:  # not a thread of AnyIO's
        return nullcontext()
    return streaming_to(StreamRelay(settings.send_stream, loop))


def relayed_from_loop() -> AbstractContextManager[Any]:
    """Return a context in which what async code starts elsewhere can send to the open stream."""
    if not _needs_relay():
        return nullcontext()
    return streaming_to(StreamRelay(settings.send_stream, asyncio.get_running_loop()))


def _needs_relay() -> bool:
    stream = settings.send_stream
    return stream is not None and not getattr(stream, "is_direct", False)
