"""Turn any Response (a dict, an SDK's object, DSPy's legacy output) into its plain body, and find its error.

A provider's error may be the body, or an event in the middle of a stream.
"""

import base64
from collections.abc import Sequence
from typing import Any

import pydantic

from sigadapt.errors import UnreadableResponse
from sigadapt.providers import PROVIDERS
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.values import JsonText, an_object, is_text, join_texts
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, cut, is_array, is_object, json_like


def body_of(response: Any) -> Json:
    """Return the body of a response, or of an event of a stream, as plain dicts and lists."""
    if is_object(response):
        return response
    if isinstance(response, pydantic.BaseModel):
        # By alias, because google-genai's objects use the names of the wire format only as aliases.
        return _as_sent(response.model_dump(by_alias=True, exclude_unset=True, warnings=False))
    if isinstance(response, str):
        return {"text": response}
    raise UnreadableResponse(
        f"expected a model response, got a {type(response).__name__}",
        fix="Pass the body as a dict, or the response object of an SDK or of DSPy.",
    )


def _as_sent(body: Json) -> Json:
    """Return a new dump with its bytes (google-genai's signatures) as base64 text, as they were sent."""
    pending: list[Any] = [body]
    while pending:
        item: Any = pending.pop()
        members: Any = item.items() if is_object(item) else enumerate(item)
        for key, value in list(members):
            if isinstance(value, bytes):
                item[key] = base64.b64encode(value).decode()
            elif isinstance(value, (dict, list)):
                pending.append(value)
    return body


def chat_body(output: Json) -> Json:
    """Return DSPy's legacy output as a chat completion."""
    calls = output.get("tool_calls")
    # Beside dicts, DSPy's legacy output has the call objects of LiteLLM.
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
    thinking = join_texts(part.text for part in parts if part.type == "thinking")
    message = {"content": text_of_parts(parts), "reasoning_content": thinking, "tool_calls": calls}
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
