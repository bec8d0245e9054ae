"""What the model answered, in one form for every provider: Choice, and how responses and streams become one.

A response goes through three steps: the plain body it holds (`bodies`), what the reader of its wire
format finds in that (`readers`), and the calls decoded and typed (`typed_calls`). A stream is joined to
the body it amounts to first (`events`, and each reader's `join`). Rules it enforces:

 a. Never an error for a bad call: that is an `InvalidToolCall` with its code (rule 3).
 b. `UnreadableResponse` only where there is no answer: an unknown shape, or an error and nothing else. An
    error that breaks into an answer leaves what was said, and the finish reason `error`.
 c. A stream that ends early leaves what was said, without a finish reason; calls it may have cut are bad
    ones.
 d. An answer with calls for the caller whose wire says plain `stop` ended with `tool_calls`.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from dspy import lm15

from sigadapt.adapters.bodies import body_of, chat_body
from sigadapt.adapters.events import events_of
from sigadapt.adapters.lm15_parts import as_shown, body_of_parts, if_whole
from sigadapt.adapters.provider_errors import complaint_in, error_in, until_error
from sigadapt.adapters.readers import (
    anthropic,
    bedrock,
    cohere,
    gemini,
    ollama,
    openai_chat,
    openai_responses,
)
from sigadapt.adapters.readers.reading import Json, Reading
from sigadapt.adapters.typed_calls import typed_calls, verdicts
from sigadapt.adapters.whole_streams import EVENTS
from sigadapt.errors import InvalidOption, UnreadableResponse
from sigadapt.signatures.arguments import shown
from sigadapt.signatures.calls import ToolCalls


class Reader(Protocol):
    """The functions of a reader module; see `readers.reading`."""

    @property
    def DIALECT(self) -> str:  # noqa: N802  (a constant of the module)
        """Its name, as in `dialect=`."""
        ...

    def reads(self, body: Json, /) -> bool:
        """Whether a body is of this format."""
        ...

    def read(self, body: Json, /) -> list[Reading]:
        """One reading a candidate."""
        ...

    def opens(self, event: Json, /) -> bool:
        """Whether a stream's event is of this format."""
        ...

    def join(self, events: Iterable[Json], /) -> Json:
        """The whole body that a stream's events amount to."""
        ...


READERS: "tuple[Reader, ...]" = (openai_chat, openai_responses, anthropic, gemini, ollama, bedrock, cohere)
"""The wire formats, in the order a body is tried for them. A new one is a new module and a place here."""


_set = object.__setattr__  # past the frozen dataclass' own


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
    _found: Any = field(default=None, init=False, repr=False, compare=False)

    def __getattr__(self, name: str) -> Any:
        # Runs only for what is not set. A choice that was read holds what was found, its calls decoded and
        # judged; the rest is set when it is first asked for.
        if name == "tool_calls":
            value = typed_calls(*self._found) if self._found[1] else None
        elif name in {"text", "reasoning", "finish_reason"}:
            value = _said(self._found[0])[name]
        else:
            raise AttributeError(f"a Choice has no {name!r}")
        _set(self, name, value)
        return value

    def __reduce__(self) -> "tuple[Any, ...]":
        return Choice, (self.text, self.tool_calls, self.reasoning, self.finish_reason, self.raw)


def _said(reading: Reading) -> dict[str, str | None]:
    finish = "tool_calls" if reading.calls and reading.finish == "stop" else reading.finish
    return {"text": reading.text, "reasoning": reading.reasoning, "finish_reason": finish}


def kept_apart(choice: Choice, taken: Collection[str], answered: Collection[str]) -> Choice:
    """A choice as it was read, with ids apart from those of the conversation; see `typed_calls`."""
    read: Any = choice._found  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  (this file's own)
    if choice.tool_calls is None or read is None:
        return choice
    reading, found = read
    return replace(choice, tool_calls=typed_calls(reading, found, taken, answered))


def choice_from_response(response: Any, *, dialect: str | None = None) -> Choice:
    """Read one answer of any provider; of several candidates the first.

    Args:
        response: a body (dict), an SDK's response object (openai, anthropic, google-genai, ollama,
            LiteLLM), a `dspy.lm15.Response`, or DSPy's legacy output (a text, or a dict with `text`).
        dialect: the wire format, where it should not be found out from the body.

    Returns:
        The choice. A call that cannot be used is among `tool_calls.invalid`, with its code.

    Raises:
        UnreadableResponse: if this is no model response, or an error and no answer; the reason says which
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
        >>> choice.text, choice.tool_calls[0].name, choice.tool_calls[0].args, choice.finish_reason
        ('Let me look.', 'get_weather', {'city': 'Paris'}, 'tool_calls')
    """
    return _choice(_readings(response, dialect)[0], response)


def choices_from_response(response: Any, *, dialect: str | None = None) -> list[Choice]:
    """Read all candidates of an answer, in the provider's order; else as `choice_from_response`.

    Example:
        >>> body = {"choices": [{"message": {"content": "Yes."}}, {"message": {"content": "No."}}]}
        >>> [choice.text for choice in choices_from_response(body)]
        ['Yes.', 'No.']
    """
    return [_choice(reading, response) for reading in _readings(response, dialect)]


def choice_from_stream(events: str | bytes | Iterable[Any], *, dialect: str | None = None) -> Choice:
    r"""Read a streamed answer whole; the same choice as the unstreamed answer gives.

    Args:
        events: the stream's text or bytes (server-sent events, NDJSON, a JSON array), pieces of it cut
            anywhere, or its events as dicts or an SDK's objects.
        dialect: the wire format, where it should not be found out from the events.

    Returns:
        The choice; of several candidates the first. Arguments that came as text are kept as that text.

    Raises:
        UnreadableResponse: if these are no events of a known wire format, or an error and no answer.
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
    return _choice(_stream_readings([body_of(event) for event in given], dialect)[0], raw)


def _choice(reading: Reading, raw: Any) -> Choice:
    made = Choice.__new__(Choice)
    _set(made, "raw", raw)
    _set(made, "_found", (reading, verdicts(reading)))
    return made


def _readings(response: Any, dialect: str | None) -> list[Reading]:
    if isinstance(response, lm15.Response):
        return [_lm15_reading(response, dialect)]
    body = body_of(response)
    reader = _reader_of(body, dialect)
    if reader is None:
        if "text" in body and dialect is None:
            return openai_chat.read(chat_body(body))
        raise _unreadable(body, dialect)
    readings = reader.read(body)
    if not readings or (body.get("error") and not _says_something(readings)):
        raise _unreadable(body, dialect)
    return readings


def _lm15_reading(response: lm15.Response, dialect: str | None) -> Reading:
    body: Json = response.provider_data or {}
    if EVENTS in body:
        return as_shown(_stream_readings(events_of(body[EVENTS]), dialect)[0], response)
    reader = _reader_of(body, dialect)
    readings = reader.read(body) if reader else []
    whole = if_whole(readings[0], response) if readings else None
    if whole is not None:
        return whole
    reader = _stream_reader_of([body], dialect)
    last = reader.read(reader.join([body])) if reader else []
    return openai_chat.read(body_of_parts(response, last[0].finish if last else None))[0]


def _stream_readings(events: Sequence[Json], dialect: str | None) -> list[Reading]:
    answered, error = until_error(events)
    reader = _stream_reader_of(answered, dialect)
    if reader is None:
        if len(answered) == 1 and error is None:  # an answer that was not streamed
            return _readings(answered[0], dialect)
        raise _unreadable({"error": error} if error else [*answered, {}][0], dialect)
    body = reader.join(answered)
    readings, error = reader.read(body), error or error_in(body)
    if not _says_something(readings) and (not readings or error):
        raise _unreadable({**body, "error": error}, dialect)
    return [reading._replace(finish="error") for reading in readings] if error else readings


def _says_something(readings: list[Reading]) -> bool:
    return any(reading.text or reading.reasoning or reading.calls for reading in readings)


def _reader_of(body: Json, dialect: str | None) -> Reader | None:
    for reader in READERS if dialect is None else _named(dialect):
        if reader.reads(body):
            return reader
    return None


def _stream_reader_of(events: Sequence[Json], dialect: str | None) -> Reader | None:
    readers = READERS if dialect is None else _named(dialect)
    return next((reader for event in events for reader in readers if reader.opens(event)), None)


def _named(dialect: str) -> Sequence[Reader]:
    named = [reader for reader in READERS if dialect == reader.DIALECT]
    if not named:
        known = ", ".join(reader.DIALECT for reader in READERS)
        raise InvalidOption(f"{dialect!r} is no known dialect", field="dialect", fix=f"Use one of {known}.")
    return named


def _unreadable(body: Json, dialect: str | None) -> UnreadableResponse:
    error = error_in(body) or complaint_in(body)
    if error is not None:
        return UnreadableResponse(f"the provider answered with an error: {error}", code="provider_error")
    keys = ", ".join(repr(key) for key in list(body)[:12]) or "nothing"
    return UnreadableResponse(
        f"holding {shown(keys)}, this is no answer in {dialect or 'a known wire format'}",
        fix="Pass a provider's whole body or its whole stream.",
    )
