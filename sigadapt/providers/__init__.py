"""The table of wire formats. A new provider is one new file and one row here."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

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
from sigadapt.providers.provider import Provider, Route

_OTHERS = (
    openai_responses.PROVIDER,
    anthropic.PROVIDER,
    gemini.PROVIDER,
    ollama.PROVIDER,
    bedrock.PROVIDER,
    cohere.PROVIDER,
)

# A chat completion that LiteLLM wrote may carry the state of the provider that really answered.
_CHAT = replace(
    openai_chat.PROVIDER,
    read=partial(openai_chat.read, carried=tuple(provider.state_from_chat for provider in _OTHERS)),
)

PROVIDERS: tuple[Provider, ...] = (_CHAT, *_OTHERS)
"""The wire formats, in the order in which a body is tried for them."""

ROUTES: tuple[Route, ...] = tuple(route for provider in PROVIDERS for route in provider.routes)
"""Every route to any of them; the first of each door is that of servers which have no other."""

_BY_NAME = {provider.name: provider for provider in PROVIDERS}


def provider_of(dialect: str) -> Provider | None:
    """Return the provider of a wire format by its name; None for an engine of the user's own.

    Example:
        >>> provider_of("anthropic").name
        'anthropic'
    """
    return _BY_NAME.get(dialect)


def named(dialect: str) -> Sequence[Provider]:
    """Return the provider that a caller asked for by name, alone in a sequence.

    Raises:
        InvalidOption: for an unknown name.

    Example:
        >>> [provider.name for provider in named("gemini")]
        ['gemini']
    """
    provider = _BY_NAME.get(dialect)
    if provider is None:
        fix = f"Use one of {', '.join(_BY_NAME)}."
        raise InvalidOption(f"{dialect!r} is not a known dialect", field="dialect", fix=fix)
    return (provider,)
