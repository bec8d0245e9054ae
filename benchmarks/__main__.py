"""Measure everything and write docs/benchmarks.md; with names, print those parts alone.

python -m benchmarks [wholecall|streamed|adapters|agents ...]
"""

import importlib
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from benchmarks.tree import stamp

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
PARTS = ("wholecall", "streamed", "adapters", "agents")
SECONDS = 4.0
PEERS = ("dspy", "litellm", "openai", "langchain-openai", "pydantic-ai-slim")

INTRODUCTION = """\
# Benchmarks

{stamp}

`python3 tasks.py bench` writes this page in about five minutes. To print only some parts, name them:
`python3 tasks.py bench wholecall streamed adapters agents`. Ratios come first, because they hold on other
machines. All times are processor time on a machine with 2 cores. What is compared takes turns, in an order
drawn anew each round. The other libraries have the versions of constraints.txt, because they run in one
process with DSPy and LiteLLM; [the board](board.md) has newer ones.
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


def page(parts: Sequence[str]) -> str:
    """The whole page."""
    head = INTRODUCTION.format(stamp=stamp(*PEERS))
    return "\n".join([head, *(part.rstrip() + "\n" for part in parts)])


def main(parts: Sequence[str]) -> None:
    """Write the page, or print some parts of it."""
    logging.getLogger("dspy").setLevel(logging.ERROR)
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        sys.exit(f"bench: no part is named {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
    if parts:
        print("\n".join(map(tables, parts)))
    else:
        PAGE.write_text(page([apart(part) for part in PARTS]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
