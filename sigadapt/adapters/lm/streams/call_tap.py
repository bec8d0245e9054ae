"""CallTap: stands in for the stream to which DSPy sends an answer's chunks, during one model call.

It passes them on through the listeners to calls, and keeps the fragments of calls for an answer that breaks
off.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from sigadapt.adapters.listeners import CallSubscription
from sigadapt.adapters.lm.streams.call_deltas import NOT_JSON
from sigadapt.adapters.response.choice import Answer
from sigadapt.dspy_boundary.internals import EngineChunk
from sigadapt.providers.stream_parts import fold
from sigadapt.providers.wire.values import an_object, objects
from sigadapt.schemas.json_values import Json

Subscribe: TypeAlias = Callable[[], CallSubscription | None]
"""Returns the subscription, or None if nobody listens to calls. It is called only if DSPy streams."""


class CallTap:
    """Stands in for DSPy's stream during one model call."""

    def __init__(self, stream: Any, subscription: CallSubscription | None) -> None:
        self._stream = stream
        self._subscription = subscription
        self._fragments: list[Json] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def send(self, item: Any) -> None:
        """Send a chunk to DSPy's stream, and what the subscription makes of it."""
        if not isinstance(item, EngineChunk):
            await self._stream.send(item)
            return
        chunk: Any = item
        fragments = [
            fragment
            for choice in objects(chunk.get("choices"))
            for fragment in objects((choice.get("delta") or {}).get("tool_calls"))
        ]
        # The last fragment that `CallDeltas` adds, for lm15 alone.
        if any(an_object(each.get("function")).get("arguments") == NOT_JSON for each in fragments):
            return
        self._fragments += fragments
        for each in [chunk] if self._subscription is None else self._subscription.on_chunk(chunk, fragments):
            await self._stream.send(each)

    def calls(self) -> list[Json]:
        """Return the calls that were streamed, as the `tool_calls` of an unstreamed chat message."""
        return fold(self._fragments, ended=True)

    def rest(self, answer: Answer) -> Iterator[Any]:
        """Return what the listeners have not got yet when the answer ends."""
        return iter(()) if self._subscription is None else self._subscription.on_end(answer)
