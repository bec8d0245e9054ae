"""Help griffe, which reads the docstrings for the reference, with three of the package's habits.

`Example:` is a section of code, which griffe knows as `Examples:` alone. `Args:` of a class without a
constructor of its own, such as a pydantic model or a named tuple, are its attributes. `(rule 3)` is a link.
"""  # noqa: INP001  (mkdocs loads the file)

import re
from pathlib import Path
from typing import Any

import griffe

RULES = (Path(__file__).parents[1] / "rules.md").read_text(encoding="utf-8")
ANCHORS = {
    number: f"{number}-{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}"
    for number, title in re.findall(r"^## (\d+)\. (.+)$", RULES, re.MULTILINE)
}
"""The place of each rule on its page, as mkdocs writes it."""


class DocstringSections(griffe.Extension):
    """Change the docstrings while they are read; the code keeps its own words."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rename `Example:` and link the rules in one object's docstring."""
        if not obj.is_alias and obj.docstring is not None:
            text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r"\(rule (\d+)\)", _link, text)

    def on_class(self, *, cls: Any, **_: Any) -> None:
        """Rename `Args:` of one class where they are attributes."""
        made = any("dataclass" in str(decorator.value) for decorator in cls.decorators)
        if cls.docstring is not None and not made and "__init__" not in cls.members:
            found = re.sub(r"^Args:$", "Attributes:", cls.docstring.value, flags=re.MULTILINE)
            cls.docstring.value = found


def _link(cited: re.Match[str]) -> str:
    return f"([rule {cited[1]}](../rules.md#{ANCHORS[cited[1]]}))"
