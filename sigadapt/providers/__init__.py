"""The table of providers and of the routes to them. A new provider is one new file and one row here."""

from collections.abc import Sequence
from dataclasses import replace

from sigadapt.errors import InvalidOption
from sigadapt.providers import (
    anthropic,
    bedrock,
    cohere,
    gemini,
    ollama,
    openai_chat,
    openai_responses,
)
from sigadapt.providers.provider import Provider, Reading, Route
from sigadapt.schemas.json_values import Json

_OTHERS = (
    openai_responses.PROVIDER,
    anthropic.PROVIDER,
    gemini.PROVIDER,
    ollama.PROVIDER,
    bedrock.PROVIDER,
    cohere.PROVIDER,
)

_CARRIED = tuple(provider.state_from_chat for provider in _OTHERS)


def _read_chat(body: Json) -> list[Reading]:
    return openai_chat.read(body, _CARRIED)


CHAT: Provider = replace(openai_chat.PROVIDER, read=_read_chat)
"""Chat completions. LiteLLM writes every provider's answer as one, which may hold that provider's state."""

PROVIDERS: tuple[Provider, ...] = (CHAT, *_OTHERS)
"""All providers. The first one whose `is_body` or `is_event` accepts a body or an event reads it."""

ROUTES: tuple[Route, ...] = tuple(route for provider in PROVIDERS for route in provider.routes)
"""The routes of all providers. The first of each door is for servers that have no route of their own."""

_BY_NAME = {provider.name: provider for provider in PROVIDERS}


def provider_of(dialect: str) -> Provider | None:
    """Return the provider of a wire format; None for an unknown name, such as that of a user's own engine.

    Example:
        >>> provider_of("anthropic").name
        'anthropic'
    """
    return _BY_NAME.get(dialect)


def named(dialect: str) -> Sequence[Provider]:
    """Return a sequence of one: the provider that a caller named as the `dialect` to read.

    Raises:
        InvalidOption: for an unknown name; the message lists the known ones.

    Example:
        >>> [provider.name for provider in named("gemini")]
        ['gemini']
    """
    provider = _BY_NAME.get(dialect)
    if provider is None:
        fix = f"Use one of {', '.join(_BY_NAME)}."
        raise InvalidOption(f"{dialect!r} is not a known dialect", field="dialect", fix=fix)
    return (provider,)
