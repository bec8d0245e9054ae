"""Report what each provider would refuse or change of declarations, without sending anything.

A finding is an error if the tool cannot be used: its declaration is invalid, a wire refuses it, or it has no
description. It is a note if a wire gets a changed declaration, or if a parameter has no description.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from sigadapt import SigadaptError, ToolDecl, ToolDecls
from sigadapt.adapters.passes.order import lower
from sigadapt.adapters.passes.server_tools import with_server_tools
from sigadapt.adapters.request.canonical import Request
from sigadapt.commands.terminal import counted, emit, say, sources_of, waiting
from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json, is_sequence
from sigadapt.providers import ROUTES
from sigadapt.providers.route import Route
from sigadapt.signatures.awaiting import arun
from sigadapt.signatures.toolset import RequestContext, Toolset, resolving


def _routes() -> dict[str, Route]:
    """The first route to each wire through each client, and those that handle tools in another way."""
    routes: dict[str, Route] = {}
    for route in ROUTES:
        name = route.wire if route.client == "lm15" else f"{route.client}/{route.wire}"
        if name in routes and route.tools.root_pattern != routes[name].tools.root_pattern:
            name = f"{route.client}/{min(route.models.prefixes)}"
        routes.setdefault(name, route)
    return routes


_ROUTES: dict[str, Route] = _routes()
"""The routes that are checked, by the names that findings use."""


async def document_of(tools: Any) -> Json:
    """Return the document: the tools that were declared, and the findings."""
    findings: list[Json] = []
    decls = await _valid_decls(tools, findings)
    for decl in decls:
        findings += _description_findings(decl)
    findings += _by_wire(decls)
    return {
        "ok": all(finding["level"] != "error" for finding in findings),
        "fingerprint": decls.fingerprint(),
        "routes": list(_ROUTES),
        "tools": [{"name": decl.name, "bytes": decl.size} for decl in decls],
        "findings": findings,
    }


async def _valid_decls(tools: Any, findings: list[Json]) -> ToolDecls:
    """Return what can be declared of the tools, and add a finding for each that cannot."""
    valid: list[object] = []
    for source in tools if is_sequence(tools) else [tools]:
        try:
            decls = await arun(resolving(source, RequestContext()))
        except SigadaptError as error:  # each is reported
            findings.append(_finding("error", error.tool, str(error)))
            continue
        if isinstance(source, Toolset):
            valid.append(Toolset(source.name, decls))
        else:
            valid.append(decls)
    try:
        return await arun(resolving(valid, RequestContext()))
    except SigadaptError as error:
        findings.append(_finding("error", error.tool, str(error)))
        return ToolDecls()


def _description_findings(decl: ToolDecl) -> Iterator[Json]:
    """Yield what a declaration does not describe."""
    if not decl.description.strip():
        yield _finding("error", decl.name, "it has no description")
    properties: Json = decl.parameters.get("properties", {})
    bare = [name for name, schema in properties.items() if {"description", "$ref"}.isdisjoint(schema)]
    if bare:
        yield _finding("note", decl.name, f"parameters without a description: {', '.join(bare)}")


def lines(document: Json) -> Iterator[str]:
    """Yield the document's lines, tool by tool."""
    sizes = {tool["name"]: tool["bytes"] for tool in document["tools"]}
    total = counted(len(sizes), "tool")
    size = counted(sum(sizes.values()), "byte")
    yield f"{total}, {size}, fingerprint {document['fingerprint']}"
    groups = [(f"{name}: {counted(size, 'byte')}", {name}) for name, size in sizes.items()]
    strangers = {finding["tool"] for finding in document["findings"]} - sizes.keys()
    if strangers:
        groups.append(("not declared:", strangers))
    for head, tools in groups:
        yield head
        for finding in document["findings"]:
            if finding["tool"] in tools:
                wires = f" ({', '.join(finding['wires'])})" if finding["wires"] else ""
                yield f"  {finding['level']}: {finding['why']}{wires}"


def _finding(level: str, tool: str | None, reason: str, wires: Sequence[str] = ()) -> Json:
    """Return a remark on a tool, or on what has no name (None); no wires means all of them."""
    return {"level": level, "tool": tool, "why": reason, "wires": list(wires)}


def _by_wire(decls: ToolDecls) -> Iterator[Json]:
    """Yield what each wire refuses or changes; wires with the same finding share one."""
    wires_of: dict[tuple[str, str | None, str], list[str]] = {}
    for wire, route in _ROUTES.items():
        for entry in decls.entries:
            request: Request = {"model": "any", "messages": [], "tools": [entry.to_openai()]}
            name = entry.name if isinstance(entry, ToolDecl) else entry.kind
            try:
                request, changes = with_server_tools(request, route)
                changes += lower(request, route).changes
                remarks = [("note", name, f"{change.what}: {change.why}") for change in changes]
            except SigadaptError as error:
                remarks = [("error", error.tool, str(error))]
            for remark in remarks:
                wires_of.setdefault(remark, []).append(wire)
    return (_finding(*remark, wires) for remark, wires in wires_of.items())


def report(tools: Sequence[str], mcp: Sequence[str], *, as_json: bool) -> None:
    """Print what each provider would refuse or change of tools, and exit with 1 if one cannot be used."""
    if not tools and not mcp:
        fix = "Give a signature, or tools as module:name with --tools or of a server with --mcp."
        raise InvalidOption("there is nothing to show", field="signature", fix=fix)
    with waiting("checking ..."):
        sources = asyncio.run(sources_of(tools, mcp))
        document = asyncio.run(document_of(sources))
    if as_json:
        emit("show", **document)
    else:
        for line in lines(document):
            style = "red" if line.startswith("  error:") else None
            say(line, style)
    if not document["ok"]:
        raise typer.Exit(1)
