"""A script: the loopback provider's reply to each request, from a list or a function."""

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from sigadapt.testing.answers import LoopbackError, Reply
from sigadapt.testing.received import Received

Script: TypeAlias = Sequence[Reply] | Callable[[Received], Reply | Awaitable[Reply]]
"""Replies in order of arrival, of which the last repeats; or a function of the request, async or not."""

Policy: TypeAlias = Callable[[Received], Awaitable[Reply]]


def policy(script: Script) -> Policy:
    """Make one async function of either form of script.

    Raises:
        LoopbackError: `invalid_script`, if it is neither a sequence nor a function, or is empty.
    """
    if callable(script):
        return _ask(script)
    if isinstance(script, bytes | str) or not isinstance(script, Sequence) or not script:  # pyright: ignore[reportUnnecessaryIsInstance]  (users may be untyped)
        raise LoopbackError("a script is a sequence of at least one reply, or a function of the request")
    return _in_order(script)


def _in_order(replies: Sequence[Reply]) -> Policy:
    rest = itertools.chain(replies, itertools.repeat(replies[-1]))

    async def reply(_: Received) -> Reply:
        return next(rest)

    return reply


def _ask(function: Callable[[Received], Reply | Awaitable[Reply]]) -> Policy:
    def call(received: Received) -> Reply | Awaitable[Reply]:
        try:
            return function(received)
        except StopIteration as stop:  # a future cannot hold it, so the client would wait forever
            raise LoopbackError("the script's function raised StopIteration") from stop

    async def reply(received: Received) -> Reply:
        # In a thread, so that a function that blocks does not delay other requests.
        said = await asyncio.get_running_loop().run_in_executor(None, call, received)
        return await said if inspect.isawaitable(said) else said

    return reply
