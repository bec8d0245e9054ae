"""CallTap: takes the calls from the chunks that DSPy streams, for the listeners to calls.

DSPy sends chunks of a chat completion to its stream. During one model call, a CallTap replaces this stream.
It passes each chunk on, puts the calls together, and sends what the subscription makes of them.
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, cast

from dspy import lm15

from sigadapt.adapters.lm.streams.call_deltas import NOT_JSON
from sigadapt.dspy_boundary.internals import EngineChunk
from sigadapt.providers.reading import an_object, objects
from sigadapt.providers.stream_parts import Call, Fold
from sigadapt.schemas.json_values import Json


class Subscription(Protocol):
    """What a CallTap needs of the listeners to one model call (`listeners.CallSubscription`)."""

    def on_fragment(self, fold: Fold, call: Call, before: list[Call]) -> Iterator[Any]:
        """Yield what to send after a fragment was added to `call`; `before` holds the call before it."""
        ...

    def shown(self, chunk: Any) -> Any:
        """Return the chunk to pass on, which may lack text that is held back; None for nothing."""
        ...

    def on_chunk(self, chunk: Json) -> Iterator[Any]:
        """Yield what to send after a chunk, for the text in it."""
        ...

    def on_end(self, response: lm15.Response) -> Iterator[Any]:
        """Yield what is left to send when the answer ends."""
        ...


Subscribe: TypeAlias = Callable[[], Subscription | None]
"""Returns the subscription, or None if nobody listens to calls. It is called only if DSPy streams."""


def nobody() -> None:
    """Return None: nobody listens."""
    return


class CallTap:
    """Replaces DSPy's stream during one model call.

    Args:
        stream: DSPy's stream.
        subscription: the listeners to the calls; None if nobody listens.
    """

    def __init__(self, stream: Any, subscription: Subscription | None) -> None:
        self._stream = stream
        self._subscription = subscription
        self._fold = Fold()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def send(self, item: Any) -> None:
        """Send a chunk to DSPy's stream, then what the subscription makes of the fragments in it."""
        if not isinstance(item, EngineChunk):
            await self._stream.send(item)
            return
        fragments = list(_fragments(cast("Json", item)))
        if any(_is_not_json(fragment) for fragment in fragments):
            return
        shown = item if self._subscription is None else self._subscription.shown(item)
        if shown is None:
            return
        await self._stream.send(shown)
        if self._subscription is not None:
            for response in self._subscription.on_chunk(cast("Json", shown)):
                await self._stream.send(response)
        for fragment in fragments:
            for response in self._responses(fragment):
                await self._stream.send(response)

    def calls(self) -> list[Json]:
        """Return the calls that were streamed, as the `tool_calls` of an unstreamed chat message."""
        return [call.whole(ended=True) for call in self._fold.calls]

    def rest(self, response: lm15.Response) -> Iterator[Any]:
        """Yield what the listeners have not got yet when the answer ends."""
        if self._subscription is not None:
            yield from self._subscription.on_end(response)

    def _responses(self, fragment: Json) -> Iterator[Any]:
        before = self._fold.calls[-1:]
        call = self._fold.add(fragment)
        if self._subscription is not None:
            yield from self._subscription.on_fragment(self._fold, call, before)


def _fragments(chunk: Json) -> Iterator[Json]:
    for choice in objects(chunk.get("choices")):
        yield from objects((choice.get("delta") or {}).get("tool_calls"))


def _is_not_json(fragment: Json) -> bool:
    return an_object(fragment.get("function")).get("arguments") == NOT_JSON
