"""Report what each provider would refuse or change of declarations, without sending anything.

A finding is an error if the tool cannot be used: its declaration is invalid, a wire refuses it, or it has no
description. It is a note if a wire gets a changed declaration, or if a parameter has no description.
"""

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.lowering import Change, lowered
from sigadapt.errors import InvalidOption, SigadaptError
from sigadapt.providers import ROUTES
from sigadapt.providers.provider import Route
from sigadapt.signatures.awaiting import arun
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.toolset import Origin, RequestContext, Toolset, joined, resolving


def _routes() -> dict[str, Route]:
    """The first route to each wire through each door; other routes handle tools in the same way."""
    found: dict[str, Route] = {}
    for route in ROUTES:
        found.setdefault(route.dialect if route.door == "lm15" else f"{route.door}/{route.dialect}", route)
    return found


ROUTE_NAMES: dict[str, Route] = _routes()
"""The routes that are checked, by the names that findings use."""


class Finding(NamedTuple):
    """A remark on a tool; `wires` is empty if it applies to all wires, `tool` is None if it has no name."""

    level: Literal["error", "note"]
    tool: str | None
    why: str
    wires: tuple[str, ...] = ()


class Report(NamedTuple):
    """The tools that were declared, and the findings."""

    decls: ToolDecls
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> bool:
        """Whether any finding is an error."""
        return any(finding.level == "error" for finding in self.findings)


def loaded(place: str) -> object:
    """Import the object that `module:name` names; the name may have dots.

    Raises:
        InvalidOption: the module cannot be imported, or has no such name.

    Example:
        >>> loaded("json:dumps").__name__
        'dumps'
    """
    module, _, name = place.partition(":")
    try:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        fix = "Write module:name, as in my_package.tools:TOOLS."
        raise InvalidOption(f"{place!r} cannot be loaded: {error}", field="tools", fix=fix) from error
    return found


async def checked(tools: object) -> Report:
    """Check tools.

    Args:
        tools: anything that a ToolDecls field takes, toolsets included. Each member of a list is checked
            alone, so that one error does not hide another.

    Example:
        >>> import asyncio
        >>> report = asyncio.run(checked([{"name": "now"}, {"name": "f", "parameters": {"type": "int"}}]))
        >>> [(finding.level, finding.tool) for finding in report.findings]
        [('error', 'f'), ('error', 'now')]
    """
    findings: list[Finding] = []
    good: list[Origin] = []
    for source in cast("Sequence[object]", tools) if isinstance(tools, (list, tuple)) else [tools]:
        try:
            decls = await arun(resolving(source, RequestContext()))
        except SigadaptError as error:  # noqa: PERF203  (each is reported)
            findings.append(_refused(error))
        else:
            good.append(Origin(source.name if isinstance(source, Toolset) else None, decls))
    try:
        decls = joined(good)
    except SigadaptError as error:
        return Report(ToolDecls(), (*findings, _refused(error)))
    return Report(decls, (*findings, *_undescribed(decls), *_by_wire(decls)))


def lines(report: Report) -> Iterator[str]:
    """Write the report as lines of text, tool by tool."""
    total = sum(decl.size for decl in report.decls)
    yield f"{len(report.decls)} tools, {total} bytes, fingerprint {report.decls.fingerprint()}"
    for decl in report.decls:
        yield f"{decl.name}: {decl.size} bytes"
        yield from _described(finding for finding in report.findings if finding.tool == decl.name)
    others = [finding for finding in report.findings if finding.tool not in report.decls]
    if others:
        yield "not declared:"
        yield from _described(others)


def _described(findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        where = f" ({', '.join(finding.wires)})" if finding.wires else ""
        yield f"  {finding.level}: {finding.why}{where}"


def _refused(error: SigadaptError, *wires: str) -> Finding:
    return Finding("error", error.tool, str(error), wires)


def _undescribed(decls: ToolDecls) -> Iterator[Finding]:
    for decl in decls:
        if not decl.description.strip():
            yield Finding("error", decl.name, "it has no description")
        bare = [name for name, schema in _parameters(decl) if not _is_described(schema)]
        if bare:
            yield Finding("note", decl.name, f"parameters without a description: {', '.join(bare)}")


def _parameters(decl: ToolDecl) -> Iterable[tuple[str, Any]]:
    return cast("dict[str, Any]", decl.parameters.get("properties", {})).items()


def _is_described(schema: Any) -> bool:
    return isinstance(schema, dict) and bool({"description", "$ref"} & cast("dict[str, Any]", schema).keys())


def _by_wire(decls: ToolDecls) -> Iterator[Finding]:
    """Yield what each wire refuses or changes; wires with the same finding share one."""
    found: dict[Finding, list[str]] = {}
    for wire, route in ROUTE_NAMES.items():
        for finding in _on_wire(decls, route):
            found.setdefault(finding, []).append(wire)
    for finding, wires in found.items():
        yield finding._replace(wires=tuple(wires))


def _on_wire(decls: ToolDecls, route: Route) -> Iterator[Finding]:
    for entry in decls.entries:
        request: Request = {"model": "any", "messages": [], "tools": [entry.to_openai()]}
        try:
            changes = lowered(request, route).changes
        except SigadaptError as error:
            yield _refused(error)
            continue
        yield from (_changed(entry.name if isinstance(entry, ToolDecl) else entry.kind, c) for c in changes)


def _changed(tool: str, change: Change) -> Finding:
    return Finding("note", tool, f"{change.what}: {change.why}")
