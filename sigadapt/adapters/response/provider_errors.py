"""Find a provider's error, in a body or in the middle of a stream."""

from collections.abc import Sequence
from typing import Any

from sigadapt.providers import PROVIDERS
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.values import an_object, is_text
from sigadapt.schemas.json_values import Json, cut, json_like

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
