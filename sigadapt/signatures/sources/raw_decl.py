"""RawDecl: what a source says about one tool. The source's file returns it; a `ToolDecl` is made from it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import Json


class RawDecl(NamedTuple):
    """One tool as its source describes it, unchecked unless `derived`.

    Args:
        name: the source's value for the name. It may be of any type; `ToolDecl` checks it.
        description: what the tool is for; None where the source does not say.
        parameters: the arguments' JSON Schema; None where the source gives none.
        returns: the result's JSON Schema, where the source gives it.
        strict: whether the source asks for, or refuses, a provider's strict mode.
        long_running: whether the source says that a call only starts work whose result comes later.
        requires_confirmation: whether the source says that a person must agree to each call.
        extras: what else the source says beside the function, such as `cache_control` or MCP annotations.
        format: the form of a custom tool's text, as in `ToolDecl`; None for a function.
        func: the Python object behind the tool, for the caller's own use.
        derived: whether `parameters` was derived from Python types and has been checked already.
    """

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
    derived: bool = False

    @property
    def function(self) -> Callable[..., Any]:
        """The function behind a tool that is to be run.

        Raises:
            InvalidToolDecl: `no_function`, if there is none.
        """
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
