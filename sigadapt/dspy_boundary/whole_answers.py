"""Engines for a stream of a model that cannot stream: they give its whole answer as the events of a stream.

In DSPy 3.4, a `dspy.BaseLM` of the user's has a `forward`, and perhaps an `aforward`. In both versions, an
engine of the user's may have no `stream`. What returns whole answers alone, DSPy refuses to stream. A model
that has no `aforward` runs its `forward` in a thread, because a stream awaits an async program.
"""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from dspy.clients import engines
from dspy.clients.base_lm import BaseLM
from dspy.lm15 import response_to_events

_LEGACY: Any = getattr(engines, "LegacyEngine", ())  # DSPy 3.4: the engine of a `forward`
_ASYNC_LEGACY: Any = getattr(engines, "AsyncLegacyEngine", ())


def whole_answers(engine: Any, lm: BaseLM, *, is_async: bool) -> Any:
    """Return the engine to stream with: another one, if this one cannot stream."""
    if isinstance(engine, _LEGACY) or not (is_async or hasattr(engine, "stream")):
        return _WholeAnswers(engine)
    if not isinstance(engine, _ASYNC_LEGACY):
        return engine if hasattr(engine, "stream") else _AsyncWholeAnswers(engine)
    model: Any = lm
    runs_forward = "aforward" not in vars(lm) and type(model).aforward is vars(BaseLM)["aforward"]
    if runs_forward and engine.lm is lm:
        return _AsyncWholeAnswers(_InThread(_LEGACY(lm, _implicit=True)))
    return _AsyncWholeAnswers(engine)


class _WholeAnswers:
    """A sync engine. Everything but `stream` is DSPy's."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def stream(self, request: Any) -> Any:
        """Return the events of the whole answer."""
        return response_to_events(self._engine.complete(request))


class _AsyncWholeAnswers(_WholeAnswers):
    """An async engine."""

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        """Yield the events of the whole answer."""
        for event in response_to_events(await self._engine.complete(request)):
            yield event


class _InThread:
    """An async engine that runs a sync one in a thread."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    async def complete(self, request: Any) -> Any:
        """Return the whole answer to a typed request."""
        return await asyncio.to_thread(self._engine.complete, request)

    async def complete_legacy(self, *args: Any, **options: Any) -> Any:
        """Return the whole answer to a request of DSPy's own adapters."""
        return await asyncio.to_thread(partial(self._engine.complete_legacy, *args, **options))

    async def aclose(self) -> None:
        """End the use of the model, which is its owner's to close."""
        self._engine.close()
