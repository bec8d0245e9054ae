"""What a source says about one tool: the plain data between a source's file and `ToolDecl`."""

from collections.abc import Callable
from typing import Any, NamedTuple

from sigadapt.schemas.json_values import Json


class RawDecl(NamedTuple):
    """One tool as its source describes it, unchecked unless `derived`.

    Args:
        name: whatever the source gives as the name; `ToolDecl` refuses what is not one.
        description: what the tool is for; None where the source does not say.
        parameters: the arguments' JSON Schema; None where the source gives none.
        returns: the result's JSON Schema, where the source gives it.
        strict: whether the source asks for, or refuses, a provider's strict mode.
        long_running: whether the source says that the tool only starts something.
        requires_confirmation: whether the source says that a person must agree to each call.
        extras: what else the source says beside the function, such as `cache_control` or MCP annotations.
        func: the Python object behind the tool, for the caller's own use.
        derived: whether `parameters` was derived here from Python types, and so needs no further check.
    """

    name: object
    description: object = None
    parameters: Any = None
    returns: Any = None
    strict: Any = None
    long_running: bool = False
    requires_confirmation: bool = False
    extras: Json | None = None
    func: Callable[..., Any] | None = None
    derived: bool = False
