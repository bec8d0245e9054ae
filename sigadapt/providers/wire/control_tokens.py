"""Control tokens of chat templates, broken and whole again.

    "<|im_end|>" <-> "<\u200d|im_end|>"

A zero-width joiner behind a token's first character makes other tokens of the text, which no template knows.
A model reads it as the same word, and most repeat the joiner.
"""

import re
from collections.abc import Sequence
from typing import Any

from sigadapt.schemas.json_values import Json, compact, is_array, is_object

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
