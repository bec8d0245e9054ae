"""Choice: what the model answered, in one form for every provider. Responses and streams are read into it.

A Response passes three stages: its plain body (`response_bodies.py`), the Reading that its provider's file
makes of the body (`providers/`), and the Choice with decoded and typed calls (`typed_calls.py`). The events
of a stream are put together to a body first (`response_bodies.py`, and the provider's `assemble`). Rules:

 a. A bad call never raises. It becomes an `InvalidToolCall` with a code (nothing silent).
 b. `UnreadableResponse` is raised only if there is no answer: the format is unknown, or there is an error and
    nothing else. If an error ends an answer, the Choice has what was said before, and the finish reason
    `error`.
 c. If a stream ends early, the Choice has what was said before, and no finish reason. Calls that may be
    incomplete are bad calls.
 d. If an answer has calls and the provider's finish reason means `stop`, the finish reason is `tool_calls`.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.response.response_bodies import (
    BODY,
    EVENTS,
    body_of,
    body_of_parts,
    chat_body,
    complaint_in,
    error_in,
    error_message,
    events_of,
    text_of_parts,
    until_error,
)
from sigadapt.adapters.response.typed_calls import repeats_in, typed_calls
from sigadapt.display import Displayable, Rendering, rendered_answer
from sigadapt.dspy_boundary.internals import is_lm15
from sigadapt.errors import UnreadableResponse
from sigadapt.json_values import Json, cut, without_halves
from sigadapt.providers import CHAT, PROVIDERS, provider_named
from sigadapt.providers.provider import Provider
from sigadapt.providers.usage import AnswerUsage, answer_usage
from sigadapt.providers.wire.reading import Reading
from sigadapt.schemas.arguments import Flaw, UnreadCall
from sigadapt.signatures.calls import ToolCalls
from sigadapt.signatures.server_tools import NO_WORK, Files, ServerToolCall, Sources


@dataclass(frozen=True, slots=True)
class Choice(Displayable):
    """One candidate of a model's answer. `raw` does not count when two choices are compared.

    Args:
        text: what the model said to the user, refusals included; None for nothing.
        tool_calls: the calls that it made, good and bad; None if it made none.
        reasoning: the thinking that the provider showed; None if it showed none.
        finish_reason: `stop`, `tool_calls`, `length`, `content_filter`, `refusal`, `pause` or `error`, else
            the provider's own word; None if it gave none.
        raw: the value that was read, unchanged; for an iterator of events, the list of events.
        finish_message: what the provider said about the end, such as the category of a refusal or the message
            of an error; None if it said nothing.
        commentary: what the model said beside the answer, if the provider marks that; otherwise None.
        server_calls: the calls of tools that the provider ran itself (`ServerToolCall`).
        sources: the pages and documents that these found, or that the answer cites (`Source`).
        files: what these made: images, files of code that ran (`File`).
        notes: what nobody asked to read: a call of a declared tool in markup that no format knows.
        dialect: the wire format that `raw` was read in, as `choice_from_response(..., dialect=)` takes it;
            None for a text. Like `raw`, it does not count when two choices are compared.

    Example:
        >>> Choice("Yes.", finish_reason="stop", raw={"id": "1"}) == Choice("Yes.", finish_reason="stop")
        True
    """

    text: str | None = None
    tool_calls: ToolCalls | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    raw: Any = field(default=None, repr=False, compare=False)
    finish_message: str | None = None
    commentary: str | None = None
    server_calls: tuple[ServerToolCall, ...] = ()
    sources: Sources = NO_WORK.sources
    files: Files = NO_WORK.files
    notes: tuple[Change, ...] = ()
    dialect: str | None = field(default=None, compare=False)

    @property
    def usage(self) -> AnswerUsage | None:
        """What the provider counted for the whole response, with its own usage object in `.raw`.

        It has the fields of `Run.usage`. It is None if the provider counted nothing, or if `raw` is no
        response. It is read from `raw` each time, so it costs nothing until you ask for it. Candidates of
        one response have the same usage.

        Example:
            >>> counts = {"prompt_tokens": 90, "completion_tokens": 10}
            >>> choice = choice_from_response(
            ...     {"choices": [{"message": {"content": "Yes."}}], "usage": counts}
            ... )
            >>> choice.usage.input_tokens, choice.usage.output_tokens, choice.usage.raw == counts
            (90, 10, True)
        """
        return _usage_of(self.raw, self.dialect)

    def rendered(self, error: Exception | None = None) -> Rendering:
        """Return what a notebook or a terminal shows of this choice, or of the error that carries it.

        Example:
            >>> Choice("Sunny.").rendered().title
            'Choice: no calls'
        """
        return rendered_answer(self, error)

    def _rendering(self) -> Rendering:
        return rendered_answer(self)


def choice_from_response(response: Any, *, dialect: str | None = None) -> Choice:
    """Read an answer of any provider and return its first candidate.

    Args:
        response: a body (dict), an SDK's response object (openai, anthropic, google-genai, ollama,
            LiteLLM), a `dspy.lm15.Response`, or DSPy's legacy output (a text, or a dict with `text`).
        dialect: the wire format (such as `anthropic`); None to detect it.

    Returns:
        The Choice. Its `tool_calls.invalid` holds the bad calls, each with a code.

    Raises:
        UnreadableResponse: if this is not a model response, or if it is an error without an answer; the
            message quotes the error.
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
    """Read an answer of any provider and return all candidates, in the provider's order.

    Takes and raises the same as `choice_from_response`.

    Example:
        >>> body = {"choices": [{"message": {"content": "Yes."}}, {"message": {"content": "No."}}]}
        >>> [choice.text for choice in choices_from_response(body)]
        ['Yes.', 'No.']
    """
    return [choice_of(reading, response) for reading in readings_of(response, dialect)]


def choice_from_stream(events: str | bytes | Iterable[Any], *, dialect: str | None = None) -> Choice:
    r"""Read a whole stream and return the same Choice as for the unstreamed answer.

    Args:
        events: the stream's text or bytes (server-sent events, NDJSON, a JSON array), whole or as pieces cut
            anywhere, or its events as dicts or an SDK's objects.
        dialect: the wire format (such as `anthropic`); None to detect it.

    Returns:
        The first candidate. `ToolCall.arguments` is the JSON text that was streamed.

    Raises:
        UnreadableResponse: if these are not events of a known wire format, or if they hold an error and no
            answer.
        InvalidOption: for an unknown dialect.

    Example:
        >>> first, second = (
        ...     {"delta": {"content": "Hel"}},
        ...     {"delta": {"content": "lo"}, "finish_reason": "stop"},
        ... )
        >>> choice_from_stream([{"choices": [first]}, {"choices": [second]}]).text
        'Hello'
    """
    values = events_of(events)
    raw = events if isinstance(events, (str, bytes, list)) else values
    bodies = [body_of(event) for event in values]
    return choice_of(_stream_readings(bodies, provider_of_stream(bodies, dialect), dialect)[0], raw)


_MISSING_CALL = (
    None,
    None,
    UnreadCall("", Flaw("malformed_call", "the provider ended the turn for a tool call that did not come")),
)


def choice_of(
    reading: Reading,
    raw: Any,
    made_id: Callable[[int], str] | None = None,
    earlier_ids: Collection[str] = (),
) -> Choice:
    """Return the Choice of one Reading; `made_id` gives the ids of calls without one, by their index."""
    if reading.finish == "tool_calls" and not reading.calls:
        # Claude Opus 4.7 did so in 7 % of its turns with calls, and a server whose parser drops a call does.
        # https://github.com/anthropics/claude-code/issues/63581
        reading = reading._replace(calls=[_MISSING_CALL])
    calls = typed_calls(reading, made_id, earlier_ids, repeats_in(reading.calls))
    finish = "tool_calls" if calls is not None and reading.finish == "stop" else reading.finish
    return Choice(
        text=reading.text and without_halves(reading.text),
        tool_calls=calls,
        reasoning=reading.reasoning and without_halves(reading.reasoning),
        finish_reason=finish,
        raw=raw,
        finish_message=reading.finish_message,
        commentary=reading.commentary,
        server_calls=reading.work.calls,
        sources=reading.work.sources,
        files=reading.work.files,
        dialect=reading.wire,
    )


def readings_of(response: Any, dialect: str | None = None, asked: Provider | None = None) -> list[Reading]:
    """Return one Reading per candidate of a Response; `asked` is the provider that was, if that is known."""
    body: Json = response
    if type(response) is not dict:
        if is_lm15(response):
            return [_until_stop(_lm15_reading(response, dialect, asked), response)]
        body = body_of(response)
    provider = provider_of_body(body, dialect, asked)
    if provider is None and "text" in body and dialect is None:
        return CHAT.read(chat_body(body))
    readings = _readings_in(provider, body) if provider else []
    error = body.get("error")
    if not readings or (error and not _says_something(readings)):
        raise _unreadable(body, dialect)
    return [_fail(reading, error_in(body)) for reading in readings] if error else readings


def _readings_in(provider: Provider, body: Json) -> list[Reading]:
    return [reading._replace(wire=provider.name) for reading in provider.read(body)]


def _fail(reading: Reading, error: Any) -> Reading:
    return reading._replace(finish="error", finish_message=error_message(error), error=error)


def _lm15_reading(response: Any, dialect: str | None, asked: Provider | None = None) -> Reading:
    """Return the Reading of an lm15 Response: of the provider's body that it keeps, if that is complete."""
    # lm15's own parts hold decoded arguments, rewritten if they could not be decoded. They are read only if
    # there is no body, as in a Response of a custom engine, or of an old cache.
    body: Json = response.provider_data or {}
    if BODY in body:
        (whole_body, *_) = events_of(body[BODY])
        return readings_of(whole_body, dialect, asked)[0]
    if EVENTS in body:
        events = events_of(body[EVENTS])
        return _stream_readings(events, provider_of_stream(events, dialect, asked))[0]
    provider = provider_of_body(body, dialect, asked)
    readings = _readings_in(provider, body) if provider else []
    if provider and readings and _is_whole(readings[0], response, provider):
        return readings[0]
    provider = provider_of_stream([body], dialect, asked)
    last = provider.read(provider.assemble([body])) if provider else []
    finish = last[0].finish if last else None
    return CHAT.read(body_of_parts(response, finish))[0]


def _is_whole(reading: Reading, response: Any, provider: Provider) -> bool:
    """Return whether a Reading of `provider_data` holds the complete answer."""
    # The last event of a streamed answer may look like a body (Gemini's does), but lacks calls or text.
    parts = response.message.parts
    names = [part.name for part in parts if part.type == "tool_call"]
    read = [str(name) for _, name, _ in reading.calls]
    if read != names and not _holds_calls(read, parts, provider):
        return False
    return len(names) == len(parts) or _holds_text(reading, parts)


def _holds_calls(read: list[str], parts: Any, provider: Provider) -> bool:
    """Return whether the names of the calls that were read are those of lm15's parts, or more."""
    # lm15 has no place for some calls, and writes a name that is not a string as text. What it has must
    # stand among what was read, in order; calls that the provider ran itself are not read.
    others = iter(read)  # `in` consumes it: the order matters
    calls = (part for part in parts if part.type == "tool_call" and not provider.ran_itself(part.id))
    return all(part.name in others for part in calls)


def _holds_text(reading: Reading, parts: Any) -> bool:
    """Return whether a Reading has all text of lm15's parts."""
    # Commentary may follow the answer, so that each text is looked for by itself.
    texts = [part.text for part in parts if part.type in {"text", "refusal"}]
    whole = f"{reading.commentary or ''}{reading.text or ''}"
    if all(part_text in whole for part_text in texts):
        return True
    if (text_of_parts(parts) or "") in whole:  # the parts may cut a surrogate pair
        return True
    return all(_squeeze(part_text) in _squeeze(whole) for part_text in texts)


def _until_stop(reading: Reading, response: Any) -> Reading:
    """Return a Reading with its text cut where lm15 applied a stop sequence."""
    text = text_of_parts(response.message.parts)
    whole = reading.text or ""
    if not text or whole.startswith(text):
        return reading._replace(text=text or whole or None)
    if reading.commentary or not _squeeze(whole).startswith(_squeeze(text)):
        return reading
    # lm15 joins blocks without the blank line that a Reading puts between them.
    end = len(text)
    while len(_squeeze(whole[:end])) < len(_squeeze(text)):
        end += 1
    return reading._replace(text=whole[:end])


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _stream_readings(
    events: Sequence[Json], provider: Provider | None, dialect: str | None = None
) -> list[Reading]:
    answer, error = until_error(events, provider)
    if provider is None or not answer:
        if len(answer) == 1 and error is None:  # an answer that was not streamed
            return readings_of(answer[0], dialect)
        first_event = answer[0] if answer else {}
        unread = {"error": error} if error else first_event
        raise _unreadable(unread, dialect)
    body = provider.assemble(answer)
    readings = _readings_in(provider, body)
    error = error or error_in(body, provider)
    if not _says_something(readings) and (not readings or error):
        raise _unreadable({**body, "error": error}, dialect)
    return [_fail(reading, error) for reading in readings] if error else readings


def _says_something(readings: list[Reading]) -> bool:
    return any(not reading.is_empty for reading in readings)


def _usage_of(raw: Any, dialect: str | None) -> AnswerUsage | None:
    """Return what the provider counted, as the value says that a Choice was read from."""
    try:
        if is_lm15(raw):
            return _lm15_usage(raw, dialect)
        if isinstance(raw, (str, bytes, list)):
            return _stream_usage(events_of(raw), dialect)
        return None if raw is None else _body_usage(body_of(raw), dialect)
    except UnreadableResponse:  # the text that `choice_from_text` read
        return None


def _body_usage(body: Json, dialect: str | None) -> AnswerUsage | None:
    provider = provider_of_body(body, dialect)
    return None if provider is None else provider.usage(body)


def _stream_usage(events: Sequence[Any], dialect: str | None) -> AnswerUsage | None:
    bodies = [body_of(event) for event in events]
    provider = provider_of_stream(bodies, dialect)
    answer, _ = until_error(bodies, provider)
    if provider is None or not answer:
        return None
    return provider.usage(provider.assemble(answer)) or _body_usage(answer[0], dialect)


def _lm15_usage(response: Any, dialect: str | None) -> AnswerUsage | None:
    """Return what the provider's body or stream says that an lm15 Response keeps; else what lm15 counted."""
    body: Json = response.provider_data or {}
    if EVENTS in body or BODY in body:
        events = events_of(body.get(EVENTS, body.get(BODY)))
        usage = _stream_usage(events, dialect) or _body_usage(events[0] if events else {}, dialect)
    else:
        usage = _body_usage(body, dialect) or _stream_usage([body], dialect)
    if usage is not None and usage.total_tokens is not None:
        return usage
    # The engine of a user has no body, and the last event of a stream may have a part of the counts.
    counted = response.usage
    counts = {name: count for name, count in asdict(counted).items() if count is not None}
    read = counted.input_tokens
    from_lm15 = answer_usage(
        counts, read=read, written=counted.output_tokens, cached=counted.cache_read_tokens
    )
    return from_lm15 or usage


_NO_END = {"message": "the stream ended without a finish reason"}


@dataclass
class CandidateAnswer:
    """One candidate's Response, and what is read of it, once."""

    response: Any  # what the language model gave, in lm15's type
    endpoint: str = ""  # the OpenAI-like server that gave it; empty for any other
    provider: Provider | None = None  # that was asked; None if an engine of the user's own asked it
    events: Sequence[Json] | None = None  # of a stream, decoded as they came; None if it has none
    is_completion: bool = False  # whether the response is a text, by a model that takes no messages
    has_stop: bool = False  # whether lm15 may have cut the text at a stop sequence of the request
    choice: Choice | None = None  # its calls typed and checked, or what a hook gave in its place
    failure: Exception | None = None  # the error that ended asking again after it
    is_stored: bool = True  # whether the provider may have kept what it gave
    trace: str = ""  # the span of its request, as a W3C `traceparent`; empty if nobody traces

    @cached_property
    def reading(self) -> Reading:
        """What the Response says."""
        events = self.events
        response = self.response
        if events is not None:
            reading = _stream_readings(events, provider_of_stream(events, asked=self.provider))[0]
        elif self.is_completion:
            reading = readings_of(response)[0]
        else:
            reading = _lm15_reading(response, None, self.provider)
        if self.has_stop:
            reading = _until_stop(reading, response)
        if reading.finish is None and self._is_streamed:
            reading = _fail(reading, _NO_END)
        if reading.state is None:
            return reading
        endpoint = {"endpoint": self.endpoint} if self.endpoint else {}
        stored = {} if self.is_stored else {"stored": False}
        return reading._replace(state={**reading.state, **endpoint, **stored})

    @property
    def _is_streamed(self) -> bool:
        return self.events is not None or EVENTS in (getattr(self.response, "provider_data", None) or {})


def provider_of_body(
    body: Json, dialect: str | None = None, asked: Provider | None = None
) -> Provider | None:
    """Return the provider whose format a body has, among those of a dialect; None if it is of none.

    It is the one that was asked, unless a gateway answered in another format.
    """
    return next((provider for provider in _providers(dialect, asked) if provider.is_body(body)), None)


def provider_of_stream(
    events: Sequence[Json], dialect: str | None = None, asked: Provider | None = None
) -> Provider | None:
    """Return the provider whose events some of these are, among those of a dialect; None if of none."""
    if asked is not None and any(map(asked.is_event, events)):
        return asked
    providers = _providers(dialect)
    return next((provider for event in events for provider in providers if provider.is_event(event)), None)


def _providers(dialect: str | None, asked: Provider | None = None) -> Sequence[Provider]:
    providers = PROVIDERS if dialect is None else (provider_named(dialect),)
    return providers if asked is None else (asked, *providers)


def _unreadable(body: Json, dialect: str | None) -> UnreadableResponse:
    error = error_in(body) or complaint_in(body)
    if error is not None:
        reason = f"the provider answered with an error: {error_message(error)}"
        return UnreadableResponse(reason, code="provider_error")
    keys = ", ".join(repr(key) for key in list(body)[:12]) or "no keys"
    return UnreadableResponse(
        f"expected an answer in {dialect or 'a known wire format'}, got an object with {cut(keys)}",
        fix="Pass the provider's whole body or its whole stream.",
    )
