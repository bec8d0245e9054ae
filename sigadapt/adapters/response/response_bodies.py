"""Turn any Response, a dict, an SDK's object, DSPy's legacy output or a stream's text, into bodies or events.

A provider's error may be the body, or an event in the middle of a stream. Rules for the text of a stream:

 a. Server-sent events are read as in the WHATWG standard: lines end in CRLF, LF or CR, and a blank line ends
    an event. Comments and fields other than `data` are ignored. `[DONE]` ends the stream; the rest is not
    read.
 b. Text that begins with `{` or `[` is a sequence of JSON values, with or without an array around it
    (Ollama, Gemini).
 c. If the text ends inside an event, that event is left out: the stream ended early. Any other invalid JSON
    is an error.
 d. Bytes that are not UTF-8 become surrogate escapes, so that arguments with such bytes are refused instead
    of changed.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import jiter
import pydantic

from sigadapt.errors import UnreadableResponse
from sigadapt.json_values import Json, as_unicode, cut, is_array, is_object, json_like
from sigadapt.providers import PROVIDERS
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.values import JsonText, an_object, is_text, join_texts
from sigadapt.schemas.arguments import parse_arguments


def body_of(response: Any) -> Json:
    """Return the body of a response, or of an event of a stream, as plain dicts and lists."""
    if is_object(response):
        return response
    if isinstance(response, pydantic.BaseModel):
        # By alias, because google-genai's objects use the names of the wire format only as aliases.
        return response.model_dump(by_alias=True, exclude_unset=True, warnings=False)
    if isinstance(response, str):
        return {"text": response}
    raise UnreadableResponse(
        f"expected a model response, got a {type(response).__name__}",
        fix="Pass the body as a dict, or the response object of an SDK or of DSPy.",
    )


def chat_body(output: Json) -> Json:
    """Return DSPy's legacy output as a chat completion."""
    calls = output.get("tool_calls")
    # Beside dicts, DSPy's legacy output has the call objects of LiteLLM, or DSPy's own.
    calls = getattr(calls, "tool_calls", calls)
    if is_array(calls):
        calls = [*calls]
        for number, call in enumerate(calls):
            if isinstance(call, pydantic.BaseModel):
                calls[number] = body_of(call)
    reasoning = output.get("reasoning_content")
    message = {"content": output.get("text"), "reasoning_content": reasoning, "tool_calls": calls}
    return {"choices": [{"message": message}]}


def body_of_parts(response: Any, finish: str | None) -> Json:
    """Return the message parts of an lm15 Response as a chat completion."""
    # lm15 writes arguments that it could not decode as `{"partial_json": text}`; here they become that text
    # again. It writes arguments that are not an object as `{"value": ...}`, which looks like any other
    # object.
    parts = response.message.parts
    calls = [
        {"id": part.id, "function": {"name": part.name, "arguments": _arguments(part.input)}}
        for part in parts
        if part.type == "tool_call"
    ]
    texts: dict[str, list[Any]] = {"text": [], "refusal": [], "thinking": []}
    for part in parts:
        if part.type in texts:
            texts[part.type].append(part.text)
    message: Json = {"content": join_texts(texts["text"]), "refusal": "".join(texts["refusal"])}
    message |= {"reasoning_content": join_texts(texts["thinking"]), "tool_calls": calls}
    finish = finish or response.finish_reason
    if finish == "tool_call":
        finish = "tool_calls"
    return {"choices": [{"message": message, "finish_reason": finish}]}


def text_of_parts(parts: Any) -> str | None:
    """Return the text in the parts of an lm15 message; None if they have no text."""
    return join_texts([part.text for part in parts if part.type in {"text", "refusal"}])


def _arguments(value: Json) -> Any:
    text = value.get("partial_json")
    if len(value) == 1 and isinstance(text, str) and not isinstance(parse_arguments(text), dict):
        return JsonText(text)
    return value


# OpenRouter: {"code": 429, "message": "..."}, https://openrouter.ai/docs/api/reference/errors-and-debugging
# OpenAI: {"code": "rate_limit_exceeded", ...}, https://developers.openai.com/api/docs/guides/error-codes
# Anthropic: {"type": "rate_limit_error", ...}, https://platform.claude.com/docs/en/api/errors
# Google: {"code": 429, "status": "RESOURCE_EXHAUSTED"}, https://ai.google.dev/gemini-api/docs/troubleshooting
_RATE_LIMITS = frozenset(
    ("429", "rate_limit_exceeded", "rate_limit_error", "rate_limited", "too_many_requests")
) | {"RESOURCE_EXHAUSTED", "throttlingException"}

_ERRORS = frozenset[str]().union(*(provider.errors for provider in PROVIDERS))


def error_in(body: Json, provider: Provider | None = None) -> Any:
    """Return the error in a body or an event of a provider, or of any, as it was sent; None for no error."""
    if body.get("error"):
        return body["error"]
    if body.get("type") == "error":
        return body
    names = _ERRORS if provider is None else provider.errors
    for name in names:
        if name in body:
            return {"type": name, **an_object(body[name])}
    return None


def error_message(error: Any) -> str:
    """Return the message of an error; the whole error as JSON if it has none."""
    if is_text(error):
        return error
    return complaint_in(an_object(error)) or cut(json_like(error))


def is_rate_limit(error: Any) -> bool:
    """Return whether an error says that the provider got too many requests.

    Example:
        >>> is_rate_limit({"code": 429, "message": "Slow down."}), is_rate_limit({"code": 502})
        (True, False)
    """
    fields = an_object(error)
    return not _RATE_LIMITS.isdisjoint(str(fields.get(key)) for key in ("code", "type", "status"))


def complaint_in(body: Json) -> str | None:
    """Return the `message` or `detail` of a body without an answer; some servers report errors like this."""
    return next((body[key] for key in ("message", "detail") if is_text(body.get(key))), None)


def until_error(events: Sequence[Json], provider: Provider | None) -> tuple[Sequence[Json], Any]:
    """Return the events before the first error, and that error; without an error, all events and None."""
    # vLLM: {"object": "error", "message": "..."}; servers on FastAPI: {"detail": "..."}
    for n, event in enumerate(events):
        error = error_in(event, provider)
        if error is None and ("message" in event or "detail" in event) and provider is not None:
            error = None if provider.is_event(event) or not complaint_in(event) else event
        if error is not None:
            return events[:n], error
    return events, None


EVENTS = "sigadapt_events"
"""The key of `provider_data` under which a stream's events are kept as text."""

BODY = "sigadapt_body"
"""The key of `provider_data` under which a body is kept as text that lm15 or LiteLLM cannot read."""

_DECODER = json.JSONDecoder()
_LINE_END = re.compile(r"\r\n|\n|\r")
_BETWEEN = re.compile(r"[\s,\[\]]*")


def events_of(stream: Any) -> list[Any]:
    """Return the events of a stream, in order."""
    if is_object(stream) or not hasattr(stream, "__iter__"):
        raise UnreadableResponse(
            f"expected a stream, got a {type(stream).__name__}",
            fix="Pass the events or the text; read an async stream into a list first.",
        )
    items: list[Any] = [stream] if isinstance(stream, (str, bytes, bytearray)) else list(stream)
    if items and not any(isinstance(item, (str, bytes, bytearray)) for item in items):
        return items
    text = _text(items)
    events = list(_decode(text))
    if not events:
        raise UnreadableResponse(
            f"expected an answer in a known wire format, got a text without an event: {cut(repr(text))}",
            fix="Pass the whole text of an answer that the server streamed.",
        )
    return events


def data_of(text: str) -> list[Json]:
    """Return the objects in the data of one server-sent event."""
    return list(_values(text, may_break_off=False))


def _text(pieces: list[Any]) -> str:
    if all(isinstance(piece, str) for piece in pieces):
        text = "".join(pieces)
    elif all(isinstance(piece, (bytes, bytearray)) for piece in pieces):
        # Bytes are joined first, because a character may be cut between two pieces.
        text = b"".join(pieces).decode("utf-8", "surrogateescape")
    else:
        raise UnreadableResponse("the stream mixes text or bytes with other pieces")
    return text.removeprefix("\ufeff")


def _decode(text: str) -> Iterator[Any]:
    # NDJSON (Ollama) and the JSON array of Gemini without `alt=sse` have no fields.
    if text.lstrip()[:1] in {"{", "["}:
        yield from _values(text, may_break_off=True)
        return
    for data, is_whole in _server_sent(text):
        # An event that a blank line ended is whole: what cannot be read there is broken, not cut.
        yield from _values(data, may_break_off=not is_whole)


def _server_sent(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the data of each server-sent event, and whether the event is complete."""
    data: list[str] = []
    for line in _LINE_END.split(text):
        field, _, value = line.partition(":")
        if field == "data":
            value = value.removeprefix(" ")
            if value.strip() == "[DONE]":
                break
            data.append(value)
        elif not line and data:
            yield "\n".join(data), True
            data = []
    if data:
        yield "\n".join(data), False


def _values(text: str, *, may_break_off: bool) -> Iterator[Any]:
    at = _after(_BETWEEN.match(text))
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            rest = text[at:]
            if may_break_off and _is_prefix(rest):
                return
            raise UnreadableResponse(
                f"the stream has invalid JSON ({error}): {cut(rest)}",
                fix="Pass the body unchanged; with an HTTP client, pass its bytes, not its lines.",
            ) from None
        if is_object(value):  # other values are heartbeats, not events
            yield value
        at = _after(_BETWEEN.match(text, end))


def _after(match: "re.Match[str] | None") -> int:
    return match.end() if match else 0


def _is_prefix(text: str) -> bool:
    """Return whether text is the beginning of a JSON value."""
    try:
        jiter.from_json(as_unicode(text).encode(), partial_mode=True)
    except ValueError:
        return False
    return True
