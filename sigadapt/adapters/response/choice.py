"""What the model answered, in one form for every provider: Choice, and how responses and streams become one.

A response passes three stages: the plain body it holds (`response_bodies`), the Reading that its provider's
file makes of that (`providers/`), and the Choice with its calls decoded and typed (`typed_calls`). A stream
is assembled to the body it amounts to first (`stream_events`, and each provider's `assemble`). Rules it
enforces:

 a. Never an error for a bad call: that is an `InvalidToolCall` with its code (rule 3).
 b. `UnreadableResponse` only where there is no answer: an unknown shape, or an error and nothing else. An
    error that breaks into an answer leaves what was said, and the finish reason `error`.
 c. A stream that ends early leaves what was said, without a finish reason; calls it may have cut are bad
    ones.
 d. An answer with calls for the caller whose wire says plain `stop` ended with `tool_calls`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sigadapt.adapters.lm.from_lm15 import as_shown, body_of_parts, if_whole, is_lm15
from sigadapt.adapters.response.provider_errors import complaint_in, error_in, until_error
from sigadapt.adapters.response.response_bodies import body_of, chat_body
from sigadapt.adapters.response.stream_events import EVENTS, events_of
from sigadapt.adapters.response.typed_calls import typed_calls
from sigadapt.errors import UnreadableResponse
from sigadapt.providers import PROVIDERS, named
from sigadapt.providers.provider import Provider, Reading
from sigadapt.schemas.json_values import Json, cut
from sigadapt.signatures.calls import ToolCalls

_CHAT = PROVIDERS[0]


@dataclass(frozen=True, slots=True)
class Choice:
    """One candidate of a model's answer. Two are equal where they say the same, whatever `raw` holds.

    Args:
        text: what the model said to the user, refusals included; None where it said nothing.
        tool_calls: the calls it made, good and bad; None where it made none.
        reasoning: the thinking that the provider showed.
        finish_reason: `stop`, `tool_calls`, `length`, `content_filter` or `error`, else the provider's word;
            None where it gave none.
        raw: what was read, untouched; of an iterator of events, the list of them.
    """

    text: str | None = None
    tool_calls: ToolCalls | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    raw: Any = field(default=None, repr=False, compare=False)


def choice_from_response(response: Any, *, dialect: str | None = None) -> Choice:
    """Read one answer of any provider; of several candidates the first.

    Args:
        response: a body (dict), an SDK's response object (openai, anthropic, google-genai, ollama,
            LiteLLM), a `dspy.lm15.Response`, or DSPy's legacy output (a text, or a dict with `text`).
        dialect: the wire format, where it should not be found out from the body.

    Returns:
        The choice. A call that cannot be used is among `tool_calls.invalid`, with its code.

    Raises:
        UnreadableResponse: if this is not a model response, or an error and no answer; the reason says which
            error.
        InvalidOption: for an unknown dialect.

    Example:
        >>> body = {
        ...     "type": "message",
        ...     "stop_reason": "tool_use",
        ...     "content": [
        ...         {"type": "text", "text": "Let me look."},
        ...         {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Paris"}},
        ...     ],
        ... }
        >>> choice = choice_from_response(body)
        >>> choice.text, choice.tool_calls, choice.finish_reason
        ('Let me look.', ToolCalls([get_weather(city='Paris')]), 'tool_calls')
    """
    return choice_of(readings_of(response, dialect)[0], response)


def choices_from_response(response: Any, *, dialect: str | None = None) -> list[Choice]:
    """Read all candidates of an answer, in the provider's order; else as `choice_from_response`.

    Example:
        >>> body = {"choices": [{"message": {"content": "Yes."}}, {"message": {"content": "No."}}]}
        >>> [choice.text for choice in choices_from_response(body)]
        ['Yes.', 'No.']
    """
    return [choice_of(reading, response) for reading in readings_of(response, dialect)]


def choice_from_stream(events: str | bytes | Iterable[Any], *, dialect: str | None = None) -> Choice:
    r"""Read a streamed answer whole; the same choice as the unstreamed answer gives.

    Args:
        events: the stream's text or bytes (server-sent events, NDJSON, a JSON array), pieces of it cut
            anywhere, or its events as dicts or an SDK's objects.
        dialect: the wire format, where it should not be found out from the events.

    Returns:
        The choice; of several candidates the first. Arguments that came as text are kept as that text.

    Raises:
        UnreadableResponse: if these are not events of a known wire format, or an error and no answer.
        InvalidOption: for an unknown dialect.

    Example:
        >>> first, second = (
        ...     {"delta": {"content": "Hel"}},
        ...     {"delta": {"content": "lo"}, "finish_reason": "stop"},
        ... )
        >>> choice_from_stream([{"choices": [first]}, {"choices": [second]}]).text
        'Hello'
    """
    given = events_of(events)
    raw = events if isinstance(events, (str, bytes, list)) else given
    return choice_of(_stream_readings([body_of(event) for event in given], dialect)[0], raw)


def choice_of(
    reading: Reading, raw: Any, taken: Collection[str] = (), answered: Collection[str] = ()
) -> Choice:
    """Make the choice of one candidate.

    Args:
        reading: the candidate.
        raw: what it was read from.
        taken: ids that its calls must not be given anew; see `typed_calls`.
        answered: ids that none of its calls may have; likewise.
    """
    calls = typed_calls(reading, taken, answered)
    finish = "tool_calls" if calls is not None and reading.finish == "stop" else reading.finish
    return Choice(reading.text, calls, reading.reasoning, finish, raw)


def readings_of(response: Any, dialect: str | None = None) -> list[Reading]:
    """Read every candidate of an answer.

    Raises:
        UnreadableResponse: as `choice_from_response`.
        InvalidOption: likewise.
    """
    if type(response) is not dict and is_lm15(response):
        return [_lm15_reading(response, dialect)]
    body = body_of(response)
    provider = _provider_of(body, dialect)
    if provider is None:
        if "text" in body and dialect is None:
            return _CHAT.read(chat_body(body))
        raise _unreadable(body, dialect)
    readings = provider.read(body)
    if not readings or (body.get("error") and not _says_something(readings)):
        raise _unreadable(body, dialect)
    return readings


def _lm15_reading(response: Any, dialect: str | None) -> Reading:
    body: Json = response.provider_data or {}
    if EVENTS in body:
        return as_shown(_stream_readings(events_of(body[EVENTS]), dialect)[0], response)
    provider = _provider_of(body, dialect)
    readings = provider.read(body) if provider else []
    whole = if_whole(readings[0], response) if readings else None
    if whole is not None:
        return whole
    provider = _stream_provider_of([body], dialect)
    last = provider.read(provider.assemble([body])) if provider else []
    return _CHAT.read(body_of_parts(response, last[0].finish if last else None))[0]


def _stream_readings(events: Sequence[Json], dialect: str | None) -> list[Reading]:
    answered, error = until_error(events)
    provider = _stream_provider_of(answered, dialect)
    if provider is None:
        if len(answered) == 1 and error is None:  # an answer that was not streamed
            return readings_of(answered[0], dialect)
        raise _unreadable({"error": error} if error else [*answered, {}][0], dialect)
    body = provider.assemble(answered)
    readings, error = provider.read(body), error or error_in(body)
    if not _says_something(readings) and (not readings or error):
        raise _unreadable({**body, "error": error}, dialect)
    return [reading._replace(finish="error") for reading in readings] if error else readings


def _says_something(readings: list[Reading]) -> bool:
    return any(reading.text or reading.reasoning or reading.calls for reading in readings)


def _provider_of(body: Json, dialect: str | None) -> Provider | None:
    for provider in PROVIDERS if dialect is None else named(dialect):
        if provider.is_body(body):
            return provider
    return None


def _stream_provider_of(events: Sequence[Json], dialect: str | None) -> Provider | None:
    providers = PROVIDERS if dialect is None else named(dialect)
    return next((provider for event in events for provider in providers if provider.is_event(event)), None)


def _unreadable(body: Json, dialect: str | None) -> UnreadableResponse:
    error = error_in(body) or complaint_in(body)
    if error is not None:
        return UnreadableResponse(f"the provider answered with an error: {error}", code="provider_error")
    keys = ", ".join(repr(key) for key in list(body)[:12]) or "nothing"
    return UnreadableResponse(
        f"holding {cut(keys)}, this is not an answer in {dialect or 'a known wire format'}",
        fix="Pass a provider's whole body or its whole stream.",
    )
