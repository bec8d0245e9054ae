"""Which servers may read a conversation through a chat template, in which a text can look like a turn.

Servers of open models write a conversation as one text, with the template of the model, and some read the
control tokens that stand in a text of it as their own. The big providers keep texts and tokens apart.
"""

_WIRES = frozenset(("openai-chat", "openai-responses", "ollama"))
"""On other wires, blocks go to one provider each, and all of these are big."""

_BIG_HOSTS = (
    *("api.openai.com", "openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com"),
    *("api.anthropic.com", "googleapis.com", "amazonaws.com", "api.aws", "api.mistral.ai", "api.x.ai"),
    *("api.deepseek.com", "api.cohere.com", "api.cohere.ai", "api.groq.com", "api.perplexity.ai"),
    *("api.moonshot.ai", "api.moonshot.cn", "api.z.ai", "bigmodel.cn", "dashscope.aliyuncs.com"),
    *("dashscope-intl.aliyuncs.com", "api.minimax.io", "api.cerebras.ai", "openrouter.ai"),
)
"""Hosts, each with what is below it, whose texts cannot become control tokens."""

_LOCAL_PREFIXES = frozenset(
    (
        "ollama",
        "ollama_chat",
        "vllm",
        "hosted_vllm",
        "sglang",
        "lm_studio",
        "llamafile",
        "llama_cpp",
        "docker",
    )
) | {"docker_model_runner", "xinference", "oobabooga", "lemonade"}
"""How the names of models begin whose servers are nobody's but the program's, with or without an address."""


def reads_template(wire: str, prefix: str, netloc: str) -> bool:
    """Return whether the server of a wire may do so, given the model's prefix and the server's address.

    `netloc` is the host with its port, empty for the address that a provider has by default.
    """
    if wire not in _WIRES:
        return False
    if prefix in _LOCAL_PREFIXES:
        return True
    host = f".{netloc.partition(':')[0]}"
    return bool(netloc) and not host.endswith(tuple(f".{big}" for big in _BIG_HOSTS))
