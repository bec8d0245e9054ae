"""A native stream recorded: the provider's own events, kept on the response that DSPy assembles from them.

DSPy's engine keeps the last event of a streamed answer alone. What it assembles itself has lost the arguments
it could not decode, refusals, and the calls and signatures that Gemini sends in an event each. So the events
are recorded as they pass and stay on the end event's `provider_data`, which also goes into DSPy's cache;
`response/choice.py` reads them as `choice_from_stream` would.

The engine that DSPy chose stays, with its connections, retries, prices and provider names: a copy of the
model finds that engine where it would find its own, with the recording around it.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from dataclasses import replace
from typing import Any

import orjson
from dspy import BaseLM, lm15
from dspy.clients.engines.litellm_engine import AsyncLiteLLMEngine, LiteLLMEngine

from sigadapt.adapters.lm.dspy_internals import inner_of, native_engine, target_of, with_engine
from sigadapt.adapters.lm.litellm_engines import with_engines
from sigadapt.adapters.response.stream_events import EVENTS
from sigadapt.providers.reading import an_object, objects
from sigadapt.schemas.json_values import Json

_Parse = Callable[[Any, Any], Iterator[Any]]


def kept_whole(lm: BaseLM, request: lm15.Request, *, is_async: bool) -> BaseLM:
    """The model, or a copy of it whose native streams are kept whole.

    Args:
        lm: the language model.
        request: what it is about to be asked, by which DSPy selects the engine.
        is_async: whether it will be awaited.

    Returns:
        The model itself where it answers by an engine of the user's. Over LiteLLM, whose body is whole, a
        copy that also streams what DSPy's engine refuses to.

    Raises:
        dspy.utils.exceptions.LMError: where DSPy finds no engine for the request.
    """
    if not isinstance(getattr(lm, "engine", None), str):
        return lm
    engine: Any = native_engine(lm, request, is_async=is_async)
    if isinstance(engine, (LiteLLMEngine, AsyncLiteLLMEngine)):
        options: dict[str, Any] = {
            "model_type": engine.model_type,
            "wire_model": engine.wire_model,
            **engine.client_options,
        }
        return with_engines(lm, (), options)
    return with_engine(lm, _RecordingAsync(engine) if is_async else _Recording(engine))


def with_calls(response: lm15.Response, calls: list[Json]) -> lm15.Response:
    """The response with the calls that were streamed, where LiteLLM put other ones together.

    It goes by the index, which the calls of Ollama's stream share, and fills in empty arguments.

    Args:
        response: a streamed answer.
        calls: the calls its fragments amount to, as those of a chat message.
    """
    body: Json = response.provider_data or {}
    choice = an_object(next(iter(objects(body.get("choices"))), None))
    message = an_object(choice.get("message"))
    if EVENTS in body or not message or _sent(calls) == _sent(objects(message.get("tool_calls"))):
        return response
    whole = {**body, "choices": [{**choice, "message": {**message, "tool_calls": calls}}]}
    return replace(response, provider_data={**body, EVENTS: _sse([orjson.dumps(whole).decode()])})


def _sent(calls: list[Json]) -> list[Any]:
    functions = [an_object(call.get("function")) for call in calls]
    return [(function.get("name"), function.get("arguments")) for function in functions]


def _sse(events: list[str]) -> str:
    lines = (event.replace("\n", "\ndata: ") for event in events)
    return "".join(f"data: {line}\n\n" for line in lines)


class _Engine:
    """A native engine, but for `stream`."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def _recording(self, request: lm15.Request) -> "tuple[Any, lm15.Request, _Notes]":
        provider, routed = target_of(self._engine, request)
        notes = _Notes()
        return notes.taken_of(provider), routed, notes


class _Recording(_Engine):
    def stream(self, request: lm15.Request) -> Iterator[Any]:
        provider, routed, notes = self._recording(request)
        with closing(provider.stream(routed)) as events:
            for event in events:
                yield notes.on(event)


class _RecordingAsync(_Engine):
    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        # On a thread, as DSPy does: credentials may be fetched.
        provider, routed, notes = await asyncio.to_thread(self._recording, request)
        async with aclosing(provider.stream(routed)) as events:
            async for event in events:
                yield notes.on(event)


class _Notes:
    """The events of one stream as they came, and the finish that lm15 cannot read off the last of them."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._finish: str | None = None

    def taken_of(self, provider: Any) -> Any:
        """A copy of the provider that notes each event it parses; an async one parses by its inner one."""
        noted = copy.copy(provider)
        inner = inner_of(provider)
        if inner is not None:
            noted._inner = self.taken_of(inner)  # noqa: SLF001
        else:
            noted.parse_stream_events = self._around(provider.parse_stream_events)
        return noted

    def _around(self, parse: _Parse) -> _Parse:
        def parse_and_note(request: Any, event: Any) -> Iterator[Any]:
            if event.data:
                self._texts.append(event.data)
            return parse(request, self._known(event))

        return parse_and_note

    def _known(self, event: Any) -> Any:
        """The event; OpenAI's end of a cut-off answer, which lm15 does not know, as one it knows."""
        if not event.data or "response.incomplete" not in event.data[:200]:
            return event
        body: Json = orjson.loads(event.data)
        if body.get("type") != "response.incomplete":
            return event
        details = an_object(an_object(body.get("response")).get("incomplete_details"))
        self._finish = "content_filter" if details.get("reason") == "content_filter" else "length"
        return replace(event, data=orjson.dumps({**body, "type": "response.completed"}).decode())

    def on(self, event: Any) -> Any:
        """The event, with what was noted on it if it is the end."""
        if not isinstance(event, lm15.StreamEndEvent):
            return event
        data = {**(event.provider_data or {}), EVENTS: _sse(self._texts)}
        finish: Any = self._finish or event.finish_reason
        return replace(event, finish_reason=finish, provider_data=data)
