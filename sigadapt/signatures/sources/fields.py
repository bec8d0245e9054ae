"""The arguments of a `ToolDecl`: what a source's file returns for each tool, and what may override it."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict

from sigadapt.json_values import Json

Fields: TypeAlias = dict[str, Any]
"""Arguments of `ToolDecl` as a source has them, unchecked; one that is missing or None has its default."""


class DeclFields(TypedDict, total=False):
    """The arguments of `ToolDecl` that a person may write: in a dict of a tool, or over any source."""

    name: str
    description: str | None
    parameters: Json | None
    returns: Json | None
    strict: bool | None
    long_running: bool
    requires_confirmation: bool | Callable[[dict[str, Any]], Any]
    extras: Json | None
    format: Json | None
    timeout: float | None
    sequential: bool
    instructions: str | None
    check_result: bool
    external: bool


DECL_FIELDS = tuple(DeclFields.__annotations__)
"""Their names, in order."""


class Uncallable:
    """An object that DSPy's agents may take for a function, although no file of this folder should."""

    __slots__ = ()
