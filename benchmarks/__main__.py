"""Measure everything and write the section of docs/measured.md; with names, print those parts alone.

python -m benchmarks [wholecall|streamed|adapters|agents ...]
"""

import importlib
import logging
import os
import subprocess
import sys
from collections.abc import Sequence

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from benchmarks import measured
from benchmarks.tree import stamp

PARTS = ("wholecall", "streamed", "adapters", "agents")
SECONDS = 4.0
PEERS = ("dspy", "litellm", "openai", "langchain-openai", "pydantic-ai-slim")

INTRODUCTION = """\
## What a call costs

{stamp}

`python3 tasks.py bench` writes this section. Ratios hold on other machines; the processor times don't.
What is compared takes turns, in an order drawn anew each round.
"""


def tables(part: str) -> str:
    """The tables of one part, each of their rows measured for so many seconds."""
    try:
        found = importlib.import_module(f"benchmarks.{part}").tables(SECONDS)
    except ModuleNotFoundError as error:  # of a library beside which it measures
        return f"The part `{part}` is left out: {error}.\n"
    return "\n".join(table.markdown() for table in found)


def apart(part: str) -> str:
    """The same from a process of its own: what one part leaves in memory would slow the next."""
    command = [sys.executable, "-m", "benchmarks", part]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def section(parts: Sequence[str]) -> str:
    """The whole section."""
    head = INTRODUCTION.format(stamp=stamp(*PEERS))
    return "\n".join([head, *(part.rstrip() + "\n" for part in parts)])


def main(parts: Sequence[str]) -> None:
    """Write the section, or print some parts of it."""
    logging.getLogger("dspy").setLevel(logging.ERROR)
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        sys.exit(f"bench: no part is named {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    if parts:
        print("\n".join(map(tables, parts)))
    else:
        measured.write("bench", section([apart(part) for part in PARTS]))


if __name__ == "__main__":
    main(sys.argv[1:])
