"""One native stream: the provider's lines become events, which are kept, decoded once, and given to lm15.

DSPy's engine keeps only the last event of a streamed answer, and its message has lost arguments that it could
not decode, refusals, and what Gemini sends in an event each. So the end event's `provider_data` holds the
text of all events, which DSPy's cache keeps too. `response/choice.py` reads it as `choice_from_stream` reads
a stream; the call that streamed it reads the events decoded here.

lm15 gets what it can read. Upstream limits (dspy 3.4.1) and what stands here instead:

 a. It reads lines of 64 KiB and events of 1 MiB. The last event of a Responses stream holds the whole answer,
    and an event of Gemini may hold a picture. A longer event goes by a short one, which has its name.
 b. It ends lines at LF alone, where the WHATWG standard also has CR.
 c. It takes a body in the place of a stream for a stream without events. Here the body is the answer, an
    error is raised as one, and anything else is an error that quotes it.
 d. It does not know every event (`Provider.event_for_lm15`), and of rate limits it knows some codes.
 e. It raises what it cannot read, and an error in the middle of an answer. Here the answer is read from the
    events; an error after text, a call or a finish reason ends it, and the Choice says how.

It refuses a whole answer because of one call without a name, or with a number that JSON has not (`1e999`). So
it gets of the calls what it can put together; the calls themselves are read from the events. Two texts of an
answer that something else separates get a blank line between them, as in the whole answer: lm15 numbers the
blocks, DSPy's chunks have no such numbers, and a listener would find no mark that begins the second.
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import replace
from typing import Any

import jiter
import orjson
from dspy import LMStreamAssemblyError, lm15

from sigadapt.adapters.lm.errors_in_answers import error_event, refuse_error
from sigadapt.adapters.response.choice import provider_of_stream
from sigadapt.adapters.response.response_bodies import (
    EVENTS,
    body_of_parts,
    data_of,
    events_of,
    is_rate_limit,
    until_error,
)
from sigadapt.dspy_boundary.internals import Lm15Provider, with_methods
from sigadapt.errors import UnreadableResponse
from sigadapt.json_values import Json, cut
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.reading import Reading
from sigadapt.providers.wire.values import an_object, objects
from sigadapt.schemas.arguments import parse_arguments

LONGEST = 32 * 1024 * 1024
"""The most bytes that an event, or a body in the place of a stream, may have."""

_LM15_READS = 48 * 1024  # bytes of an event that lm15 is sure to read: below the limit for one line
_BOM = b"\xef\xbb\xbf"
_FIELD = re.compile(rb"(data|event|id|retry)?(:|\s*$)")  # the beginning of a line of a stream

_Parse = Callable[[Any, Any], Iterator[Any]]


class Recorder:
    """The lines of one stream, its events, and what lm15 gets of them. Also its transport, as lm15 sees it.

    `events` are the decoded events; None if the text of one is not JSON.
    """

    def __init__(self, provider: Provider, lm15_provider: Lm15Provider, model: str) -> None:
        self.provider = provider
        self.events: list[Json] | None = []
        self._model = model
        self._transport = lm15_provider.transport
        self.lm15_provider: Any = with_methods(lm15_provider, {"parse_stream_events": self._parse})
        self.lm15_provider.transport = self
        self._texts: list[str] = []
        self._latest: list[Json] = []  # the events of the latest text
        self._lines: list[bytes] = []  # of one event, as far as they have arrived
        self._size = 0
        self._long: dict[str, str] = {}  # the data of long events by the names that lm15 gets
        self._is_body: bool | None = None  # None before the first line
        self._deltas = CallDeltas()
        self._paragraphs = Paragraphs(self._readings if provider.marks_commentary else None)
        self._finish: str | None = None
        self._is_started = self._is_ended = self._is_failed = self._is_done = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    # What the engine calls

    def events_of(self, request: lm15.Request) -> Generator[Any, None, None]:
        """Send the request and yield lm15's events."""
        with closing(self.lm15_provider.stream(request)) as events:
            for event in events:
                yield event if event.type == "delta" else self._with_recording(event)
        yield from self._rest()

    async def aevents_of(self, request: lm15.Request) -> AsyncGenerator[Any, None]:
        """Send the request and yield lm15's events."""
        async with aclosing(self.lm15_provider.stream(request)) as events:
            async for event in events:
                yield event if event.type == "delta" else self._with_recording(event)
        for event in self._rest():
            yield event

    def whole(self, response: lm15.Response) -> lm15.Response:
        """Return the Response of a request that lm15 streams of its own accord, to cut the text at a stop."""
        if not self._texts or not self._came_to_its_end():
            return response
        return replace(response, provider_data=self._recorded_in(response.provider_data))

    # Lines, as a transport of lm15: sync or async, with one response

    def stream(self, request: Any) -> Any:
        """Return the context of a response, as lm15's transport does."""
        opening = self._transport.stream(request)
        return self._aopen(opening) if hasattr(opening, "__aenter__") else self._open(opening)

    @contextmanager
    def _open(self, opening: Any) -> Generator[Any]:
        with opening as response:
            lines = response.iter_lines()
            response.iter_lines = lambda: self._lines_for_lm15(lines)
            yield response

    @asynccontextmanager
    async def _aopen(self, opening: Any) -> AsyncGenerator[Any]:
        async with opening as response:
            lines = response.aiter_lines()
            response.aiter_lines = lambda: self._alines_for_lm15(lines)
            yield response

    def _lines_for_lm15(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        for line in lines:
            yield from self.take(line)
        yield from self._end_event()

    async def _alines_for_lm15(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            for each in self.take(line):
                yield each
        for each in self._end_event():
            yield each

    def take(self, line: bytes) -> list[bytes]:
        """Return the lines for lm15 after this one: those of the event that it ends."""
        if self._is_body is None:
            line = line.removeprefix(_BOM)
            if not line.strip():
                return []
            self._is_body = _FIELD.match(line) is None
        if b"\r" in line[:-2] and not self._is_body:
            return [each for part in line.splitlines(keepends=True) for each in self.take(part)]
        self._lines.append(line)
        self._size += len(line)
        if self._size > LONGEST:
            raise lm15.ProviderError(f"an event of the stream is longer than {LONGEST >> 20} MiB")
        return [] if self._is_body or line.strip(b"\r\n") else self._end_event()

    def _end_event(self) -> list[bytes]:
        """Return the lines of the event that has ended, or of the short one that stands for it."""
        if self._is_body:
            return []  # `_rest` reads it
        lines = self._lines
        size = self._size
        self._lines = []
        self._size = 0
        if size <= _LM15_READS:
            return lines
        texts = [line.decode("utf-8", "replace").rstrip("\r\n") for line in lines]
        data = [text.removeprefix("data:").removeprefix(" ") for text in texts if text.startswith("data:")]
        if not data:
            return [b"\n"]  # a comment, or an event without data
        name = f"sigadapt long event {len(self._long)}"
        self._long[name] = "\n".join(data)
        others = [line for line in lines if line.startswith(b"event:") and len(line) < _LM15_READS]
        return [*others, f"data: {name}\n".encode(), b"\n"]

    # Events

    def _parse(self, parse: _Parse, request: Any, event: Any) -> list[Any]:
        """Keep an event, and return what lm15 makes of it, up to what it cannot read."""
        text = self._long.pop(event.data, event.data)
        if text:
            self._keep(text)
        readable: list[Any] = []
        with suppress(Exception):  # the answer is read from the events
            for each in parse(request, self._for_lm15(event, text)):
                readable.append(each)  # noqa: PERF402  (what came before an error counts)
        events: list[Any] = []
        for each in readable:
            if each.type == "error":
                if any(not answer.is_empty or answer.finish for answer in self._readings()):
                    self._is_failed = True
                    break
                if is_rate_limit({"code": each.error.provider_code}):
                    events.append(replace(each, error=replace(each.error, code="rate_limit")))
                    break
            if each.type == "start":
                events.append(each)
                continue
            if each.type == "delta" and each.delta.type != "tool_call":
                events += [*self._paragraphs.breaks_before(each.delta), each]
                continue
            own = with_own_id(each, self._latest, self.provider.id_key) if self._latest else each
            events += self._deltas.events_of(own)
        return events

    def _keep(self, text: str) -> None:
        self._texts.append(text)
        self._latest = []
        if self.events is None or self._is_done:
            return
        if text.strip() == "[DONE]":
            self._is_done = True
            return
        value: Any = None
        with suppress(ValueError):  # several values, half of a surrogate pair, or no JSON
            value = jiter.from_json(text.encode())
        try:
            self._latest = [value] if value.__class__ is dict else data_of(text)
        except UnreadableResponse:
            self.events = None
            return
        self.events += self._latest

    def _for_lm15(self, event: Any, text: str) -> Any:
        """Return the event as lm15 knows it."""
        unknown = self.provider.not_of_lm15
        if unknown and self._latest and self._latest[-1].get("type") == unknown:
            body, self._finish = self.provider.event_for_lm15(self._latest[-1])
            return replace(event, data=orjson.dumps(body).decode())
        return event if text is event.data else replace(event, data=text)

    def _with_recording(self, event: Any) -> Any:
        """Return the event; the end event with the recording in its `provider_data`."""
        self._is_started = self._is_started or event.type == "start"
        if event.type != "end":
            return event
        self._is_ended = True
        events = self.events
        if events and not any(map(self.provider.is_event, events)) and provider_of_stream(events) is None:
            refuse_error(events[-1], self.provider)
        finish: Any = self._finish or event.finish_reason
        return replace(event, finish_reason=finish, provider_data=self._recorded_in(event.provider_data))

    def _recorded_in(self, data: Any) -> Json:
        return {**(data or {}), EVENTS: _server_sent(self._texts)}

    def _rest(self) -> Iterator[Any]:
        """Yield the rest of a stream that has ended, where lm15 did not see that, or no stream came."""
        if self._is_ended:
            return
        if self._is_body:
            self._read_body(b"".join(self._lines).decode("utf-8", "surrogateescape"))
        elif not self._came_to_its_end():
            return
        if not self._is_started:
            yield lm15.StreamStartEvent(model=self._model)
        yield from self._deltas.last()
        for reading in self._readings():
            if reading.is_empty and is_rate_limit(reading.error):
                yield error_event(reading.error)
                return
            if self._is_body and reading.text:
                yield lm15.StreamDeltaEvent(delta=lm15.TextDelta(text=reading.text))
        yield self._with_recording(lm15.StreamEndEvent(finish_reason="stop"))

    def _read_body(self, text: str) -> None:
        """Read a body in the place of a stream, or raise the error that it holds or is."""
        self._texts = [text]
        try:
            self.events = events_of(text)
        except UnreadableResponse:
            self.events = []
        for body in self.events:
            refuse_error(body, self.provider)
        if not self.events:
            raise lm15.ServerError(f"expected a stream, got neither events nor JSON: {cut(text.strip())}")

    def _came_to_its_end(self) -> bool:
        readings = self._readings()
        if any(reading.finish is not None for reading in readings):
            return True
        has_failed = self._is_failed or until_error(self.events or (), self.provider)[1] is not None
        return has_failed and any(not reading.is_empty for reading in readings)

    def _readings(self) -> list[Reading]:
        """Return what the events before the first error say; nothing if they cannot be read."""
        events, _ = until_error(self._own(self.events or ()), self.provider)
        return self.provider.read(self.provider.assemble(events)) if events else []

    def _own(self, events: Iterable[Json]) -> list[Json]:
        return [event for event in events if self.provider.is_event(event)]


def _server_sent(texts: list[str]) -> str:
    """Return the data of events as the text of server-sent events."""
    lines = (text.replace("\n", "\ndata: ") for text in texts)
    return "".join(f"data: {line}\n\n" for line in lines)


@contextmanager
def with_partial_marked(calls: Callable[[], list[Json]]) -> Generator[None, None, None]:
    """Let the partial Response of a stream that just ended say that it did not end."""
    # DSPy raises an `LMStreamAssemblyError` whose `partial` is a Response with a finish reason like any
    # other. `choice_from_response` then reads that Response as a broken stream: no finish reason, calls cut
    # off.
    try:
        yield
    except LMStreamAssemblyError as error:
        if isinstance(error.partial, lm15.Response):
            whole = an_object(objects(body_of_parts(error.partial, None)["choices"])[0].get("message"))
            chunk = {"choices": [{"message": {**whole, "tool_calls": calls()}}]}
            error.partial = replace(
                error.partial, provider_data={EVENTS: _server_sent([orjson.dumps(chunk).decode()])}
            )
        raise


NOT_JSON = "\0 no JSON"
"""A last fragment that makes lm15 keep the arguments as text. `CallTap` passes it over."""


def with_own_id(event: Any, sent: Any, key: str) -> Any:
    """Return an event of lm15 without the id of a call, unless what was sent has it under a key."""
    # lm15 takes the id of OpenAI's item for that of its call if there is none, and makes a text of any value.
    # The prediction's call has an id that is made, and each piece of it has to have the same.
    if event.type != "delta" or event.delta.type != "tool_call" or not event.delta.id:
        return event
    if _holds(sent, key, event.delta.id):
        return event
    return replace(event, delta=replace(event.delta, id=None))


def _holds(sent: Any, key: str, call_id: str) -> bool:
    """Return whether JSON has a member of this key and value."""
    pending: list[Any] = [sent]
    while pending:
        value = pending.pop()
        if value.__class__ is list:
            pending += value
        elif value.__class__ is dict:
            if value.get(key) == call_id:
                return True
            pending += value.values()
    return False


class CallDeltas:
    """The deltas of one stream's calls."""

    def __init__(self) -> None:
        self._unnamed: dict[int, list[Any]] = {}
        self._pieces: dict[int, list[str]] = {}

    def events_of(self, event: Any) -> list[Any]:
        """Return an event of lm15; the arguments of a call only when it has got its name."""
        if event.type == "end":
            return [*self.last(), event]
        delta: Any = event.delta if event.type == "delta" else None
        if delta is None or delta.type != "tool_call":
            return [event]
        if not delta.name and delta.part_index not in self._pieces:
            self._unnamed.setdefault(delta.part_index, []).append(event)
            return []
        events = [*self._unnamed.pop(delta.part_index, ()), event]
        self._pieces.setdefault(delta.part_index, []).extend(each.delta.input for each in events)
        return events

    def last(self) -> Iterator[Any]:
        """Yield what has to come before the end event, once."""
        pieces = self._pieces
        self._pieces = {}
        for index, texts in pieces.items():
            if any(texts) and not isinstance(parse_arguments("".join(texts)), dict):
                yield lm15.StreamDeltaEvent(delta=lm15.ToolCallDelta(input=NOT_JSON, part_index=index))


class Paragraphs:
    """The texts of one stream.

    Args:
        said_so_far: returns what has been read of the answer, for a provider that marks commentary, which is
            another text than the answer; None for any other.
    """

    def __init__(self, said_so_far: Callable[[], list[Reading]] | None) -> None:
        self._said_so_far = said_so_far
        self._block: int | None = None  # of the latest text

    def breaks_before(self, delta: Any) -> Iterator[Any]:
        """Yield the blank line before a delta of lm15, if its text begins a paragraph."""
        if delta.type != "text" or not delta.text:
            return
        block = self._block
        self._block = delta.part_index
        if block is None or delta.part_index <= block:
            return
        if delta.part_index > block + 1 or self._is_beside_commentary():
            yield lm15.StreamDeltaEvent(delta=lm15.TextDelta("\n\n", part_index=delta.part_index))

    def _is_beside_commentary(self) -> bool:
        if self._said_so_far is None:
            return False
        return any(reading.commentary and reading.text for reading in self._said_so_far())
