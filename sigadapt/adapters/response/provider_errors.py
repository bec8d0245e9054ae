"""What a provider's error says, in a body or in the middle of a stream.

Sources: the error objects of OpenAI (chat, and the Responses stream's `error` event), Anthropic, Google,
Ollama and OpenRouter. A provider whose errors have a place of their own says so in its file.
"""

from collections.abc import Sequence
from typing import Any

from sigadapt.providers import PROVIDERS
from sigadapt.providers.reading import an_object, is_text
from sigadapt.schemas.json_values import Json, cut, spelled


def error_in(body: Json) -> str | None:
    """The message of the error that a body or a stream's event holds; None where it holds none.

    Example:
        >>> error_in({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
        'Overloaded'
        >>> error_in({"error": None, "choices": []})
    """
    error = body.get("error")
    if error:
        return _message(error)
    if body.get("type") == "error":
        return _message(body)
    found: list[Any] = [provider.error_in(body) for provider in PROVIDERS]
    own: Any = next((each for each in found if each is not None), None)
    return None if own is None else _message(own)


def complaint_in(body: Json) -> str | None:
    """What a body that is no answer gives as a message, as some servers do without calling it an error.

    Example:
        >>> complaint_in({"message": "invalid api token"})
        'invalid api token'
    """
    return next((body[key] for key in ("message", "detail") if is_text(body.get(key))), None)


def until_error(events: Sequence[Json]) -> tuple[Sequence[Json], str | None]:
    """The events before the first error and that error's message; without an error all events and None."""
    for n, event in enumerate(events):
        message = error_in(event)
        if message is not None:
            return events[:n], message
    return events, None


def _message(error: Any) -> str:
    said = an_object(error).get("message", error)
    return said if is_text(said) else cut(spelled(error))
