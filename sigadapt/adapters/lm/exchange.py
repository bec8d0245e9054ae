"""One request and its answer on a native route, between lm15 and the provider, with nothing lost.

lm15's types hold less than a provider sends and takes. DSPy selects and keeps its engine, with its
connections, retries and prices. For one request, an engine of ours stands before it and changes three things:

 a. lm15 gets stubs instead of the conversation and the tools, and writes the settings. What the provider's
    file wrote is set in that body (`to_lm15.py`).
 b. A body that lm15 refuses, because of one call without a name or with a NaN, is kept on the Response,
    and `response/choice.py` reads it. Streams are recorded (`stream_recorder.py`).
 c. The request is written once. DSPy writes it first to ask lm15 whether it can, and again to send it.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import orjson
from dspy import BaseLM, lm15

from sigadapt.adapters.listeners import CallTap
from sigadapt.adapters.lm.errors_in_answers import refuse_error
from sigadapt.adapters.lm.stream_recorder import Recorder
from sigadapt.adapters.lm.to_lm15 import WireBody
from sigadapt.adapters.response.response_bodies import BODY, EVENTS, events_of
from sigadapt.dspy_boundary.internals import (
    base_url_of,
    native_engine,
    settings,
    target_of,
    with_engines_from,
    with_methods,
    written_target,
)
from sigadapt.errors import UnreadableResponse
from sigadapt.json_values import Json
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.values import an_object

_SIGNED = "x-amz-date"
"""A header of a request whose body Amazon's clouds have signed, so that it is written whole."""


def exchanging(lm: BaseLM, request: lm15.Request, body: WireBody, *, is_async: bool) -> BaseLM:
    """Return a copy of a model on a native route, for one request, whose engine is ours."""
    kind = _AsyncCall if is_async else _SyncCall

    def engine_of(engines: dict[Any, Any], key: Any) -> Any:
        if key not in engines:
            native_engine(lm, request, is_async=is_async)  # DSPy makes the engine and keeps it
        return kind(engines[key], body)

    return with_engines_from(lm, engine_of)


def response_with_raw_body(
    provider: Provider, text: str, parse: Callable[[Json], lm15.Response]
) -> lm15.Response | None:
    """If lm15 rejects a body or a stream with an answer, return a Response that carries it as text."""
    key = BODY
    body = json_in(text)
    if not body:
        key = EVENTS
        body = _whole(text, provider)
    readings = provider.read(body)
    if all(reading.is_empty and reading.finish != "content_filter" for reading in readings):
        return None
    try:
        response = parse(provider.without_calls(body))
    except (ValueError, TypeError, RecursionError, lm15.LM15Error):
        message = lm15.Message.assistant((lm15.TextPart(text=""),))
        response = lm15.Response(
            id=None, model=str(body.get("model") or "unknown"), message=message, finish_reason="stop",
            usage=lm15.Usage(),
        )  # fmt: skip
    return replace(response, provider_data={**(response.provider_data or {}), key: text})


def _whole(text: str, provider: Provider) -> Json:
    """Return the body that the events in a text make, if it holds a stream where none was asked for."""
    try:
        events = [event for event in events_of(text) if provider.is_event(event)]
    except UnreadableResponse:
        return {}
    return provider.assemble(events) if events else {}


def json_in(text: bytes | str) -> Json:
    """Return the object in a body; an empty one if it holds none."""
    try:
        return an_object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def is_empty(response: lm15.Response) -> bool:
    """Return whether lm15 found nothing in an answer, or an error in the place of one."""
    texts = [part for part in response.message.parts if part.type == "text" and not part.text]
    return len(texts) == len(response.message.parts)


class _EngineCall:
    """A native engine for one request. Everything that is not changed here is DSPy's."""

    def __init__(self, engine: Any, body: WireBody) -> None:
        self._engine = engine
        self._provider = body.provider
        self._body = body
        self._target: Sequence[Any] = ()
        self._methods: dict[str, Callable[..., Any]] = {
            "parse_response": self._parse,
            "_emit": self._emit,
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def plan(self, request: lm15.Request) -> Any:
        """Return what lm15 would change in the request. If it can be written now, it is kept to be sent."""
        stub = self._body.stub(request)
        try:
            target_and_changes = written_target(self._engine, stub, self._methods)
        except lm15.UnsupportedFeatureError:
            raise
        except (lm15.LM15Error, TypeError, ValueError):
            target_and_changes = None  # `complete` raises it, where DSPy expects it
        if target_and_changes is None:
            return self._engine.plan(stub)
        *self._target, changes = target_and_changes
        return changes

    def _take_plan(self) -> Sequence[Any]:
        """Return the provider that has the request written already; only the first attempt sends it."""
        target = self._target
        self._target = ()
        return target

    def _resolve(self, request: lm15.Request, *, streaming: bool) -> tuple[Any, lm15.Request]:
        """Return a copy of lm15's provider with our methods, and the request in that provider's form."""
        provider, native_request = target_of(self._engine, self._body.stub(request), streaming=streaming)
        return with_methods(provider, self._methods), native_request

    def _recorder(self, provider: Any, request: lm15.Request) -> Recorder:
        """Return the recorder of one stream, which the listeners' half knows too."""
        recorder = Recorder(self._provider, provider, request.model)
        stream = settings.send_stream
        if isinstance(stream, CallTap):
            getattr(stream, "refuse_left", bool)()  # of a whole run (`runs/watching.py`)
            stream.recorder = recorder
        return recorder

    def _emit(self, emit: Callable[..., Any], *, payload: Any = None, **rest: Any) -> Any:
        headers = dict(rest.pop("headers", None) or {})
        if self._provider.path:
            rest["url"] = base_url_of(emit) + self._provider.path
        if self._provider.headers_of_fields or self._provider.headers_of_tools:
            for name, value in self._body.headers.items():
                headers[name] = f"{headers[name]},{value}" if name in headers else value
        request = emit(payload=payload, headers=headers, **rest)
        if _SIGNED in map(str.lower, dict(request.headers)):
            return emit(payload=self._body.set_in(payload), headers=headers, **rest)
        request.body = self._body.bytes_with(request.body)
        return request

    def _parse(self, parse: Callable[[Any, Any], lm15.Response], request: Any, http: Any) -> lm15.Response:
        def of_body(body: Json) -> lm15.Response:
            return parse(request, replace(http, body=orjson.dumps(body)))

        try:
            response = parse(request, http)
        except Exception as error:
            text = http.body.decode("utf-8", "surrogateescape")
            fallback = response_with_raw_body(self._provider, text, of_body)
            if fallback is not None:
                return fallback
            refuse_error(json_in(http.body), self._provider, error)
            raise
        if is_empty(response):
            refuse_error(json_in(http.body), self._provider)
        return response


class _SyncCall(_EngineCall):
    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send the request and return the whole answer."""
        provider, native_request = self._take_plan() or self._resolve(request, streaming=False)
        if not request.config.stop:
            return provider.complete(native_request)
        recorder = self._recorder(provider, request)
        return recorder.whole(recorder.lm15_provider.complete(native_request))

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        """Send the request and yield the answer's events, recorded."""
        provider, native_request = self._resolve(request, streaming=True)
        return self._recorder(provider, request).events_of(native_request)


class _AsyncCall(_EngineCall):
    # The request is resolved in a thread, as in DSPy, because this may fetch credentials.

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """Send the request and return the whole answer."""
        target = self._take_plan()
        provider, native_request = target or await asyncio.to_thread(self._resolve, request, streaming=False)
        if not request.config.stop:
            return await provider.complete(native_request)
        recorder = self._recorder(provider, request)
        return recorder.whole(await recorder.lm15_provider.complete(native_request))

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        """Send the request and yield the answer's events, recorded."""
        provider, native_request = await asyncio.to_thread(self._resolve, request, streaming=True)
        async with aclosing(self._recorder(provider, request).aevents_of(native_request)) as events:
            async for event in events:
                yield event
