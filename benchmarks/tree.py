"""The line at the top of a measured page: when, with what, and on which tree of `sigadapt/`."""

import platform
import subprocess
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def stamp(*libraries: str) -> str:
    """Return the line, which `tasks.py release` compares with the tree that is released.

    Example:
        >>> stamp("dspy").startswith("Measured on 20")
        True
    """
    is_clean = not _git("status", "--porcelain", "sigadapt")
    tree = _git("rev-parse", "HEAD:sigadapt") if is_clean else "uncommitted"
    there = {each.name: each.version for each in metadata.distributions()}
    versions = ", ".join(f"{name} {there.get(name, '(not installed)')}" for name in libraries)
    day, python = datetime.now(timezone.utc).date(), platform.python_version()
    return f"Measured on {day}, on tree `{tree}` of `sigadapt/`, with Python {python}, {versions}."


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
