"""Some tools under other names."""

from collections.abc import Mapping

from sigadapt.signatures.decls import ToolDecl, ToolDecls, altered
from sigadapt.signatures.toolsets.change import Change
from sigadapt.signatures.toolsets.context import RequestContext
from sigadapt.signatures.toolsets.picked import check_known


def renamed(names: Mapping[str, str]) -> Change:
    """The change that gives tools new names, by their old ones; two may change places.

    Example:
        >>> [d.name for d in renamed({"read": "open"})(RequestContext(), ToolDecls([{"name": "read"}]))]
        ['open']
    """

    def change(_: RequestContext, decls: ToolDecls) -> list[object]:
        for name in names:
            check_known(name, decls)
        return [
            altered(entry, name=names[entry.name])
            if isinstance(entry, ToolDecl) and entry.name in names
            else entry
            for entry in decls.entries
        ]

    return change
