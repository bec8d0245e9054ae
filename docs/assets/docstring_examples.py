"""Help griffe, which reads the docstrings for the reference, with two of the package's habits.

`Example:` is a section of code, which griffe knows as `Examples:` alone. And `Args:` of a class without a
constructor of its own, such as a pydantic model or a named tuple, are its attributes.
"""  # noqa: INP001  (mkdocs loads the file)

import re
from typing import Any

import griffe


class DocstringSections(griffe.Extension):
    """Rename the sections while the docstrings are read; the code keeps its own words."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Rename `Example:` in one object's docstring."""
        if not obj.is_alias and obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)

    def on_class(self, *, cls: Any, **_: Any) -> None:
        """Rename `Args:` of one class where they are attributes."""
        made = any("dataclass" in str(decorator.value) for decorator in cls.decorators)
        if cls.docstring is not None and not made and "__init__" not in cls.members:
            found = re.sub(r"^Args:$", "Attributes:", cls.docstring.value, flags=re.MULTILINE)
            cls.docstring.value = found
