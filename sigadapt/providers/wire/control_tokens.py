"""Control tokens of chat templates, broken and whole again, and which servers may read them.

    "<|im_end|>" <-> "<\u200d|im_end|>"

Servers of open models write a conversation as one text, with the template of the model, and some read the
control tokens that stand in a text of it as their own. The big providers keep texts and tokens apart.

A zero-width joiner behind a token's first character makes other tokens of the text, which no template knows.
A model reads it as the same word, and most repeat the joiner.
"""

import re
from collections.abc import Sequence
from typing import Any

from sigadapt.json_values import Json, compact, is_array, is_object

JOINER = "\u200d"
JOINER_IN_JSON = (JOINER, "\\u200")  # as it is, or the beginning of its escape

# Sources: the chat templates and the tokenizers of the models, read in November 2026.
_AFTER_LESS = (
    r"\|[^\s<>|]{1,64}(?:\|>|>)",  # `<|im_end|>`: ChatML, Llama 3, Phi, GLM, Kimi, Cohere, gpt-oss; `<|turn>`
    r"[a-z_]{1,32}\|>",  # `<turn|>` of Gemma 4
    r"\uff5c[^\s<>\uff5c]{1,64}\uff5c>",  # `<\uff5cUser\uff5c>` of DeepSeek and Hunyuan
    r"/?(?:s|bos|eos|pad|unk)>",  # Llama 2, Mistral, Gemma
    r"(?:start|end)_of_(?:turn|image|audio)>",  # Gemma 3
    r"/?tool_(?:call|calls|response|responses|result|results)>",  # Hermes, Qwen, GLM
    r"</?SYS>>",  # Llama 2
    r"/?seed:[a-z_]{1,32}>",  # Seed
)
_AFTER_OPENING = (
    r"/?(?:INST|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|AVAILABLE_TOOLS)\]",  # Mistral
    r"/?(?:SYSTEM_PROMPT|ARGS|CALL_ID|THINK)\]",
    r"unused\d{1,3}\]",  # Pangu
    r"e~\[",  # MiniMax
)
_AFTER_CLOSING = (r"~b\]", r"~!b\[")  # MiniMax
_RESTS = (("<", _AFTER_LESS), (r"\[", _AFTER_OPENING), (r"\]", _AFTER_CLOSING))
_BEFORE_REST = re.compile("|".join(f"(?<={first})(?={'|'.join(rests)})" for first, rests in _RESTS))
_BROKEN = re.compile("|".join(f"(?<={first}){JOINER}(?={'|'.join(rests)})" for first, rests in _RESTS))


def with_broken_tokens(text: str) -> str:
    """Return a text with a joiner in each control token; itself if it has none."""
    return _BEFORE_REST.sub(JOINER, text)


def with_whole_tokens(text: str) -> str:
    """Return a text without the joiners that `with_broken_tokens` put there."""
    return _BROKEN.sub("", text) if JOINER in text else text


def values_with_whole_tokens(value: Any) -> Any:
    """Return a JSON value in which each text, and each key of an object, has whole tokens."""
    if isinstance(value, str):
        return with_whole_tokens(value)
    if is_array(value):
        return [values_with_whole_tokens(part) for part in value]
    if is_object(value):
        return {with_whole_tokens(key): values_with_whole_tokens(part) for key, part in value.items()}
    return value


def with_broken_descriptions(tools: Sequence[Json]) -> list[Json] | None:
    """Return tools whose descriptions, wherever they stand, have broken tokens; None if they hold none."""
    if _BEFORE_REST.search(compact([*tools])) is None:
        return None
    written: list[Json] = [_with_broken_description(tool) for tool in tools]
    return None if written == [*tools] else written


def _with_broken_description(value: Any) -> Any:
    if is_array(value):
        return [_with_broken_description(part) for part in value]
    if not is_object(value):
        return value
    fields: Json = {}
    for key, part in value.items():
        is_words = key == "description" and isinstance(part, str)
        fields[key] = with_broken_tokens(part) if is_words else _with_broken_description(part)
    return fields


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
