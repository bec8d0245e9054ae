"""What each wire needs that the canonical request cannot say, as data (DESIGN section 6).

lm15 and LiteLLM translate the request; a row here says only what they get wrong or cannot know, measured on
dspy 3.4.1 and litellm 1.106. The code that reads a row is in `lowering.py` and `lm15_request.py`; a new wire
is a new row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

_ALL_CHOICES = frozenset({"auto", "required", "none", "named", "subset"})
_NO_SUBSET = _ALL_CHOICES - {"subset"}
_PLAIN = r"[a-zA-Z0-9_-]+"
_ANY = r"(?s).+"


@dataclass(frozen=True, slots=True)
class Profile:
    """One wire, over one route.

    Args:
        dialect: the wire format's name, as the readers have it.
        replays: who puts a turn's provider state back: `lm15` as continuation of its parts, `litellm` as
            fields of a chat message.
        choices: the forms of tool choice that get through.
        parallel: whether `parallel_tool_calls` gets through.
        forces_with_thinking: whether the provider takes a forced choice while thinking is on.
        formats_beside_tools: whether the provider takes a response format beside tools.
        strict: whether a strict flag on a tool gets through.
        marks_failed_results: whether a failed tool result has a flag of its own there; where it has none, its
            text begins with `ERROR: `.
        makes_results_objects: whether results are objects that the route makes only of text that is one.
        replays_reasoning_content: whether an OpenAI-compatible server wants its `reasoning_content` back.
        names: what a tool's name may be, as a regular expression for the whole of it.
        longest_name: how many characters it may have.
        ids: what a call's id may be, likewise.
        longest_id: how many characters it may have.
        keywords: the keywords of a tool's schema that get through, where others do not; None where all do.
    """

    dialect: str
    replays: Literal["lm15", "litellm"]
    choices: frozenset[str] = _ALL_CHOICES
    parallel: bool = True
    forces_with_thinking: bool = True
    formats_beside_tools: bool = True
    strict: bool = False
    marks_failed_results: bool = False
    makes_results_objects: bool = False
    replays_reasoning_content: bool = False
    names: str = _PLAIN
    longest_name: int = 64
    ids: str = _ANY
    longest_id: int = 1_000
    keywords: frozenset[str] | None = None

    def takes(self, state: Mapping[str, Any]) -> bool:
        """Whether a turn's provider state can go back over this wire."""
        if self.replays == "lm15":
            return state["dialect"] == self.dialect
        return self.dialect in _LITELLM_TAKES.get(state["dialect"], ())


_LITELLM_TAKES = {
    "anthropic": ("anthropic", "bedrock-converse"),
    "gemini": ("gemini",),
    "openai-chat": ("openai-chat", "ollama"),
}
"""Whose state LiteLLM puts back over which of its wires."""


def _by_dialect(*profiles: Profile) -> dict[str, Profile]:
    return {profile.dialect: profile for profile in profiles}


# Source of the names: the tool or function reference of each provider.
_GEMINI_NAMES = r"[a-zA-Z_][a-zA-Z0-9_.:-]*"

# Source: Gemini's `Schema`, as LiteLLM has it.
_GEMINI_KEYWORDS = frozenset(
    {
        *("type", "format", "title", "description", "nullable", "default", "items", "minItems"),
        *("maxItems", "enum", "properties", "propertyOrdering", "required", "minProperties"),
        *("maxProperties", "minimum", "maximum", "minLength"),
        *("maxLength", "pattern", "example", "anyOf"),
    }
)

NATIVE = _by_dialect(
    Profile("openai-chat", replays="lm15", strict=True, longest_id=40),
    Profile("openai-responses", replays="lm15", strict=True, longest_id=64),
    Profile(
        "anthropic",
        replays="lm15",
        choices=_NO_SUBSET,
        forces_with_thinking=False,
        marks_failed_results=True,
        ids=_PLAIN,
        longest_id=64,
    ),
    Profile(
        "gemini",
        replays="lm15",
        parallel=False,
        formats_beside_tools=False,
        marks_failed_results=True,
        names=_GEMINI_NAMES,
    ),
)
"""Wires that lm15 speaks; what it lowers besides is on the history entry as `adaptations`."""

NATIVE_OLLAMA = replace(
    NATIVE["openai-chat"], choices=frozenset[str](), parallel=False, formats_beside_tools=False, strict=False
)
"""Ollama's OpenAI-compatible door, which takes a tool choice and ignores it."""

LITELLM = _by_dialect(
    Profile("openai-chat", replays="litellm", choices=_NO_SUBSET, strict=True, longest_id=40),
    Profile("openai-responses", replays="lm15", choices=_NO_SUBSET, strict=True, longest_id=64),
    Profile(
        "anthropic",
        replays="litellm",
        choices=_NO_SUBSET,
        forces_with_thinking=False,
        ids=_PLAIN,
        longest_id=64,
    ),
    Profile(
        "gemini",
        replays="litellm",
        choices=_NO_SUBSET,
        parallel=False,
        formats_beside_tools=False,
        marks_failed_results=True,
        makes_results_objects=True,
        names=_GEMINI_NAMES,
        keywords=_GEMINI_KEYWORDS,
    ),
    Profile(
        "ollama",
        replays="litellm",
        choices=frozenset(),
        parallel=False,
        formats_beside_tools=False,
        replays_reasoning_content=True,
    ),
    Profile(
        "bedrock-converse",
        replays="litellm",
        choices=_NO_SUBSET - {"none"},
        parallel=False,
        forces_with_thinking=False,
    ),
    Profile("cohere", replays="litellm", choices=_NO_SUBSET, parallel=False),
)
"""Wires that LiteLLM speaks, from OpenAI chat messages, which have no flag for a failed result."""

ENGINE = Profile(
    "lm15",
    replays="lm15",
    marks_failed_results=True,
    names=_ANY,
    longest_name=1_000_000,
    longest_id=1_000_000,
)
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

LITELLM_REASONING = frozenset({"deepseek", "moonshot"})
"""Prefixes of OpenAI-compatible providers that want their `reasoning_content` back through LiteLLM."""
