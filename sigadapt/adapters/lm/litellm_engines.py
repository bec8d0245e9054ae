"""Subclasses of DSPy's LiteLLM engines that send provider state back, and stream answers that hold it.

Sending: DSPy's engine writes OpenAI chat messages from lm15's types, which have no place for provider state.
The subclasses add the state to these messages, in the fields from which LiteLLM sends it.

Streaming: DSPy's engine refuses chunks with fields that lm15 has no event for (Claude's thinking blocks,
Gemini's thought signatures). The subclasses remove these fields from the chunks that lm15 gets. Nothing is
lost: the Choice is read from the body that LiteLLM builds from the original chunks.

A stream that just ends, because a server or a proxy closed the connection, is an error, as on DSPy's native
engine. LiteLLM would give it the finish reason `stop`, and half an answer would pass for a whole one.
"""

import hashlib
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from typing import Any, cast

import orjson
from dspy import BaseLM, lm15
from dspy.clients.engines.litellm_engine import AsyncLiteLLMEngine, LiteLLMEngine

from sigadapt.adapters.lm.dspy_internals import (
    CLIENT_KEYS,
    ChatStream,
    aclosing,
    closing,
    get_litellm,
    litellm_errors,
    plain,
)
from sigadapt.adapters.request.states import replaying
from sigadapt.providers import provider_of
from sigadapt.providers.provider import ChatFields, Route
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


def fingerprint(fields: Sequence[ChatFields | None]) -> str:
    """Return a short hash of the provider state, for the key of DSPy's cache.

    Example:
        >>> fingerprint([None]) == fingerprint([ChatFields({"reasoning_content": "Hm."}, {})])
        False
    """
    plain = [each and (each.message, each.calls) for each in fields]
    return hashlib.sha256(orjson.dumps(plain)).hexdigest()[:16]


def with_fields(lm: BaseLM, fields: Sequence[ChatFields | None]) -> BaseLM:
    """Return a copy of the model for one request, whose engines add these fields to the messages."""
    client = {key: value for key, value in lm.kwargs.items() if key in CLIENT_KEYS}
    return with_engines(lm, fields, {"model_type": lm.model_type, **client})


def with_engines(lm: BaseLM, fields: Sequence[ChatFields | None], options: dict[str, Any]) -> BaseLM:
    """Return a copy of a model that uses these engines and shares the model's history.

    Args:
        lm: the model.
        fields: the provider state to add, one entry per message; empty for none.
        options: the engines' options. DSPy wants connection settings on the engine, not on the model, so they
            are removed from the copy.
    """
    client = dict.fromkeys(key for key in lm.kwargs if key in CLIENT_KEYS)
    engines = {"engine": Engine(fields, **options), "async_engine": AsyncEngine(fields, **options)}
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
        self._came: list[Any] = []

    def events(self, chunk: Any) -> Iterator[Any]:
        self._came.append(chunk)
        yield from self._codec.feed(shown_of(plain(chunk)))

    def end(self, litellm: Any, source: Any) -> Any:
        """Return the end event of a stream that has run out.

        Raises:
            lm15.StreamAssemblyError: if the provider never said why the answer ended.
        """
        self._codec.chunks = self._came
        self._codec.terminal = self._codec.terminal and _came_to_its_end(source)
        return self._codec.finish(litellm)


def _came_to_its_end(source: Any) -> bool:
    """Return whether the provider said why the answer ended.

    For a stream that just ends, LiteLLM makes a last chunk with the finish reason `stop`, which looks like a
    provider's. Only LiteLLM's stream object tells (measured on litellm 1.106): it keeps the finish reasons
    that the provider sent. A stream of another type is believed, and so are providers for which LiteLLM
    itself gives each chunk the reason `stop`.
    """
    kept = [getattr(source, name, _UNKNOWN) for name in _PROVIDERS_REASONS]
    return any(reason is not None for reason in kept)


class _WithState:
    """The half that both engines share: it adds `fields` to a request's messages, one entry per message."""

    def __init__(self, fields: Sequence[ChatFields | None] = (), **options: Any) -> None:
        cast("Any", super()).__init__(**options)
        self._fields = fields

    def _arguments(self, request: lm15.Request, *, streaming: bool = False) -> Json:
        # Overrides DSPy's own method, the only place where the messages can be changed.
        data = cast("Any", super())._arguments(request, streaming=streaming)  # noqa: SLF001
        for message, extra in zip(data["messages"], self._fields, strict=True) if self._fields else ():
            if extra is not None:
                message.update(extra.message)
                for call in message.get("tool_calls", ()):
                    call.update(extra.calls.get(call["id"], {}))
        return data


class Engine(_WithState, LiteLLMEngine):
    """DSPy's sync LiteLLM engine, with provider state."""

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
        yield chunks.end(litellm, source)


class AsyncEngine(_WithState, AsyncLiteLLMEngine):
    """DSPy's async LiteLLM engine, with provider state."""

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
        yield chunks.end(litellm, source)
