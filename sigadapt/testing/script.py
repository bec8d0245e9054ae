"""A script: from each request that the loopback provider received to its reply, by a list or a function."""

import asyncio
import inspect
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sigadapt.testing.answers import LoopbackError, Reply


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it arrived.

    Args:
        number: its place in the order of arrival, from 1.
        wire: the name of the wire it came over, a key of `WIRES`.
        path: the path with its query, such as `/v1/chat/completions`.
        headers: the headers by name in lower case, one value for each name.
        body: the body, a JSON object.
        model: the requested model, from the body or the path.
        stream: whether the request asks for a stream.
    """

    number: int
    wire: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]
    model: str
    stream: bool


Script: TypeAlias = Sequence[Reply] | Callable[[Received], Reply | Awaitable[Reply]]
"""Replies in order of arrival, of which the last repeats; or a function of the request, async or not."""

Policy: TypeAlias = Callable[[Received], Awaitable[Reply]]


def policy(script: Script) -> Policy:
    """Make one async function of either form of script; a LoopbackError says that it is neither."""
    if callable(script):
        function = script
    elif isinstance(script, bytes | str) or not isinstance(script, Sequence) or not script:  # pyright: ignore[reportUnnecessaryIsInstance]  (users may be untyped)
        raise LoopbackError("a script is a sequence of at least one reply, or a function of the request")
    else:
        replies = itertools.chain(script, itertools.repeat(script[-1]))

        async def next_one(received: Received) -> Reply:
            return next(replies)

        return next_one

    def call(received: Received) -> Reply | Awaitable[Reply]:
        try:
            return function(received)
        except StopIteration as stop:  # a future cannot hold it, so the client would wait forever
            raise LoopbackError("the script's function raised StopIteration") from stop

    async def reply(received: Received) -> Reply:
        # In a thread, so that a function that blocks does not delay other requests.
        result = await asyncio.get_running_loop().run_in_executor(None, call, received)
        return await result if inspect.isawaitable(result) else result

    return reply
