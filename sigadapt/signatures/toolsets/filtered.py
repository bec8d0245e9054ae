"""Only the tools that a predicate says yes to."""

from collections.abc import Callable
from inspect import iscoroutine

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.decls import ToolDecl, ToolDecls
from sigadapt.signatures.toolsets.change import Change
from sigadapt.signatures.toolsets.context import RequestContext


def filtered(predicate: Callable[[RequestContext, ToolDecl], bool]) -> Change:
    """The change that keeps the tools for which `predicate(context, decl)` is true.

    Example:
        >>> without_writes = filtered(lambda context, decl: not decl.name.startswith("write"))
        >>> [decl.name for decl in without_writes(RequestContext(), ToolDecls([{"name": "write_file"}]))]
        []
    """

    def change(context: RequestContext, decls: ToolDecls) -> list[ToolDecl]:
        return [decl for decl in decls if _kept(predicate(context, decl))]

    return change


def _kept(answer: object) -> bool:
    if iscoroutine(answer):  # true whatever it would say
        answer.close()
        raise InvalidToolDecl("a filter cannot be async", code="async_filter", fix="Use prepared(function).")
    return bool(answer)
