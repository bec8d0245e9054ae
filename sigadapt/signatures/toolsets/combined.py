"""Several origins of tools as one, with an error that names both where two give the same name."""

from collections.abc import Iterable
from typing import NamedTuple

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.decls import ToolDecls


class Origin(NamedTuple):
    """Tools, and the toolset that gave them; None for tools that were given as they are."""

    toolset: str | None
    decls: ToolDecls


def combined(origins: Iterable[Origin]) -> ToolDecls:
    """Put tools of several origins into one collection, in order.

    Raises:
        InvalidToolDecl: `duplicate_name`, naming the tool and where both come from.

    Example:
        >>> search = ToolDecls([{"name": "search"}])
        >>> combined([Origin("web", search), Origin("wiki", search)])
        Traceback (most recent call last):
        sigadapt.errors.InvalidToolDecl: tool 'search': both toolset 'web' and toolset 'wiki' give it. Tell \
them apart: toolset.prefixed('wiki_').
    """
    known = list(origins)
    first: dict[str, Origin] = {}
    for origin in known:
        for decl in origin.decls:
            other = first.setdefault(decl.name, origin)
            if other is not origin:
                raise _duplicate(decl.name, other.toolset, origin.toolset)
    return known[0].decls if len(known) == 1 else ToolDecls([origin.decls for origin in known])


def _duplicate(name: str, first: str | None, second: str | None) -> InvalidToolDecl:
    toolset = second or first
    if toolset is None:
        return InvalidToolDecl("is declared more than once", code="duplicate_name", tool=name)
    fix = f"Tell them apart: toolset.prefixed('{toolset}_')."
    reason = f"both {_told(first)} and {_told(second)} give it"
    return InvalidToolDecl(reason, code="duplicate_name", tool=name, fix=fix)


def _told(toolset: str | None) -> str:
    return f"toolset {toolset!r}" if toolset else "a tool given by itself"
