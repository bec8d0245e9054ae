"""The table of providers and of the routes to them. A new provider is one new file and one row here."""

from sigadapt.errors import InvalidOption
from sigadapt.providers import (
    anthropic,
    bedrock,
    cohere,
    gemini,
    gemini_interactions,
    ollama,
    openai_chat,
    openai_responses,
)
from sigadapt.providers.provider import Provider, Route

CHAT: Provider = openai_chat.PROVIDER

PROVIDERS: tuple[Provider, ...] = (
    CHAT,
    openai_responses.PROVIDER,
    anthropic.PROVIDER,
    gemini.PROVIDER,
    gemini_interactions.PROVIDER,
    ollama.PROVIDER,
    bedrock.PROVIDER,
    cohere.PROVIDER,
)
"""All providers. The first one whose `is_body` or `is_event` accepts a body or an event reads it."""

ROUTES: tuple[Route, ...] = tuple(route for provider in PROVIDERS for route in provider.routes)
"""The routes of all providers. The first of each client is for servers that have no route of their own."""

_BY_NAME = {provider.name: provider for provider in PROVIDERS}


def provider_of(dialect: str) -> Provider | None:
    """Return the provider of a wire format; None for an unknown name, such as that of a user's own engine."""
    return _BY_NAME.get(dialect)


def provider_named(dialect: str) -> Provider:
    """Return the provider that a caller named as the `dialect` to read.

    Raises:
        InvalidOption: for an unknown name; the message lists the known ones.
    """
    provider = _BY_NAME.get(dialect)
    if provider is None:
        fix = f"Use one of {', '.join(_BY_NAME)}."
        raise InvalidOption(f"{dialect!r} is not a known dialect", field="dialect", fix=fix)
    return provider
