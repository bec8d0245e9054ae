"""Some tools under other names."""

from collections.abc import Mapping
from dataclasses import replace

from sigadapt.signatures.decls import ToolDecl, ToolDecls
from sigadapt.signatures.toolsets.change import Change
from sigadapt.signatures.toolsets.context import RequestContext
from sigadapt.signatures.toolsets.picked import check_known


def renamed(names: Mapping[str, str]) -> Change:
    """The change that gives tools new names, by their old ones; two may change places.

    Example:
        >>> [d.name for d in renamed({"read": "open"})(RequestContext(), ToolDecls([{"name": "read"}]))]
        ['open']
    """

    def change(_: RequestContext, decls: ToolDecls) -> list[ToolDecl]:
        for name in names:
            check_known(name, decls)
        return [replace(decl, name=names[decl.name]) if decl.name in names else decl for decl in decls]

    return change
