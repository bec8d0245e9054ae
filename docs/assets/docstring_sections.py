"""Help griffe, which reads the code for the reference, with four of the package's habits.

`Example:` is a section of code, which griffe knows as `Examples:` alone. `Args:` of a class without a
constructor of its own, such as a pydantic model or a named tuple, are its attributes. `(nothing silent)` is a
link to that rule. A pydantic model whose constructor is inherited is shown with its fields.
"""  # noqa: INP001  (mkdocs loads the file)

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import griffe
from pydantic import BaseModel

RULES = (Path(__file__).parents[1] / "design.md").read_text(encoding="utf-8")
TITLES = [title.lower() for title in re.findall(r"^### (.+)$", RULES, re.MULTILINE)]
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
        if not made and "__init__" not in cls.members:
            self._show_fields(cls)

    def _show_fields(self, cls: Any) -> None:
        """Give one pydantic model a constructor with its fields, as they are written in the code."""
        real: Any = getattr(importlib.import_module(cls.module.path), cls.name, None)
        if not (isinstance(real, type) and issubclass(real, BaseModel)):
            return
        fields = [griffe.Parameter("self")]
        for each in inspect.signature(real).parameters.values():
            written = cls.members.get(each.name)
            if each.kind is each.KEYWORD_ONLY:
                annotation = written.annotation if written else None
                if annotation is None or str(annotation).startswith("_"):  # inherited, or a private alias
                    plain = inspect.formatannotation(real.model_fields[each.name].annotation)
                    annotation = plain.replace("typing.", "")
                default = None if each.default is each.empty else repr(each.default)
                if default and (len(default) > 20 or "<" in default):
                    default = "..."
                kind = griffe.ParameterKind.keyword_only
                fields.append(griffe.Parameter(each.name, annotation=annotation, default=default, kind=kind))
        cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*fields)))


def _link(cited: re.Match[str]) -> str:
    return f"([{cited[1]}](../design.md#{cited[1].replace(' ', '-')}))"
