"""Record the provider's own events of a native stream, and keep them on the Response.

Of a streamed answer, DSPy's engine keeps only the last event. The message that it assembles has lost
arguments that it could not decode, refusals, and the calls and signatures that Gemini sends in an event each.
Therefore every event is recorded. The end event's `provider_data` holds the recording, which DSPy's cache
keeps too. `response/choice.py` reads it as `choice_from_stream` reads a stream.

DSPy still selects the engine, with its connections, retries, prices and provider names. A copy of the model
gets that engine, wrapped in one that records.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, closing, contextmanager
from dataclasses import replace
from typing import Any

import orjson
from dspy import BaseLM, LMStreamAssemblyError, lm15
from dspy.clients.engines.litellm_engine import AsyncLiteLLMEngine, LiteLLMEngine

from sigadapt.adapters.lm.dspy_internals import inner_of, native_engine, target_of, with_engine
from sigadapt.adapters.lm.from_lm15 import body_of_parts
from sigadapt.adapters.lm.litellm_engines import with_engines
from sigadapt.adapters.response.stream_events import EVENTS
from sigadapt.providers.reading import an_object, objects
from sigadapt.schemas.json_values import Json

_Parse = Callable[[Any, Any], Iterator[Any]]


def kept_whole(lm: BaseLM, request: lm15.Request, *, is_async: bool) -> BaseLM:
    """Return a copy of the model whose streamed answers are complete.

    Args:
        lm: the language model.
        request: the request to be sent, by which DSPy selects the engine.
        is_async: whether the model will be awaited.

    Returns:
        A copy that records a native stream; or one that streams over LiteLLM what DSPy's engine refuses
        (`litellm_engines.py`); or the model itself, if it uses an engine that the user made.

    Raises:
        dspy.utils.exceptions.LMError: if DSPy finds no engine for the request.
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
    """Return the response with the calls that were streamed, if LiteLLM put other calls together.

    LiteLLM joins fragments by their index, which is the same for all calls of an Ollama stream, and fills in
    empty arguments.

    Args:
        response: the response of a streamed answer.
        calls: the calls that its fragments make, as the `tool_calls` of a chat message.
    """
    body: Json = response.provider_data or {}
    choice = an_object(next(iter(objects(body.get("choices"))), None))
    message = an_object(choice.get("message"))
    if EVENTS in body or not message or _sent(calls) == _sent(objects(message.get("tool_calls"))):
        return response
    whole = {**body, "choices": [{**choice, "message": {**message, "tool_calls": calls}}]}
    return replace(response, provider_data={**body, EVENTS: _sse([orjson.dumps(whole).decode()])})


@contextmanager
def unended_is_said(calls: Callable[[], list[Json]]) -> Generator[None, None, None]:
    """Let the partial Response of a stream that just ended say that it did not end.

    DSPy raises an `LMStreamAssemblyError` whose `partial` is a Response with a finish reason like any other.
    `choice_from_response` then reads that Response as a broken stream: no finish reason, calls cut off.

    Args:
        calls: returns the calls that were streamed, as the `tool_calls` of a chat message.

    Raises:
        dspy.LMStreamAssemblyError: the same error.
    """
    try:
        yield
    except LMStreamAssemblyError as error:
        if isinstance(error.partial, lm15.Response):
            whole = an_object(objects(body_of_parts(error.partial, None)["choices"])[0].get("message"))
            chunk = {"choices": [{"message": {**whole, "tool_calls": calls()}}]}
            error.partial = replace(
                error.partial, provider_data={EVENTS: _sse([orjson.dumps(chunk).decode()])}
            )
        raise


def _sent(calls: list[Json]) -> list[Any]:
    functions = [an_object(call.get("function")) for call in calls]
    return [(function.get("name"), function.get("arguments")) for function in functions]


def _sse(events: list[str]) -> str:
    lines = (event.replace("\n", "\ndata: ") for event in events)
    return "".join(f"data: {line}\n\n" for line in lines)


class _Engine:
    """Wraps a native engine; subclasses replace `stream`."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def _recording(self, request: lm15.Request) -> "tuple[Any, lm15.Request, _Recorder]":
        provider, routed = target_of(self._engine, request)
        recorder = _Recorder()
        return recorder.attached_to(provider), routed, recorder


class _Recording(_Engine):
    def stream(self, request: lm15.Request) -> Iterator[Any]:
        provider, routed, recorder = self._recording(request)
        with closing(provider.stream(routed)) as events:
            for event in events:
                yield recorder.with_events(event)


class _RecordingAsync(_Engine):
    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        # In a thread, as in DSPy, because this may fetch credentials.
        provider, routed, recorder = await asyncio.to_thread(self._recording, request)
        async with aclosing(provider.stream(routed)) as events:
            async for event in events:
                yield recorder.with_events(event)


class _Recorder:
    """The recorded events of one stream, and the finish reason if lm15 cannot read it from the last event."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._finish: str | None = None

    def attached_to(self, provider: Any) -> Any:
        """Return a copy of the provider that records each event; an async one parses with its inner one."""
        recorded = copy.copy(provider)
        inner = inner_of(provider)
        if inner is not None:
            recorded._inner = self.attached_to(inner)  # noqa: SLF001
        else:
            recorded.parse_stream_events = self._around(provider.parse_stream_events)
        return recorded

    def _around(self, parse: _Parse) -> _Parse:
        def parse_and_record(request: Any, event: Any) -> Iterator[Any]:
            if event.data:
                self._texts.append(event.data)
            return parse(request, self._known(event))

        return parse_and_record

    def _known(self, event: Any) -> Any:
        """Return the event; OpenAI's `response.incomplete`, unknown to lm15, as `response.completed`."""
        if not event.data or "response.incomplete" not in event.data[:200]:
            return event
        body: Json = orjson.loads(event.data)
        if body.get("type") != "response.incomplete":
            return event
        details = an_object(an_object(body.get("response")).get("incomplete_details"))
        self._finish = "content_filter" if details.get("reason") == "content_filter" else "length"
        return replace(event, data=orjson.dumps({**body, "type": "response.completed"}).decode())

    def with_events(self, event: Any) -> Any:
        """Return the event; the end event with the recording in its `provider_data`."""
        if not isinstance(event, lm15.StreamEndEvent):
            return event
        data = {**(event.provider_data or {}), EVENTS: _sse(self._texts)}
        finish: Any = self._finish or event.finish_reason
        return replace(event, finish_reason=finish, provider_data=data)
