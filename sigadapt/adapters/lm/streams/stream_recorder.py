"""Record the provider's own events of a native stream, and keep them on the Response.

DSPy's engine keeps only the last event of a streamed answer, and its message has lost arguments that it could
not decode, refusals, and what Gemini sends in an event each. So the end event's `provider_data` holds every
event, which DSPy's cache keeps too, and `response/choice.py` reads it as `choice_from_stream` reads a stream.
An error after text, a call or a finish reason ends the answer, and the Choice says how: lm15 would raise it,
and what came would be lost.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import orjson
from dspy import LMStreamAssemblyError, lm15

from sigadapt.adapters.lm.errors_in_answers import error_event
from sigadapt.adapters.lm.streams.call_deltas import CallDeltas
from sigadapt.adapters.lm.streams.long_events import LongEvents
from sigadapt.adapters.response.provider_errors import is_rate_limit, until_error
from sigadapt.adapters.response.response_bodies import body_of_parts
from sigadapt.adapters.response.stream_events import BODY, EVENTS, events_of, server_sent
from sigadapt.dspy_boundary.internals import Lm15Provider, with_methods
from sigadapt.errors import UnreadableResponse
from sigadapt.providers.provider import Provider, Reading
from sigadapt.providers.wire.values import an_object, objects
from sigadapt.schemas.json_values import Json

_Parse = Callable[[Any, Any], Iterator[Any]]


def with_calls(body: Json, calls: list[Json]) -> Json:
    """Return a streamed answer's `provider_data`, with the calls of its chunks if LiteLLM changed them."""
    # LiteLLM joins fragments by their index, which is the same for all calls of an Ollama stream, and fills
    # in empty arguments.
    choice = an_object(next(iter(objects(body.get("choices"))), None))
    message = an_object(choice.get("message"))
    if not message or _identities(calls) == _identities(objects(message.get("tool_calls"))):
        return body
    whole = {**body, "choices": [{**choice, "message": {**message, "tool_calls": calls}}]}
    return {**body, BODY: orjson.dumps(whole).decode()}


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
                error.partial, provider_data={EVENTS: server_sent([orjson.dumps(chunk).decode()])}
            )
        raise


def _identities(calls: list[Json]) -> list[Any]:
    return [(call.get("id"), call.get("function"), call.get("custom")) for call in calls]


class Recorder:
    """The recorded events of one stream, and what lm15 gets of them.

    An event that lm15 cannot read is recorded and passed over. So are the arguments of a call without a
    name (`call_deltas.py`): of a tool that the provider ran itself, of a custom tool, or of a bad call.
    """

    def __init__(self, provider: Provider, asked: Lm15Provider, model: str) -> None:
        self._provider = provider
        self._model = model
        self._long = LongEvents(asked.transport)
        self.asked: Any = with_methods(asked, {"parse_stream_events": self._parse_and_record})
        self.asked.transport = self._long
        self._texts: list[str] = []
        self._finish: str | None = None
        self._deltas = CallDeltas()
        self._is_started = self._is_ended = self._is_failed = False

    def _parse_and_record(self, parse: _Parse, request: Any, event: Any) -> Iterator[Any]:
        text = self._long.text_of(event.data)
        if text:
            self._texts.append(text)
        try:
            for each in parse(request, self._known(replace(event, data=text))):
                if isinstance(each, lm15.StreamErrorEvent):
                    if any(not answer.is_empty or answer.finish for answer in self._readings()):
                        self._is_failed = True  # the Choice says what came, and how it ended
                        return
                    if is_rate_limit({"code": each.error.provider_code}):  # lm15 knows some of their codes
                        yield replace(each, error=replace(each.error, code="rate_limit"))
                        return
                yield from self._deltas.taken(each)
        except Exception:  # noqa: BLE001, S110  (whatever lm15 cannot read; the answer is read from the recording)
            pass

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
        self._is_started = self._is_started or event.type == "start"
        if not isinstance(event, lm15.StreamEndEvent):
            return event
        self._is_ended = True
        finish: Any = self._finish or event.finish_reason
        return replace(event, finish_reason=finish, provider_data=self._recorded_in(event.provider_data))

    def whole(self, response: lm15.Response) -> lm15.Response:
        """Return the Response of a request that lm15 streams of its own accord, to cut the text at a stop."""
        if not self._texts or not self._came_to_its_end():
            return response
        return replace(response, provider_data=self._recorded_in(response.provider_data))

    def _recorded_in(self, data: Any) -> Json:
        return {**(data or {}), EVENTS: server_sent(self._texts)}

    def rest(self) -> Iterator[Any]:
        """Yield the end event of a stream that has ended, where lm15 did not see that."""
        if self._is_ended or not self._came_to_its_end():
            return
        if not self._is_started:
            yield lm15.StreamStartEvent(model=self._model)
        yield from self._deltas.last()
        for reading in self._readings():
            if reading.is_empty and is_rate_limit(reading.error):
                yield error_event(reading.error)
                return
        yield self.with_events(lm15.StreamEndEvent(finish_reason="stop"))

    def _came_to_its_end(self) -> bool:
        return self._is_failed or any(reading.finish is not None for reading in self._readings())

    def _readings(self) -> list[Reading]:
        """Return what the events before the first error say; nothing if they cannot be read."""
        try:
            events = [body for body in events_of(server_sent(self._texts)) if self._provider.is_event(body)]
        except UnreadableResponse:  # lm15's error stands
            return []
        events, _ = until_error(events, self._provider)
        return self._provider.read(self._provider.assemble(events)) if events else []
