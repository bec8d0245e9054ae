"""What LiteLLM alone knows: settings that lm15 has no place for, and how many tokens a text has.

Settings of one provider (`num_ctx`, `thinking`), fields for the body (`extra_body`), LiteLLM's own switches
and the connection of a cloud. As under DSPy's own adapters, a model with such a setting is asked over LiteLLM
unless the engine is fixed (`routes.py`), and `to_lm15.py` puts these settings beside the request.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dspy import lm15

_HELD = frozenset(
    {
        *("temperature", "max_tokens", "max_completion_tokens", "top_p", "stop", "seed"),
        *("response_format", "reasoning_effort", "frequency_penalty", "presence_penalty"),
    }
)
"""The usual settings, which lm15 takes. Others are tried."""


def litellm_only(generation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that only LiteLLM takes."""
    if generation.keys() <= _HELD:
        return {}
    return {key: value for key, value in generation.items() if key not in _HELD and not _is_held(key, value)}


def _is_held(key: str, value: Any) -> bool:
    try:
        lm15.request_from_openai_chat({"model": "any", "messages": _ANYTHING, key: value})
    except lm15.UnsupportedFeatureError:
        return False
    except (lm15.LM15Error, TypeError, ValueError):  # a wrong value, for which `to_lm15` raises lm15's reason
        return True
    return True


_ANYTHING = [{"role": "user", "content": ""}]


def token_counter() -> tuple[str, Callable[[str], int]]:
    """Return how tokens are counted, in words, and what counts them."""
    # LiteLLM ships one encoding of OpenAI's, `cl100k_base`, as a file. Other models cut text otherwise, so it
    # is an estimate for them, and good for comparing the parts of a request. If the encoding cannot be had,
    # tokens are estimated as a quarter of the bytes.
    try:
        from litellm.litellm_core_utils.default_encoding import encoding  # a heavy import
    except Exception:  # its file may be missing, and it would be downloaded
        return "estimated as a quarter of the bytes", lambda text: (len(text.encode()) + 3) // 4
    how = f"counted with {encoding.name} (tiktoken), an estimate for models with other tokens"
    return how, lambda text: len(encoding.encode(text, disallowed_special=()))
