"""The type of a change that a toolset makes to its tools."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from sigadapt.signatures.decls import ToolDecls
from sigadapt.signatures.toolsets.context import RequestContext

Change: TypeAlias = "Callable[[RequestContext, ToolDecls], object | Awaitable[object]]"
"""Gets the request's context and the tools so far; gives what ToolDecls takes, or an awaitable of it."""
