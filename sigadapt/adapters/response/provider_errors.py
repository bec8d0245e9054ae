"""Find a provider's error message, in a body or in the middle of a stream.

Sources: the error objects of OpenAI (chat, and the Responses stream's `error` event), Anthropic, Google,
Ollama and OpenRouter. If a provider has its own place for errors, its file has an `error_in`.
"""

from collections.abc import Sequence
from typing import Any

from sigadapt.providers import PROVIDERS
from sigadapt.providers.provider import Provider
from sigadapt.providers.reading import an_object, is_text
from sigadapt.schemas.json_values import Json, cut, spelled


def error_in(body: Json, provider: Provider | None = None) -> str | None:
    """Return the error message in a body or an event of a provider, or of any; None if there is no error."""
    error = body.get("error")
    if error:
        return _message(error)
    if body.get("type") == "error":
        return _message(body)
    for each in PROVIDERS if provider is None else (provider,):
        own: Any = each.error_in(body)
        if own is not None:
            return _message(own)
    return None


def complaint_in(body: Json) -> str | None:
    """Return the `message` or `detail` of a body without an answer; some servers report errors like this."""
    return next((body[key] for key in ("message", "detail") if is_text(body.get(key))), None)


def until_error(events: Sequence[Json], provider: Provider | None) -> tuple[Sequence[Json], str | None]:
    """Return the events before the first error and its message; without an error, all events and None."""
    for n, event in enumerate(events):
        message = error_in(event, provider)
        if message is not None:
            return events[:n], message
    return events, None


def _message(error: Any) -> str:
    message = an_object(error).get("message", error)
    return message if is_text(message) else cut(spelled(error))
