"""A script: what the loopback provider says to each request, in order or by a function."""

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from sigadapt.testing.answers import LoopbackError, Reply
from sigadapt.testing.received import Received

Script: TypeAlias = Sequence[Reply] | Callable[[Received], Reply | Awaitable[Reply]]
"""Replies taken in order of arrival, the last one repeating; or a function, async or not, of the request."""

Policy: TypeAlias = Callable[[Received], Awaitable[Reply]]


def policy(script: Script) -> Policy:
    """One async function for either form of script; LoopbackError for a script that is neither, or empty."""
    if callable(script):
        return _asked(script)
    if isinstance(script, bytes | str) or not isinstance(script, Sequence) or not script:  # pyright: ignore[reportUnnecessaryIsInstance]  (users may be untyped)
        raise LoopbackError("a script is a sequence of at least one reply, or a function of the request")
    return _in_order(script)


def _in_order(replies: Sequence[Reply]) -> Policy:
    rest = itertools.chain(replies, itertools.repeat(replies[-1]))

    async def reply(_: Received) -> Reply:
        return next(rest)

    return reply


def _asked(function: Callable[[Received], Reply | Awaitable[Reply]]) -> Policy:
    def call(received: Received) -> Reply | Awaitable[Reply]:
        try:
            return function(received)
        except StopIteration as stop:  # asyncio refuses to carry it and would never answer
            raise LoopbackError("the script's function raised StopIteration") from stop

    async def reply(received: Received) -> Reply:
        # On a thread of its own, so that a function that blocks holds up no other request.
        said = await asyncio.get_running_loop().run_in_executor(None, call, received)
        return await said if inspect.isawaitable(said) else said

    return reply
