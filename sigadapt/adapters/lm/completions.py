"""A conversation for a text-completion model, which takes one prompt and answers with text."""

from typing import Any

from sigadapt.adapters.request.canonical import Request

_NOT_PASSED = frozenset(("model", "messages", "n"))


def completion_prompt(request: Request) -> str:
    """Return the conversation as one prompt: the texts of the messages, a blank line between them."""
    # DSPy ends every prompt of such a model with "BEGIN RESPONSE:" itself.
    return "\n\n".join(_text(row["content"]) for row in request["messages"])


def completion_settings(request: Request) -> dict[str, Any]:
    """Return the generation settings of a request as keywords of the language model."""
    return {**{key: value for key, value in request.items() if key not in _NOT_PASSED}, "n": 1}


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part["text"] for part in content if "text" in part)
