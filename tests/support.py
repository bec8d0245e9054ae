"""What many tests need: every route by a short name."""

from sigadapt.commands.check import ROUTE_NAMES
from sigadapt.providers import ROUTES
from sigadapt.providers.provider import Route

NATIVE: dict[str, Route] = {name: route for name, route in ROUTE_NAMES.items() if route.door == "lm15"}
"""The routes that lm15 writes, by dialect."""

LITELLM: dict[str, Route] = {r.dialect: r for r in ROUTE_NAMES.values() if r.door == "litellm"}
"""The routes that LiteLLM writes, by dialect."""

NATIVE_OLLAMA = next(route for route in ROUTES if route.server)
"""Ollama's OpenAI-compatible door."""
