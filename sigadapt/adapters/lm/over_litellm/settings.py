"""Generation settings that LiteLLM takes and lm15 has no place for.

Settings of one provider (`num_ctx`, `thinking`), fields for the body (`extra_body`), LiteLLM's own switches
and the connection of a cloud. As under DSPy's own adapters, a model with such a setting is asked over LiteLLM
unless the engine is fixed (`routes.py`), and `to_lm15.py` puts these settings beside the request.
"""

from collections.abc import Mapping
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
