"""Record the provider's own events of a native stream, and keep them on the Response.

Of a streamed answer, DSPy's engine keeps only the last event. The message that it assembles has lost
arguments that it could not decode, refusals, and the calls and signatures that Gemini sends in an event each.
Therefore every event is recorded. The end event's `provider_data` holds the recording, which DSPy's cache
keeps too. `response/choice.py` reads it as `choice_from_stream` reads a stream.

`exchange.py` attaches a Recorder to the provider of one request.
"""

import copy
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import orjson
from dspy import LMStreamAssemblyError, lm15

from sigadapt.adapters.lm.dspy_internals import inner_of
from sigadapt.adapters.lm.from_lm15 import body_of_parts
from sigadapt.adapters.response.stream_events import EVENTS, server_sent
from sigadapt.providers.reading import an_object, objects
from sigadapt.schemas.json_values import Json

_Parse = Callable[[Any, Any], Iterator[Any]]


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
    return replace(response, provider_data={**body, EVENTS: server_sent([orjson.dumps(whole).decode()])})


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
                error.partial, provider_data={EVENTS: server_sent([orjson.dumps(chunk).decode()])}
            )
        raise


def _sent(calls: list[Json]) -> list[Any]:
    parts = [an_object(call.get("function") or call.get("custom")) for call in calls]
    return [(part.get("name"), part.get("arguments"), part.get("input")) for part in parts]


class Recorder:
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
        data = {**(event.provider_data or {}), EVENTS: server_sent(self._texts)}
        finish: Any = self._finish or event.finish_reason
        return replace(event, finish_reason=finish, provider_data=data)
