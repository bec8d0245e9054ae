"""docs/measured.md, of which each recipe writes its own section, between two comments with its name."""

import re

from benchmarks.tree import ROOT

PAGE = ROOT / "docs" / "measured.md"


def section(name: str) -> str:
    """Return a section as the page has it.

    Example:
        >>> section("bench").startswith("## What a call costs")
        True
    """
    found = _between(name).search(PAGE.read_text(encoding="utf-8"))
    if found is None:
        raise KeyError(f"{PAGE.name} has no section {name!r}")
    return found[2]


def write(name: str, text: str) -> None:
    """Put a section in the place of the one that the page has."""
    section(name)
    page = PAGE.read_text(encoding="utf-8")
    changed = _between(name).sub(lambda found: f"{found[1]}{text.strip()}{found[3]}", page)
    PAGE.write_text(changed, encoding="utf-8")


def _between(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n\n)(.*?)(\n\n<!-- /{name} -->)", re.DOTALL)
