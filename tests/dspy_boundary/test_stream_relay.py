"""A stream of one event loop, reached from threads and from other loops."""

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from internals import StreamRelay, patches


async def on_the_loop(relay: Any) -> None:
    await relay.send("word")


async def on_another_loop(relay: Any) -> None:
    await asyncio.to_thread(lambda: asyncio.run(relay.send("word")))


async def in_a_thread(relay: Any) -> None:
    def work() -> None:
        with pytest.raises(StopIteration):  # it never awaits
            relay.send("word").send(None)

    await asyncio.to_thread(work)


@pytest.mark.parametrize("sender", [on_the_loop, on_another_loop, in_a_thread])
def test_a_full_stream_waits_for_its_reader(sender: Callable[[Any], Any]) -> None:
    """streaming: Tools run under streamify as without it."""

    async def main() -> list[str]:
        stream, reader = anyio.create_memory_object_stream[str](0)
        relay = StreamRelay(stream, asyncio.get_running_loop())
        async with stream, reader:
            sending = [asyncio.ensure_future(sender(relay)) for _ in range(3)]
            words = [await reader.receive() for _ in sending]
            await asyncio.gather(*sending)
        return words

    assert asyncio.run(asyncio.wait_for(main(), 20)) == ["word"] * 3


def test_a_direct_stream_that_waits_is_an_error() -> None:
    class Stream:
        is_direct = True

        async def send(self, item: Any) -> None:
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waited"):
        patches.send_to_stream(Stream(), "item")
