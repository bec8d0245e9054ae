"""Every name of DSPy that is not public, tested by what it does.

When a new DSPy changes one of them, the test of that name fails here, and its message says what was lost.
"""

import asyncio
from typing import Any

import pytest
from internals import internals


def test_a_direct_stream_that_waits_is_an_error() -> None:
    class Stream:
        is_direct = True

        async def send(self, item: Any) -> None:
            await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waited"):
        internals.send_to_stream(Stream(), "item")
