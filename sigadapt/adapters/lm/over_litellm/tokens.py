"""Count the tokens of a text with the encoding that LiteLLM ships, without a network."""

from collections.abc import Callable


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
