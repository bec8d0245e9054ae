"""Report what each provider would refuse or change of declarations, without sending anything.

A finding is an error if the tool cannot be used: its declaration is invalid, a wire refuses it, or it has no
description. It is a note if a wire gets a changed declaration, or if a parameter has no description.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import typer

from sigadapt.adapters.request.canonical import Request
from sigadapt.adapters.request.lowering import lower
from sigadapt.commands.arguments import McpOption, sources_of
from sigadapt.commands.printing import AsJson, counted, emit, say, waiting
from sigadapt.errors import InvalidOption, SigadaptError
from sigadapt.providers import ROUTES
from sigadapt.providers.provider import Route
from sigadapt.schemas.json_values import Json, is_sequence
from sigadapt.signatures.awaiting import arun
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.toolset import RequestContext, Toolset, resolving


def _routes() -> dict[str, Route]:
    """The first route to each wire through each client, and those that handle tools in another way."""
    found: dict[str, Route] = {}
    for route in ROUTES:
        name = route.dialect if route.client == "lm15" else f"{route.client}/{route.dialect}"
        if name in found and route.root_pattern != found[name].root_pattern:
            name = f"{route.client}/{min(route.prefixes)}"
        found.setdefault(name, route)
    return found


ROUTE_NAMES: dict[str, Route] = _routes()
"""The routes that are checked, by the names that findings use."""


_ENGINES = {"native", "litellm"}


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


def routes_of(providers: Sequence[str] = (), engines: Sequence[str] = ()) -> dict[str, Route]:
    """Return the routes of some providers and engines, by the names that findings use; all of them for none.

    Raises:
        InvalidOption: for an unknown engine, or if no route is left.
    """
    if not _ENGINES.issuperset(engines):
        raise InvalidOption(f"expected native or litellm, got {', '.join(engines)}", field="engine")
    found = {
        name: route
        for name, route in ROUTE_NAMES.items()
        if (not providers or {route.dialect, route.dialect.partition("-")[0]} & {*providers})
        and (not engines or (route.client == "litellm") in {engine == "litellm" for engine in engines})
    }
    for provider in providers:
        if not any(provider in {r.dialect, r.dialect.partition("-")[0]} for r in found.values()):
            known = ", ".join(sorted({route.dialect for route in ROUTE_NAMES.values()}))
            reason = f"{provider!r} is not a provider" + (
                f" of the engine {', '.join(engines)}" if engines else ""
            )
            raise InvalidOption(reason, field="provider", fix=f"Use one of {known}.")
    return found


async def checked(tools: Any, routes: Mapping[str, Route] = ROUTE_NAMES) -> Report:
    """Check tools."""
    findings: list[Finding] = []
    good: list[object] = []
    for source in tools if is_sequence(tools) else [tools]:
        try:
            decls = await arun(resolving(source, RequestContext()))
        except SigadaptError as error:  # each is reported
            findings.append(_refusal(error))
        else:
            good.append(Toolset(source.name, decls) if isinstance(source, Toolset) else decls)
    try:
        decls = await arun(resolving(good, RequestContext()))
    except SigadaptError as error:
        return Report(ToolDecls(), (*findings, _refusal(error)))
    return Report(decls, (*findings, *_undescribed(decls), *_by_wire(decls, routes)))


def lines(report: Report) -> Iterator[str]:
    """Write the report as lines of text, tool by tool."""
    total, size = counted(len(report.decls), "tool"), counted(sum(decl.size for decl in report.decls), "byte")
    yield f"{total}, {size}, fingerprint {report.decls.fingerprint()}"
    parts = [(f"{decl.name}: {counted(decl.size, 'byte')}", {decl.name}) for decl in report.decls]
    undeclared = {finding.tool for finding in report.findings if finding.tool not in report.decls}
    for head, tools in [*parts, ("not declared:", undeclared)] if undeclared else parts:
        yield head
        for finding in report.findings:
            if finding.tool in tools:
                where = f" ({', '.join(finding.wires)})" if finding.wires else ""
                yield f"  {finding.level}: {finding.why}{where}"


def _refusal(error: SigadaptError, *wires: str) -> Finding:
    return Finding("error", error.tool, str(error), wires)


def _undescribed(decls: ToolDecls) -> Iterator[Finding]:
    for decl in decls:
        if not decl.description.strip():
            yield Finding("error", decl.name, "it has no description")
        properties: Json = decl.parameters.get("properties", {})
        described = {"description", "$ref"}
        bare = [name for name, schema in properties.items() if described.isdisjoint(schema)]
        if bare:
            yield Finding("note", decl.name, f"parameters without a description: {', '.join(bare)}")


def _by_wire(decls: ToolDecls, routes: Mapping[str, Route]) -> Iterator[Finding]:
    """Yield what each wire refuses or changes; wires with the same finding share one."""
    found: dict[Finding, list[str]] = {}
    for wire, route in routes.items():
        for finding in _on_wire(decls, route):
            found.setdefault(finding, []).append(wire)
    for finding, wires in found.items():
        yield finding._replace(wires=tuple(wires))


def _on_wire(decls: ToolDecls, route: Route) -> Iterator[Finding]:
    for entry in decls.entries:
        request: Request = {"model": "any", "messages": [], "tools": [entry.to_openai()]}
        try:
            changes = lower(request, route).changes
        except SigadaptError as error:
            yield _refusal(error)
            continue
        name = entry.name if isinstance(entry, ToolDecl) else entry.kind
        yield from (Finding("note", name, f"{change.what}: {change.why}") for change in changes)


def check(
    tools: Annotated[
        str | None, typer.Argument(help="Tools as module:name; anything that a ToolDecls field accepts.")
    ] = None,
    mcp: McpOption = None,
    provider: Annotated[
        list[str] | None,
        typer.Option(
            "--wire",
            "--provider",
            help="Check only this wire; may be repeated.",
            autocompletion=lambda: sorted({route.dialect for route in ROUTE_NAMES.values()}),
        ),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(help="Check only this engine.", autocompletion=lambda: list(_ENGINES)),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what each provider would refuse or change in tools.

    Nothing is sent.
    """
    routes = routes_of(provider or (), engine or ())
    if not tools and not mcp:
        fix = "Give them as module:name, or with --mcp."
        raise InvalidOption("there are no tools to check", field="tools", fix=fix)
    with waiting("checking ..."):
        sources = asyncio.run(sources_of([tools] if tools else [], mcp or ()))
        report = asyncio.run(checked(sources, routes))
    if as_json:
        emit("check", **_document(report, routes))
    else:
        for line in lines(report):
            say(line, "red" if line.startswith("  error:") else None)
    if report.failed:
        raise typer.Exit(1)


def _document(report: Report, routes: Mapping[str, Route]) -> dict[str, Any]:
    return {
        "ok": not report.failed,
        "fingerprint": report.decls.fingerprint(),
        "routes": list(routes),
        "tools": [{"name": decl.name, "bytes": decl.size} for decl in report.decls],
        "findings": [{**finding._asdict(), "wires": list(finding.wires)} for finding in report.findings],
    }
