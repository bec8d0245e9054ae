"""Only the tools that a predicate says yes to."""

from collections.abc import Callable
from inspect import iscoroutine

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.decls import ToolDecl, ToolDecls
from sigadapt.signatures.toolsets.change import Change
from sigadapt.signatures.toolsets.context import RequestContext


def filtered(predicate: Callable[[RequestContext, ToolDecl], bool]) -> Change:
    """The change that keeps the tools for which `predicate(context, decl)` is true, and all native ones.

    Example:
        >>> without_writes = filtered(lambda context, decl: not decl.name.startswith("write"))
        >>> [decl.name for decl in without_writes(RequestContext(), ToolDecls([{"name": "write_file"}]))]
        []
    """

    def change(context: RequestContext, decls: ToolDecls) -> list[object]:
        return [
            entry
            for entry in decls.entries
            if not isinstance(entry, ToolDecl) or _kept(predicate(context, entry))
        ]

    return change


def _kept(answer: object) -> bool:
    if iscoroutine(answer):  # true whatever it would say
        answer.close()
        raise InvalidToolDecl("a filter cannot be async", code="async_filter", fix="Use prepared(function).")
    return bool(answer)
