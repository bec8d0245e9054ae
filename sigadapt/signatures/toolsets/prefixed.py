"""Every tool under a name that begins with a prefix."""

from sigadapt.signatures.decls import ToolDecl, ToolDecls, altered
from sigadapt.signatures.toolsets.change import Change
from sigadapt.signatures.toolsets.context import RequestContext


def prefixed(prefix: str) -> Change:
    """The change that puts a prefix before every name, as it is given: `"fs_"`, not `"fs"`.

    Example:
        >>> [decl.name for decl in prefixed("fs_")(RequestContext(), ToolDecls([{"name": "read"}]))]
        ['fs_read']
    """

    def change(_: RequestContext, decls: ToolDecls) -> list[object]:
        return [
            altered(entry, name=prefix + entry.name) if isinstance(entry, ToolDecl) else entry
            for entry in decls.entries
        ]

    return change
