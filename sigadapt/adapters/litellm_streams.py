"""DSPy's LiteLLM engines, which also stream answers that carry provider state.

DSPy's own refuse a stream whose chunks have fields that lm15 has no event for: Claude's thinking blocks,
Gemini's thought signatures. Nothing is lost by taking those off the chunks that lm15 sees, because the body
that LiteLLM puts together from the chunks as they came is what the choice is read from.
"""

from collections.abc import AsyncGenerator, Generator, Iterator
from typing import Any, cast

from dspy import lm15
from dspy.clients import _litellm, legacy_outputs
from dspy.clients.engines import lifecycle, litellm_engine, litellm_errors
from dspy.clients.engines.litellm_engine import AsyncLiteLLMEngine, LiteLLMEngine

from sigadapt.adapters.readers.reading import Json, an_object, objects

_DSPY: Any = litellm_engine
_ERRORS: Any = litellm_errors
_LIFE: Any = lifecycle
_KNOWN = ("role", "content", "reasoning_content", "reasoning", "tool_calls")


def shown_of(chunk: Json) -> Json:
    """The chunk with those fields of its deltas alone that lm15 has events for.

    Example:
        >>> shown_of({"choices": [{"delta": {"content": "Hm.", "thinking_blocks": []}}]})
        {'choices': [{'delta': {'content': 'Hm.'}}]}
    """
    choices = [{**choice, "delta": _shown(choice.get("delta"))} for choice in objects(chunk.get("choices"))]
    return {**chunk, "choices": choices}


def _shown(delta: Any) -> Json:
    fields = cast("Json", delta or {})
    shown = {key: fields[key] for key in _KNOWN if key in fields}
    citation = an_object(fields.get("provider_specific_fields")).get("citation")
    return {**shown, "provider_specific_fields": {"citation": citation}} if citation else shown


class _Chunks:
    """The chunks of one stream: as lm15's events, and as they came for the body they amount to."""

    def __init__(self, request: lm15.Request) -> None:
        self._codec = _DSPY._ChatStream(request)  # noqa: SLF001  (DSPy's own hook)
        self._came: list[Any] = []

    def events(self, chunk: Any) -> Iterator[Any]:
        self._came.append(chunk)
        yield from self._codec.feed(shown_of(cast("Any", legacy_outputs).plain(chunk)))

    def end(self, litellm: Any) -> Any:
        self._codec.chunks = self._came
        return self._codec.finish(litellm)


class Engine(LiteLLMEngine):
    """The engine for calls that are not awaited."""

    def stream(self, request: lm15.Request) -> Generator[Any, Any, None]:
        """The events of one streamed answer."""
        data = cast("Any", self)._arguments(request, streaming=True)  # noqa: SLF001
        litellm, chunks = _litellm_of(), _Chunks(request)
        with _ERRORS.litellm_errors(model=request.model):
            source = litellm.completion(**data)
        with _LIFE.closing_stream(source):
            came = iter(source)
            while True:
                with _ERRORS.litellm_errors(model=request.model):
                    chunk = next(came, None)
                if chunk is None:
                    break
                yield from chunks.events(chunk)
        yield chunks.end(litellm)


class AsyncEngine(AsyncLiteLLMEngine):
    """The same, awaited."""

    async def stream(self, request: lm15.Request) -> AsyncGenerator[Any, Any]:
        """The events of one streamed answer."""
        data = cast("Any", self)._arguments(request, streaming=True)  # noqa: SLF001
        litellm, chunks = _litellm_of(), _Chunks(request)
        with _ERRORS.litellm_errors(model=request.model):
            source = await litellm.acompletion(**data)
        async with _LIFE.aclosing_stream(source):
            came = source.__aiter__()
            while True:
                with _ERRORS.litellm_errors(model=request.model):
                    chunk = await anext(came, None)
                if chunk is None:
                    break
                for event in chunks.events(chunk):
                    yield event
        yield chunks.end(litellm)


def _litellm_of() -> Any:
    return cast("Any", _litellm).get_litellm(feature="LiteLLM engine streaming")
