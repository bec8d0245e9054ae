"""Subclasses of DSPy's LiteLLM engines that lose nothing of a request or an answer.

Sending: DSPy's engine writes a request from lm15's types, which have no place for provider state and for the
parts in the provider's own words (`Words`). The subclasses put both into what LiteLLM gets.

Reading: lm15 or LiteLLM refuses a whole answer because of one call that its types cannot hold. The subclasses
keep the body of such an answer, as `exchange.py` does. If LiteLLM refuses it, the body is the one that LiteLLM
logs (`logger_fn`) before it reads it.

Streaming: DSPy's engine refuses chunks with fields that lm15 has no event for (Claude's thinking blocks,
Gemini's thought signatures). The subclasses remove these fields from the chunks that lm15 gets. Nothing is
lost: the Choice is read from the body that LiteLLM builds from the original chunks.

A stream that just ends, because a server or a proxy closed the connection, is an error, as on DSPy's native
engine. LiteLLM would give it the finish reason `stop`, and half an answer would pass for a whole one.
"""

import hashlib
import json
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import orjson
from dspy import BaseLM, lm15
from dspy.clients.engines.litellm_engine import AsyncLiteLLMEngine, LiteLLMEngine

from sigadapt.adapters.lm.call_deltas import CallDeltas
from sigadapt.adapters.lm.dspy_internals import (
    CLIENT_KEYS,
    ChatStream,
    aclosing,
    closing,
    get_litellm,
    litellm_errors,
    native_engine,
    plain,
)
from sigadapt.adapters.lm.exchange import believed, provider_in, spoken
from sigadapt.adapters.lm.stream_recorder import with_calls
from sigadapt.adapters.request.states import replaying
from sigadapt.adapters.response.stream_events import BODY
from sigadapt.providers import CHAT, provider_of
from sigadapt.providers.openai_chat import ran_itself
from sigadapt.providers.provider import NO_WORDS, ChatFields, Provider, Route, Words
from sigadapt.providers.reading import an_object, objects
from sigadapt.schemas.json_values import Json

_PROVIDERS_REASONS = ("received_finish_reason", "intermittent_finish_reason")
_UNKNOWN = object()
_KNOWN = ("role", "content", "reasoning_content", "reasoning", "tool_calls")


def fields_of(row: Json, route: Route) -> ChatFields | None:
    """Return the provider state to add to a message; None if its turn has no state for this route.

    Args:
        row: a message of a canonical Request.
        route: the Request's route.
    """
    turn = row.get("turn")
    if turn is None or turn.state is None or turn.state["dialect"] not in route.takes:
        return None
    provider = provider_of(turn.state["dialect"])
    with replaying(turn):
        fields = provider.state_to_chat(turn.state, route) if provider else ChatFields({}, {})
        orjson.dumps([fields.message, fields.calls])  # as `fingerprint` will
    return fields if fields.message or fields.calls else None


def fingerprint(fields: Sequence[ChatFields | None], words: Words = NO_WORDS) -> str:
    """Return a short hash of what lm15's request lacks, for the key of DSPy's cache.

    Example:
        >>> fingerprint([None]) == fingerprint([ChatFields({"reasoning_content": "Hm."}, {})])
        False
    """
    plain = [[each and (each.message, each.calls) for each in fields], [*words]]
    return hashlib.sha256(orjson.dumps(plain)).hexdigest()[:16]


def over_litellm(lm: BaseLM, request: lm15.Request, sent: "Sent", *, is_async: bool) -> BaseLM:
    """Return a copy of the model for one request, whose engines are these, and which shares its history.

    Args:
        lm: the language model.
        request: the request to be sent, by which DSPy selects the connection settings.
        sent: what to add to the request.
        is_async: whether the model will be awaited.
    """
    engine: Any = native_engine(lm, request, is_async=is_async)
    if not isinstance(engine, (LiteLLMEngine, AsyncLiteLLMEngine)):
        return lm  # a model class of the user's own
    options: dict[str, Any] = {
        "model_type": engine.model_type,
        "wire_model": engine.wire_model,
        **engine.client_options,
    }
    # DSPy wants connection settings on the engine, not on the model.
    client = dict.fromkeys(key for key in lm.kwargs if key in CLIENT_KEYS)
    engines = {"engine": Engine(sent, **options), "async_engine": AsyncEngine(sent, **options)}
    copied = lm.copy(**engines, **client)
    copied.history = lm.history
    return copied


def shown_of(chunk: Json) -> Json:
    """Return the chunk with only those fields in its deltas that lm15 has events for.

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
    """The chunks of one stream: turned into lm15's events, and kept unchanged to build the body from."""

    def __init__(self, request: lm15.Request) -> None:
        self._codec = ChatStream(request)
        self._deltas = CallDeltas()
        self._own: set[Any] = set()
        self._came: list[Any] = []

    def events(self, chunk: Any) -> Iterator[Any]:
        """Yield the events of a chunk, as far as lm15 can read it."""
        self._came.append(chunk)
        try:
            for event in self._codec.feed(self._for_the_caller(shown_of(plain(chunk)))):
                yield from self._deltas.taken(event)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return

    def _for_the_caller(self, chunk: Json) -> Json:
        """Return the chunk without calls of tools that the provider ran itself."""
        for choice in objects(chunk["choices"]):
            if choice["delta"].get("tool_calls"):
                kept = [call for call in objects(choice["delta"]["tool_calls"]) if not self._is_own(call)]
                choice["delta"]["tool_calls"] = kept
        return chunk

    def _is_own(self, call: Json) -> bool:
        if call.get("id"):
            (self._own.add if ran_itself(call["id"]) else self._own.discard)(call.get("index"))
        return call.get("index") in self._own

    def ends(self, litellm: Any, source: Any) -> Iterator[Any]:
        """Yield the end event of a stream that has run out.

        Raises:
            lm15.StreamAssemblyError: if the provider never said why the answer ended.
        """
        self._codec.chunks = self._came
        self._codec.terminal = self._codec.terminal and _came_to_its_end(source)
        try:
            end = self._codec.finish(litellm)
        except lm15.StreamAssemblyError:
            raise
        except Exception:  # noqa: BLE001  (whatever LiteLLM or lm15 refuses; the chunks are read)
            body = json.dumps(self._body())
            end = lm15.StreamEndEvent(finish_reason="stop", provider_data={BODY: body})
        else:
            end = replace(end, provider_data=with_calls(end.provider_data or {}, self._calls()))
        yield from self._deltas.taken(end)

    def _body(self) -> Json:
        return CHAT.assemble(map(plain, self._came))

    def _calls(self) -> list[Json]:
        """Return the calls that the chunks make, as the `tool_calls` of a chat message."""
        choice = an_object(next(iter(objects(self._body().get("choices"))), None))
        return objects(an_object(choice.get("message")).get("tool_calls"))


def _came_to_its_end(source: Any) -> bool:
    """Return whether the provider said why the answer ended.

    For a stream that just ends, LiteLLM makes a last chunk with the finish reason `stop`, which looks like a
    provider's. Only LiteLLM's stream object tells (measured on litellm 1.106): it keeps the finish reasons
    that the provider sent. A stream of another type is believed, and so are providers for which LiteLLM
    itself gives each chunk the reason `stop`.
    """
    kept = [getattr(source, name, _UNKNOWN) for name in _PROVIDERS_REASONS]
    return any(reason is not None for reason in kept)


class Sent(NamedTuple):
    """What these engines add to the request that DSPy's write.

    Args:
        provider: whose form the request has on its way to LiteLLM.
        fields: the provider state to add, one entry per message; empty for none.
        words: the parts in the provider's own words.
    """

    provider: Provider
    fields: Sequence[ChatFields | None] = ()
    words: Words = NO_WORDS


class _WithState:
    """The half that both engines share."""

    def __init__(self, sent: Sent, **options: Any) -> None:
        cast("Any", super()).__init__(**options)
        self._sent = sent
        self._bodies: list[str] = []

    def _arguments(self, request: lm15.Request, *, streaming: bool = False) -> Json:
        # Overrides DSPy's own method, the only place where the messages can be changed.
        data = cast("Any", super())._arguments(request, streaming=streaming)  # noqa: SLF001
        fields = self._sent.fields
        for message, extra in zip(data["messages"], fields, strict=True) if fields else ():
            if extra is not None:
                message.update(extra.message)
                for call in message.get("tool_calls", ()):
                    call.update(extra.calls.get(call["id"], {}))
        if not streaming and "logger_fn" not in data:
            self._bodies = []
            data["logger_fn"] = self._hear
        return spoken(self._sent.provider, data, self._sent.words)

    def _hear(self, details: Json) -> None:
        """Keep the provider's body, which LiteLLM logs before it reads it."""
        if details.get("log_event_type") == "post_api_call":
            self._bodies.append(str(details.get("original_response")))

    def _kept(self, request: lm15.Request, error: Exception) -> lm15.Response:
        """Return the provider's answer, if LiteLLM got one and could not read it.

        Raises:
            Exception: the same error, if there is no answer.
        """
        parse = cast("Any", super())._response  # noqa: SLF001
        for text in self._bodies:
            provider = provider_in(text)
            if provider is not None:
                kept = believed(provider, text, lambda body: parse(body, request), error)
                if kept is not None:
                    return kept
        raise error

    def _response(self, raw: Any, request: lm15.Request) -> lm15.Response:
        # Overrides DSPy's own method, the only place where the body is at hand.
        parse = cast("Any", super())._response  # noqa: SLF001
        try:
            return parse(raw, request)
        except Exception as error:
            text = json.dumps(plain(raw))
            kept = believed(self._sent.provider, text, lambda body: parse(body, request), error)
            if kept is None:
                raise
            return kept


class Engine(_WithState, LiteLLMEngine):
    """DSPy's sync LiteLLM engine, with provider state."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send the request and return the whole answer."""
        try:
            return super().complete(request)
        except Exception as error:  # noqa: BLE001  (raised again if there is no answer)
            return self._kept(request, error)

    def stream(self, request: lm15.Request) -> Generator[Any, Any, None]:
        """Yield the events of one streamed answer."""
        data = self._arguments(request, streaming=True)
        litellm, chunks = get_litellm(), _Chunks(request)
        with litellm_errors(model=request.model):
            source = litellm.completion(**data)
        with closing(source):
            came = iter(source)
            while True:
                with litellm_errors(model=request.model):
                    chunk = next(came, None)
                if chunk is None:
                    break
                yield from chunks.events(chunk)
        yield from chunks.ends(litellm, source)


class AsyncEngine(_WithState, AsyncLiteLLMEngine):
    """DSPy's async LiteLLM engine, with provider state."""

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """Send the request and return the whole answer."""
        try:
            return await super().complete(request)
        except Exception as error:  # noqa: BLE001  (raised again if there is no answer)
            return self._kept(request, error)

    async def stream(self, request: lm15.Request) -> AsyncGenerator[Any, Any]:
        """Yield the events of one streamed answer."""
        data = self._arguments(request, streaming=True)
        litellm, chunks = get_litellm(), _Chunks(request)
        with litellm_errors(model=request.model):
            source = await litellm.acompletion(**data)
        async with aclosing(source):
            came = source.__aiter__()
            while True:
                with litellm_errors(model=request.model):
                    chunk = await anext(came, None)
                if chunk is None:
                    break
                for event in chunks.events(chunk):
                    yield event
        for event in chunks.ends(litellm, source):
            yield event
