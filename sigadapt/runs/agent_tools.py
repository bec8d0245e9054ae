"""The tools of an agent as `dspy.ReActV2` keeps them: a `dspy.Tool` each, also for a toolset.

A toolset is resolved for each request, so the agent holds a `ToolsetTool` in its place. The adapter replaces
it by the tools of the request, and the agent runs those (`react.py`).
"""

from collections.abc import Iterator
from typing import Any, NoReturn

import dspy

from sigadapt.dspy_boundary.contract import RefusableTool
from sigadapt.dspy_boundary.internals import SUBMIT
from sigadapt.errors import InvalidToolDecl
from sigadapt.schemas.json_values import is_sequence
from sigadapt.signatures import mcp_servers
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.sources.runnable import forgotten_adapter, is_written_into_prompt
from sigadapt.signatures.tool_decl import ToolDecl
from sigadapt.signatures.tool_decls import ResolvableTools, ToolDecls, flat
from sigadapt.signatures.toolset import Toolset

_SERVER_TOOLS = "server tools"


class ToolsetTool(RefusableTool, ResolvableTools):  # pyright: ignore[reportIncompatibleVariableOverride]
    """What stands for a toolset among an agent's tools."""

    _toolset: Toolset

    def __init__(self, toolset: Toolset, name: str) -> None:
        dspy.Tool.__init__(self, _refuse_call, name=name, desc="", args={}, arg_types={})
        self._toolset = toolset

    @property
    def toolset(self) -> Toolset:
        """The toolset."""
        return self._toolset

    def resolve(self) -> ToolDecls:
        """Return the tools outside of a request."""
        return self._toolset.resolve()

    async def aresolve(self) -> ToolDecls:
        """Return the tools outside of a request; await what is async."""
        return await self._toolset.aresolve()

    def steps(self, context: Any) -> Steps[ToolDecls]:
        """Return the tools for a request, as steps for `run` or `arun`."""
        return self._toolset.steps(context)

    def refuse(self) -> NoReturn:
        """Refuse an adapter that resolves no toolset."""
        raise self._refusal()

    def __repr__(self) -> str:
        if is_written_into_prompt() and forgotten_adapter("") is not None:
            raise self._refusal()
        return f"ToolsetTool({self.name!r})"

    def _refusal(self) -> Exception:
        reason = f"toolset {self.name!r} is resolved for each request, which {{adapter}} does not do"
        return forgotten_adapter(reason) or InvalidToolDecl(reason.format(adapter="this"), tool=self.name)


async def _refuse_call(**_: Any) -> NoReturn:
    # Async, so that `sigadapt.stream` awaits the agent, as an async toolset needs.
    raise InvalidToolDecl("a toolset isn't a tool: it is resolved for each request", code="unknown_source")


def _items(tools: Any) -> Iterator[Any]:
    """Yield tools and toolsets one by one; a live MCP session becomes a toolset."""
    if mcp_servers.accepts(tools):
        yield Toolset(type(tools).__name__, tools)
    elif is_sequence(tools):
        for item in tools:
            yield from _items(item)
    else:
        yield from flat(tools)


def tools_for_agent(tools: Any) -> list[dspy.Tool]:
    """Return tools in any form that ToolDecls accepts, as an agent of DSPy's keeps them.

    Raises:
        InvalidToolDecl: as ToolDecls; `no_function`, for a tool without a function to run.
    """
    toolsets: list[Toolset] = []
    entries: list[Any] = []
    for item in _items(tools):
        if isinstance(item, Toolset):
            toolsets.append(item)
        else:
            entries.append(item)
    decls = ToolDecls(entries)
    functions = [decl.to_dspy() for decl in decls.tools]
    server_tools = [entry for entry in decls.entries if not isinstance(entry, ToolDecl)]
    if server_tools:
        toolsets.append(Toolset(_SERVER_TOOLS, server_tools))
    keys = {SUBMIT, *(decl.name for decl in decls.tools)}
    return [*functions, *(ToolsetTool(toolset, _new_key(toolset.name, keys)) for toolset in toolsets)]


def _new_key(name: str, keys: set[str]) -> str:
    """Return the name for a toolset in the agent, which keeps its tools by name, and add it to the keys.

    Two MCP servers, or one toolset with two prefixes, may have one name.
    """
    key = name
    number = 1
    while key in keys:
        number += 1
        key = f"{name} ({number})"
    keys.add(key)
    return key
