"""The names of providers in traces, as OpenTelemetry's GenAI conventions have them (`gen_ai.provider.name`).

Source: the attribute registry of open-telemetry/semantic-conventions-genai; read on 2026-11-28. The name is
the flavour of the telemetry: a gateway that speaks OpenAI is `openai`. What the conventions do not know has a
name of its own.
"""

from sigadapt.providers import BY_WIRE, CHAT

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
