"""Measure everything and write docs/benchmarks.md; with names, print those parts alone.

python -m benchmarks [adapters|decoding|starting|concurrency|memory ...]
"""

import importlib
import logging
import os
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from benchmarks.measure import Table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
PARTS = ("adapters", "decoding", "starting", "concurrency", "memory")
SECONDS = 4.0
PEERS = ("dspy", "litellm", "openai", "langchain-openai", "pydantic-ai-slim")

INTRODUCTION = """\
# Benchmarks

Written by `python3 tasks.py bench`, which installs the libraries that are compared and takes about ten
minutes. With names of parts it prints those alone: `python3 tasks.py bench adapters decoding starting
concurrency memory`. Ratios come first, because they hold on other machines, and what is compared was measured
in turn, call by call.

The machine: 2 cores. Python {python}; {versions}.
"""


def tables(parts: Sequence[str], seconds: float) -> list[Table]:
    """The tables of some parts, each of their rows measured for so many seconds."""
    return [
        table for part in parts for table in importlib.import_module(f"benchmarks.{part}").tables(seconds)
    ]


def page(found: Sequence[Table]) -> str:
    """The whole page."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in PEERS)
    head = INTRODUCTION.format(python=platform.python_version(), versions=versions)
    return "\n".join([head, *(table.markdown() for table in found)])


def main(parts: Sequence[str]) -> None:
    """Write the page, or print some parts of it."""
    logging.getLogger("dspy").setLevel(logging.ERROR)
    found = tables(parts or PARTS, SECONDS)
    if parts:
        print("\n".join(table.markdown() for table in found))
    else:
        PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
