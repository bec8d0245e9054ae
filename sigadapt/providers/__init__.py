"""The table of providers and of the routes to them. A new provider is one new file and one row here."""

from sigadapt.errors import InvalidOption
from sigadapt.providers import (
    anthropic,
    bedrock,
    cohere,
    gemini,
    gemini_interactions,
    mistral_conversations,
    ollama,
    openai_chat,
    openai_responses,
)
from sigadapt.providers.provider import Provider
from sigadapt.providers.route import Route

CHAT: Provider = openai_chat.PROVIDER

PROVIDERS: tuple[Provider, ...] = (
    CHAT,
    openai_responses.PROVIDER,
    anthropic.PROVIDER,
    gemini.PROVIDER,
    gemini_interactions.PROVIDER,
    mistral_conversations.PROVIDER,
    ollama.PROVIDER,
    bedrock.PROVIDER,
    cohere.PROVIDER,
)
"""All providers. The first one whose `is_body` or `is_event` accepts a body or an event reads it."""

ROUTES: tuple[Route, ...] = tuple(route for provider in PROVIDERS for route in provider.routes)
"""The routes of all providers. The first of each client is for servers that have no route of their own."""

BY_WIRE = {provider.name: provider for provider in PROVIDERS}
"""The provider of each wire format. The engine that a user made has a dialect that is not among them."""


def provider_named(name: object, option: str = "dialect") -> Provider:
    """Return the provider that a caller named with an option; InvalidOption for an unknown one."""
    provider = BY_WIRE.get(name) if isinstance(name, str) else None
    if provider is None:
        fix = f"Use one of {', '.join(BY_WIRE)}."
        raise InvalidOption(f"{name!r} is not a known {option}", field=option, fix=fix)
    return provider


# `gen_ai.provider.name` of OpenTelemetry's GenAI conventions, by how a model's name begins. The name is the
# flavour of the telemetry: a gateway that speaks OpenAI is `openai`. What the conventions do not know has a
# name of its own. Source: the registry of open-telemetry/semantic-conventions-genai; read on 2026-11-28.
_BY_PREFIX = {
    "anthropic": "anthropic",
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
    "cohere_chat": "cohere",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "groq": "groq",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "ollama": "ollama",
    "ollama_chat": "ollama",
    "openai": "openai",
    "perplexity": "perplexity",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}


def telemetry_name(model: str, wire: str = "") -> str:
    """Return a provider's name in traces, by the name of its model or by the wire that is spoken."""
    prefix = model.partition("/")[0] if "/" in model else ""
    return _BY_PREFIX.get(prefix) or BY_WIRE.get(wire, CHAT).telemetry
