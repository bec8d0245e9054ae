"""RawDecl: what a source says about one tool. The source's file returns it; a `ToolDecl` is made from it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json


class RawDecl(NamedTuple):
    """One tool as its source describes it, unchecked unless `derived`."""

    name: object
    description: object = None
    parameters: Any = None
    returns: Any = None
    strict: Any = None
    long_running: bool = False
    requires_confirmation: bool = False
    extras: Json | None = None
    format: Any = None
    func: Callable[..., Any] | None = None
    search: Any = None
    timeout: float | None = None
    sequential: bool = False
    instructions: str = ""
    check_result: bool = False
    hooks: tuple[object, ...] = ()
    external: bool = False
    derived: bool = False

    @property
    def function(self) -> Callable[..., Any]:
        """The function behind a tool that is to be run."""
        if self.func is None:
            raise InvalidToolDecl(
                "it has no function to run",
                code="no_function",
                tool=str(self.name),
                fix="Declare it with one: dataclasses.replace(decl, func=...).",
            )
        return self.func


class Uncallable:
    """An object that DSPy's agents may take for a function, although no file of this folder should."""

    __slots__ = ()
