"""The table of wires that a loopback provider speaks. A new wire is one new file here and one row."""

from collections.abc import Mapping
from types import MappingProxyType

from sigadapt.testing.wires import anthropic, gemini, ollama, openai_chat, openai_responses
from sigadapt.testing.wires.wire import Wire

# Measured: dspy.LM's native engine appends the end of a path to api_base (`/messages`); LiteLLM appends the
# whole path for Anthropic and Ollama (`/v1/messages`). These suffixes work with both engines.
# A model that names no API is asked on one that DSPy 3.5 chooses.
# The native engine speaks OpenAI chat to Ollama. Only LiteLLM reaches Ollama's own wire, as `ollama_chat/...`
# (`ollama/...` goes to /api/generate, which has no tools).
_ROWS = (
    Wire("openai", openai_chat, "openai/gpt-4o-mini", "/v1", {"model_type": "chat"}),
    Wire("responses", openai_responses, "openai/gpt-5", "/v1", {"model_type": "responses"}),
    Wire("anthropic", anthropic, "anthropic/claude-sonnet-4-6"),
    Wire("gemini", gemini, "gemini/gemini-2.5-flash", "/v1beta"),
    Wire("ollama", ollama, "ollama_chat/llama3.1", options={"engine": "litellm"}),
)

WIRES: Mapping[str, Wire] = MappingProxyType({row.name: row for row in _ROWS})
"""Every wire by its name: `openai`, `responses`, `anthropic`, `gemini`, `ollama`."""


def wire_at(path: str) -> Wire | None:
    """Return the wire that serves a path with its query, or None."""
    return next((row for row in _ROWS if row.format.PATH.fullmatch(path)), None)
