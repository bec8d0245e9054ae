"""The chunks of a stream over LiteLLM.

DSPy's engine refuses chunks with fields that lm15 has no event for (Claude's thinking blocks, Gemini's
signatures), so lm15 does not get these fields. The Choice is read from the chunks, as from any stream in the
chat format. A stream that just ends is an error, as on DSPy's native engine. LiteLLM would give it the finish
reason `stop`, and half an answer would pass for a whole one.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from dspy import lm15

from sigadapt.adapters.lm.stream_recorder import CallDeltas
from sigadapt.adapters.response.response_bodies import events_of
from sigadapt.dspy_boundary.contract import plain
from sigadapt.dspy_boundary.internals import ChatStream
from sigadapt.errors import UnreadableResponse
from sigadapt.json_values import Json, is_object
from sigadapt.providers import CHAT
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.reading import Reading
from sigadapt.providers.wire.values import an_object, objects
from sigadapt.schemas.arguments import CutOff, parse_arguments

_UNKNOWN = object()
_NATIVE_END = "native_finish_reason"
_BESIDE = "provider_specific_fields"
_FIELDS = ("role", "content", "reasoning_content", "reasoning", "tool_calls")


def with_cut_call(body: Json, wire: Provider, finish: str | None = None) -> Json:
    """Return a chat body whose last call has its arguments as an object, if the answer was cut off in it."""
    # A provider that sends arguments as objects closes those that it cut. LiteLLM writes them as text, which
    # looks like the model's own. `finish` is the provider's finish reason, if LiteLLM wrote another one.
    if not wire.arguments_as_objects:
        return body
    choice = first_choice(body)
    whole = {**body, "choices": [{**choice, "finish_reason": finish or choice.get("finish_reason")}]}
    calls = objects(an_object(choice.get("message")).get("tool_calls"))
    if not calls or not any(type(arguments) is CutOff for _, _, arguments in CHAT.read(whole)[0].calls[-1:]):
        return body
    function = an_object(calls[-1].get("function"))
    whole_function = {**function, "arguments": parse_arguments(str(function.get("arguments")))}
    if not is_object(whole_function["arguments"]):
        return body
    message = {**choice["message"], "tool_calls": [*calls[:-1], {**calls[-1], "function": whole_function}]}
    return {**whole, "choices": [{**whole["choices"][0], "message": message}]}


def with_native_end(body: Json, choice: Json) -> Json:
    """Return LiteLLM's body with what a gateway says of the end in its choice, which LiteLLM leaves out."""
    read = first_choice(body)
    word = choice.get(_NATIVE_END) or an_object(choice.get(_BESIDE)).get(_NATIVE_END)
    if not read or not word:
        return body
    if not read.get(_NATIVE_END):
        return {**body, "choices": [{**read, _NATIVE_END: word}]}
    fields = {**an_object(read.get(_BESIDE)), _NATIVE_END: word}
    return {**body, "choices": [{**read, _BESIDE: fields}]}


def first_choice(body: Json) -> Json:
    """Return the first choice of a body; an empty object if it has none."""
    return an_object(next(iter(objects(body.get("choices"))), None))


class Chunks:
    """The chunks of one stream: turned into lm15's events, and kept unchanged to build the body from."""

    def __init__(self, request: lm15.Request, wire: Provider) -> None:
        self._codec = ChatStream(request)
        self._deltas = CallDeltas()
        self._server_calls: set[Any] = set()
        self._chunks: list[Any] = []
        self._wire = wire
        self._lines: list[str] = []
        self._ending: Json = {}

    def listen_to(self, source: Any) -> Any:
        """Return LiteLLM's stream, of which the provider's own lines are kept where LiteLLM reads lines."""
        # LiteLLM opens some streams only when the first chunk is asked for, with `make_call`.
        stream = getattr(source, "completion_stream", None)
        if stream is not None:
            source.completion_stream = self._listen(stream)
        elif getattr(source, "make_call", None) is not None:
            source.make_call = partial(self._make_call, source.make_call)
        return source

    def _make_call(self, make_call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        stream = make_call(*args, **options)
        return self._listen_later(stream) if inspect.isawaitable(stream) else self._listen(stream)

    async def _listen_later(self, stream: Awaitable[Any]) -> Any:
        return self._listen(await stream)

    def _listen(self, stream: Any) -> Any:
        if not hasattr(stream, "streaming_response"):
            return _shown(stream, self._keep_ending)
        stream.streaming_response = _shown(stream.streaming_response, self._keep_line)
        return stream

    def _keep_line(self, line: Any) -> None:
        if isinstance(line, str):
            self._lines.append(line)

    def _keep_ending(self, chunk: Any) -> None:
        """Keep what a gateway says of the end beside its finish reason, which LiteLLM leaves out."""
        for choice in list(getattr(chunk, "choices", None) or ())[:1]:
            if getattr(choice, "finish_reason", None) is not None:
                self._ending = an_object(plain(choice))

    def events(self, chunk: Any) -> Iterator[Any]:
        """Yield the events of a chunk, as far as lm15 can read it."""
        self._chunks.append(chunk)
        try:
            body = plain(chunk)
            choices = objects(body.get("choices"))
            visible = [{**choice, "delta": self._visible(choice.get("delta"))} for choice in choices]
            for event in self._codec.feed({**body, "choices": visible}):
                yield from self._deltas.events_of(event)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return

    def _visible(self, delta: Any) -> Json:
        """Return of a delta what lm15 has events for, without calls of tools that the provider ran itself."""
        fields = an_object(delta)
        visible = {key: fields[key] for key in _FIELDS if key in fields}
        if calls := objects(visible.get("tool_calls")):
            visible["tool_calls"] = [call for call in calls if not self._is_own(call)]
        citation = an_object(fields.get("provider_specific_fields")).get("citation")
        return {**visible, "provider_specific_fields": {"citation": citation}} if citation else visible

    def _is_own(self, call: Json) -> bool:
        if call.get("id"):
            is_own = CHAT.ran_itself(call["id"])  # a chunk is chat, whatever wire LiteLLM speaks
            change = self._server_calls.add if is_own else self._server_calls.discard
            change(call.get("index"))
        return call.get("index") in self._server_calls

    def ends(self, litellm: Any, source: Any) -> Iterator[Any]:
        """Yield the end event of a stream that has run out, or raise if the provider never said why."""
        self._codec.chunks = self._chunks
        self._codec.terminal = self._codec.terminal and self._is_complete(source)
        body = CHAT.assemble(map(plain, self._chunks))
        try:
            end = self._codec.finish(litellm)
        except lm15.StreamAssemblyError:
            raise
        except Exception:  # whatever LiteLLM or lm15 refuses; the chunks are read
            end = lm15.StreamEndEvent(finish_reason="stop")
        else:  # only LiteLLM counts the tokens of a server that counts none
            body["usage"] = (end.provider_data or {}).get("usage")
        for ending in ({_NATIVE_END: getattr(source, "received_finish_reason", None)}, self._ending):
            body = with_native_end(body, ending)
        readings = self._own_readings()
        if readings and readings[0].finish:
            body = with_cut_call(body, self._wire, readings[0].finish)
        end = replace(end, provider_data=body)
        yield from self._deltas.events_of(end)

    def _is_complete(self, source: Any) -> bool:
        """Return whether the provider said why the answer ended."""
        # For a stream that just ends, LiteLLM makes a last chunk with the finish reason `stop`, which looks
        # like a provider's. LiteLLM's stream object keeps the finish reasons that the provider sent (measured
        # on litellm 1.106). For some providers LiteLLM itself gives each chunk the reason `stop`. Then the
        # provider's own lines are read. A stream of another type is believed.
        if getattr(source, "received_finish_reason", None) is not None:
            return True
        finish = getattr(source, "intermittent_finish_reason", _UNKNOWN)
        readings = self._own_readings() if finish is not None else None
        if readings is not None:
            return any(reading.finish is not None for reading in readings)
        return finish is not None

    def _own_readings(self) -> list[Reading] | None:
        """Return what the provider's own lines say; None if there are none, or they are not its events."""
        try:
            events = events_of("\n\n".join(self._lines))
        except UnreadableResponse:
            return None
        provider_events = [event for event in events if self._wire.is_event(event)]
        return self._wire.read(self._wire.assemble(provider_events)) if provider_events else None


class _Chunks:
    """What LiteLLM reads of a stream, chunks of an SDK or lines, each shown to a function before."""

    def __init__(self, chunks: Any, show: Callable[[Any], None]) -> None:
        self._chunks = chunks
        self._show = show

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chunks, name)

    def _pass_on(self, chunk: Any) -> Any:
        self._show(chunk)
        return chunk


class _SyncChunks(_Chunks):
    def __iter__(self) -> "_SyncChunks":
        self._chunks = iter(self._chunks)
        return self

    def __next__(self) -> Any:
        return self._pass_on(next(self._chunks))


class _AsyncChunks(_Chunks):
    def __aiter__(self) -> "_AsyncChunks":
        self._chunks = aiter(self._chunks)
        return self

    async def __anext__(self) -> Any:
        return self._pass_on(await anext(self._chunks))


def _shown(chunks: Any, show: Callable[[Any], None]) -> Any:
    """Return chunks that are shown to a function; what is no iterator stays as it is."""
    # LiteLLM asks whether a stream is async, so that one class cannot be both.
    if hasattr(chunks, "__aiter__"):
        return _AsyncChunks(chunks, show)
    return _SyncChunks(chunks, show) if hasattr(chunks, "__iter__") else chunks
