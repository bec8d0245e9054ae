"""What a toolset waits for: the one difference between giving tools at once and giving them awaited."""

from collections.abc import Awaitable
from dataclasses import dataclass
from inspect import iscoroutine
from typing import Any

from sigadapt.errors import InvalidToolDecl


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that a toolset has to have awaited before it can go on.

    Args:
        toolset: the toolset's name, for errors.
        awaitable: what to await; its value is what the toolset goes on with.
    """

    toolset: str
    awaitable: Awaitable[Any]

    async def outcome(self) -> Any:
        """Await it.

        Raises:
            InvalidToolDecl: `toolset_failed`, or whatever is wrong with the tools, naming the toolset.
        """
        try:
            return await self.awaitable
        except Exception as error:
            raise named(error, self.toolset) from error

    def refused(self) -> InvalidToolDecl:
        """The error for a caller that cannot await: says what to do instead."""
        if iscoroutine(self.awaitable):
            self.awaitable.close()  # or Python warns that it was never awaited
        return InvalidToolDecl(
            f"toolset {self.toolset!r} has to be awaited",
            code="async_toolset",
            fix="Use the async call (`await program.acall(...)`), or pass `await toolset.aresolve()`.",
        )


def named(error: Exception, toolset: str) -> InvalidToolDecl:
    """An error that happened in a toolset, as one that names it.

    Example:
        >>> print(named(ConnectionError("no route"), "crm"))
        toolset 'crm' gives no tools: no route (ConnectionError).
    """
    if isinstance(error, InvalidToolDecl):
        return InvalidToolDecl(
            f"in toolset {toolset!r}: {error.reason}",
            code=error.code,
            field=error.field,
            tool=error.tool,
            path=error.path,
            fix=error.fix,
        )
    what = f"{error} ({type(error).__name__})" if str(error) else type(error).__name__
    return InvalidToolDecl(f"toolset {toolset!r} gives no tools: {what}", code="toolset_failed")
