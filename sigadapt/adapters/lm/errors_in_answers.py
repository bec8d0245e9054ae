"""Errors that a provider reports inside of an answer with HTTP status 200 become DSPy's own errors.

lm15 takes the error bodies of Anthropic and Google for empty answers. The engine raises such an error, so
DSPy asks again and caches nothing. A rate limit that ends half an answer is raised behind DSPy's
retries, because what came has been paid.
"""

from typing import Any

from dspy import LMRateLimitError, lm15

from sigadapt.adapters.response.choice import CandidateAnswer, choice_of, provider_of_body
from sigadapt.adapters.response.response_bodies import complaint_in, error_in, error_message, is_rate_limit
from sigadapt.errors import UnusableAnswer
from sigadapt.json_values import Json, cut, json_like
from sigadapt.providers.provider import Provider
from sigadapt.providers.wire.values import an_object


def refuse_error(body: Json, provider: Provider, cause: Exception | None = None) -> None:
    """Raise the error in a body without an answer, unless what lm15 or LiteLLM raised for it says as much."""
    readings = provider.read(body) if provider.is_body(body) else []
    if any(not reading.is_empty for reading in readings):
        return
    error = error_in(body, provider) or next((reading.error for reading in readings if reading.error), None)
    if is_rate_limit(error):
        raise lm15.RateLimitError(error_message(error), provider_code=_code_of(error)) from cause
    is_foreign = not readings and not provider.is_body(body) and provider_of_body(body) is not None
    if cause is None and not readings and not is_foreign:  # a gateway's message, or no candidates
        complaint = error or complaint_in(body) or f"expected an answer, got {cut(json_like(body))}"
        raise lm15.ServerError(error_message(complaint), provider_code=_code_of(error))


def error_event(error: Any) -> lm15.StreamErrorEvent:
    """Return the event that ends a stream with a rate limit in the place of an answer."""
    detail = lm15.ErrorDetail(code="rate_limit", message=error_message(error), provider_code=_code_of(error))
    return lm15.StreamErrorEvent(error=detail)


def refuse_rate_limited(answer: CandidateAnswer, model: str) -> None:
    """Refuse an answer that a rate limit ended."""
    reading = answer.reading
    if not is_rate_limit(reading.error):
        return
    message = error_message(reading.error)
    raise LMRateLimitError(message, model=model, provider_code=_code_of(reading.error)) from UnusableAnswer(
        message, code="failed", choice=choice_of(reading, answer.response)
    )


def refuse_rate_limit_behind(error: Exception) -> None:
    """Raise the rate limit that LiteLLM hides in a stream behind an error with status 500 or 503."""
    cause: Any = error
    chain: list[Any] = []
    while cause is not None and cause not in chain:
        if getattr(cause, "status_code", None) == 429 or is_rate_limit(getattr(cause, "body", None)):
            raise lm15.RateLimitError(str(error)) from error
        chain.append(cause)
        cause = getattr(cause, "original_exception", None) or cause.__cause__ or cause.__context__


def _code_of(error: Any) -> str | None:
    fields = an_object(error)
    code = fields.get("code") or fields.get("type")
    return None if code is None else str(code)
