"""Only the tools of certain names, in the order of the names."""

from sigadapt.errors import InvalidToolDecl
from sigadapt.signatures.decls import ToolDecl, ToolDecls
from sigadapt.signatures.near_miss import near_miss
from sigadapt.signatures.toolsets.change import Change
from sigadapt.signatures.toolsets.context import RequestContext


def picked(names: tuple[str, ...]) -> Change:
    """The change that keeps the tools of these names; native ones have none and go.

    Example:
        >>> decls = ToolDecls([{"name": "a"}, {"name": "b"}, {"name": "c"}])
        >>> [decl.name for decl in picked(("c", "a"))(RequestContext(), decls)]
        ['c', 'a']
    """

    def change(_: RequestContext, decls: ToolDecls) -> list[ToolDecl]:
        for name in names:
            check_known(name, decls)
        return [decls[name] for name in names]

    return change


def check_known(name: str, decls: ToolDecls) -> None:
    """Refuse a name that no tool has.

    Raises:
        InvalidToolDecl: `unknown_tool`, with the nearest name there is.
    """
    if name in decls:
        return
    known = [decl.name for decl in decls]
    near = near_miss(name, known)
    fix = f"Did you mean {near!r}?" if near else f"It has {', '.join(map(repr, known)) or 'none'}."
    raise InvalidToolDecl("there is no tool of that name", code="unknown_tool", tool=name, fix=fix)
