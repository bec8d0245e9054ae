"""What each wire needs that the canonical request cannot say, as data (DESIGN section 6).

lm15 and LiteLLM translate the request; a row here says only what they get wrong or cannot know. The code that
reads a row is in `transport.py`; a new wire is a new row.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Profile:
    """One wire, over one route.

    Args:
        dialect: the wire format's name, as the readers have it.
        replays: who puts a turn's provider state back: `lm15` as continuation of its parts, `litellm` as fields
            of a chat message.
        replays_reasoning_content: whether an OpenAI-compatible server wants its `reasoning_content` back.
        marks_failed_results: whether a failed tool result has a flag of its own there; where it has none, its
            text begins with `ERROR: `.
    """

    dialect: str
    replays: Literal["lm15", "litellm"]
    replays_reasoning_content: bool = False
    marks_failed_results: bool = False


NATIVE = {
    profile.dialect: profile
    for profile in (
        Profile("openai-chat", replays="lm15"),
        Profile("openai-responses", replays="lm15"),
        Profile("anthropic", replays="lm15", marks_failed_results=True),
        Profile("gemini", replays="lm15", marks_failed_results=True),
    )
}
"""Wires that lm15 speaks; Ollama is an openai-chat one there."""

LITELLM = {
    profile.dialect: profile
    for profile in (
        Profile("openai-chat", replays="litellm"),
        Profile("openai-responses", replays="lm15"),
        Profile("anthropic", replays="litellm"),
        Profile("gemini", replays="litellm"),
        Profile("ollama", replays="litellm"),
        Profile("bedrock-converse", replays="litellm"),
        Profile("cohere", replays="litellm"),
    )
}
"""Wires that LiteLLM speaks, from OpenAI chat messages, which have no flag for a failed result."""

ENGINE = Profile("lm15", replays="lm15", marks_failed_results=True)
"""An engine of the user's own, which takes lm15's types as they are."""

LITELLM_DIALECTS = {
    "anthropic": "anthropic",
    "bedrock": "bedrock-converse",
    "cohere": "cohere",
    "cohere_chat": "cohere",
    "gemini": "gemini",
    "ollama": "ollama",
    "ollama_chat": "ollama",
    "vertex_ai": "gemini",
}
"""The wire that LiteLLM speaks for a model's prefix; any other prefix is an OpenAI-compatible one."""
