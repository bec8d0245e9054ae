"""The language model of the examples: the one that the command line names, or a scripted one.

    python examples/evaluation.py                      # scripted on this machine: no key, no network
    python examples/evaluation.py openai/gpt-4o-mini   # a real one, with your key in OPENAI_API_KEY

Your own program doesn't need this file. Use `dspy.LM("openai/gpt-4o-mini")` instead.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else a table of prices is downloaded

import dspy

from sigadapt.testing import LoopbackProvider, Script


def named() -> list[str]:
    """The models that the command line names, such as `openai/gpt-4o-mini`."""
    return [argument for argument in sys.argv[1:] if "/" in argument]


@contextmanager
def language_model(script: Script, wire: str = "openai", number: int = 0) -> Iterator[dspy.LM]:
    """Give the model that the command line names, or one that answers on this machine as the script says.

    Args:
        script: the answers of the scripted model, or a function from the request to an answer.
        wire: the provider whose format it speaks.
        number: which of the models on the command line to use, if an example needs several.
    """
    if named():
        yield dspy.LM(named()[number % len(named())])
        return
    with LoopbackProvider(script) as provider:
        yield dspy.LM(**provider.lm_options(wire))
