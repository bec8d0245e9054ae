"""The command `sigadapt`: one file for each verb, and what they share."""

import os
from collections.abc import Sequence

__all__ = ["main"]

# Without these, LiteLLM and DSPy each download a price list when first used.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or those of the process, and return its exit code."""
    from sigadapt.commands import cli  # its parser is for the command alone

    return cli.main(arguments)
