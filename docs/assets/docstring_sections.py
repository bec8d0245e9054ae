"""Help griffe, which reads the docstrings for the reference, with three of the package's habits.

`Example:` is a section of code, which griffe knows as `Examples:` alone. `Args:` of a class without a
constructor of its own, such as a pydantic model or a named tuple, are its attributes. `(nothing silent)` is a
link to that rule.
"""  # noqa: INP001  (mkdocs loads the file)

import re
from pathlib import Path
from typing import Any

import griffe

RULES = (Path(__file__).parents[1] / "rules.md").read_text(encoding="utf-8")
TITLES = [title.lower() for title in re.findall(r"^## (.+)$", RULES, re.MULTILINE)]
"""The rules, as docstrings cite them."""
CITED = re.compile(rf"\(({'|'.join(TITLES)})\)")


class DocstringSections(griffe.Extension):
    """Change the docstrings while they are read; the code keeps its own words."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rename `Example:` and link the rules in one object's docstring."""
        if not obj.is_alias and obj.docstring is not None:
            text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = CITED.sub(_link, text)

    def on_class(self, *, cls: Any, **_: Any) -> None:
        """Rename `Args:` of one class where they are attributes."""
        made = any("dataclass" in str(decorator.value) for decorator in cls.decorators)
        if cls.docstring is not None and not made and "__init__" not in cls.members:
            found = re.sub(r"^Args:$", "Attributes:", cls.docstring.value, flags=re.MULTILINE)
            cls.docstring.value = found


def _link(cited: re.Match[str]) -> str:
    return f"([{cited[1]}](../rules.md#{cited[1].replace(' ', '-')}))"
