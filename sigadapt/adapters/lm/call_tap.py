"""The fragments of calls, heard as DSPy streams an answer, and handed to whoever listens.

DSPy sends chunks of a chat completion to its stream. A tap stands in for that stream during one model call:
it passes everything on, puts the calls together, and sends what the subscription makes of them.
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, cast

from dspy import lm15

from sigadapt.adapters.lm.dspy_internals import EngineChunk
from sigadapt.providers.reading import objects
from sigadapt.providers.stream_parts import Call, Fold
from sigadapt.schemas.json_values import Json


class Subscription(Protocol):
    """Who listens to the calls of one model call (`listeners.py`)."""

    def on_fragment(self, fold: Fold, call: Call, before: list[Call]) -> Iterator[Any]:
        """Give what is to be sent after a fragment was added to a call; `before` held the latest one."""
        ...

    def on_end(self, response: lm15.Response) -> Iterator[Any]:
        """Give what is still to be sent when the answer is over."""
        ...


Subscribe: TypeAlias = Callable[[], Subscription | None]
"""Gives the subscription; asked only where DSPy streams. None where nobody waits for calls."""


def nobody() -> None:
    """Subscribe nobody."""
    return


class CallTap:
    """DSPy's stream of one model call, with the calls in it heard.

    Args:
        stream: DSPy's stream.
        subscription: who listens to the calls.
    """

    def __init__(self, stream: Any, subscription: Subscription | None) -> None:
        self._stream = stream
        self._subscription = subscription
        self._fold = Fold()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def send(self, item: Any) -> None:
        """Pass a chunk on, then what follows from the fragments in it."""
        await self._stream.send(item)
        if isinstance(item, EngineChunk):
            for fragment in _fragments(cast("Json", item)):
                for heard in self._heard(fragment):
                    await self._stream.send(heard)

    def calls(self) -> list[Json]:
        """Return the calls that were heard, as those of an unstreamed chat message."""
        return [call.whole(ended=True) for call in self._fold.calls]

    def rest(self, response: lm15.Response) -> Iterator[Any]:
        """Give what the listeners have not got yet, when the answer is over."""
        if self._subscription is not None:
            yield from self._subscription.on_end(response)

    def _heard(self, fragment: Json) -> Iterator[Any]:
        before = self._fold.calls[-1:]
        call = self._fold.add(fragment)
        if self._subscription is not None:
            yield from self._subscription.on_fragment(self._fold, call, before)


def _fragments(chunk: Json) -> Iterator[Json]:
    for choice in objects(chunk.get("choices")):
        yield from objects((choice.get("delta") or {}).get("tool_calls"))
