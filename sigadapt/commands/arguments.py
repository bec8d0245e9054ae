"""What the commands take: objects of a user's modules, tools, inputs, and the options that verbs share.

The user's own modules are imported, as `python -m` would. Nothing that a model or a file says is (nothing is
executed).
"""

import asyncio
import importlib
import inspect
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO, TypeAlias

import dspy
import typer
from dspy.signatures.signature import Signature

from sigadapt import ChatAdapter, JSONAdapter, SigadaptError, ToolDecls
from sigadapt.adapters import BAMLAdapter, XMLAdapter
from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import is_array, is_sequence
from sigadapt.signatures.awaiting import arun
from sigadapt.signatures.sources import is_source
from sigadapt.signatures.toolset import RequestContext, Toolset, resolving
from sigadapt.testing import WIRES

_LONGEST_START = 120  # seconds until an MCP server answers; it may have to be installed first
_FIX = "Write module:name, as in my_package.tools:TOOLS."


def load(path: str, field: str = "tools") -> object:
    """Import the object that `module:name` names; the name may have dots."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does, to find the modules of a project
    module, _, names = path.partition(":")
    try:
        with redirect_stdout(sys.stderr):  # stdout is the command's own
            value: object = importlib.import_module(module)
            for name in names.split("."):
                value = getattr(value, name)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        kind = "" if isinstance(error, (ImportError, AttributeError)) else f"{type(error).__name__}: "
        raise InvalidOption(f"{path!r} cannot be loaded: {kind}{error}", field=field, fix=_FIX) from error
    return value


def decls_of(paths: Sequence[str] | None, servers: Sequence[str] | None) -> ToolDecls:
    """Return the tools of objects and of MCP servers."""

    async def resolve() -> ToolDecls:
        sources = await sources_of(paths or (), servers or ())
        return await arun(resolving(sources, RequestContext()))

    with redirect_stdout(sys.stderr):
        return asyncio.run(resolve())


async def sources_of(paths: Sequence[str], servers: Sequence[str]) -> list[object]:
    """Return the sources of tools that `decls_of` resolves: one for each object, and one for each server."""
    sources: list[object] = []
    for path in paths:
        source = load(path)
        tools = getattr(source, "tools", None)
        if not is_source(source) and is_array(tools):  # the result of `list_tools`
            source = tools
        sources += source if is_sequence(source) else [source]
    with Path(os.devnull).open("w", encoding="utf-8") as log:
        sources += [await _list_tools(server, log) for server in servers]
    return sources


async def _list_tools(command: str, log: TextIO) -> ToolDecls:
    """Start an MCP server, ask it for its tools, and end it."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    words = shlex.split(command) or [""]
    server = StdioServerParameters(command=words[0], args=words[1:])
    try:
        async with stdio_client(server, errlog=log) as streams, ClientSession(*streams) as session:
            await asyncio.wait_for(session.initialize(), _LONGEST_START)
            return await arun(resolving(Toolset("mcp", session), RequestContext()))
    except Exception as error:
        cause: BaseException = error
        while group := getattr(cause, "exceptions", None):  # a group, as the SDK's tasks raise it
            cause = group[0]
        if isinstance(cause, SigadaptError):
            raise cause from None
        reason = f"{command!r} did not answer as an MCP server: {sentence(cause)}"
        raise InvalidOption(reason, field="mcp", fix="Give a command that speaks MCP on stdio.") from error


def signature_of(text: str) -> Any:
    """Return the signature or the module of a program, by `module:name` or as a text with an arrow."""
    new_signature: Any = dspy.Signature
    if "->" in text:
        try:
            return new_signature(text)
        except Exception as error:
            raise InvalidOption(f"{text!r} is not a signature: {error}", field="signature") from error
    value = load(text, "signature")
    if isinstance(value, dspy.Module) or (inspect.isclass(value) and issubclass(value, Signature)):
        return value
    reason = f"{text!r} is a {type(value).__name__}, not a dspy.Signature or a dspy.Module"
    raise InvalidOption(reason, field="signature")


WIRE_NAMES = {
    {"openai": "openai-chat", "responses": "openai-responses"}.get(name, name): name for name in WIRES
}
"""The loopback provider's wires, by the names that every verb and `dialect=` have for them."""

ADAPTERS: dict[str, Callable[..., Any]] = {
    "chat": ChatAdapter,
    "json": JSONAdapter,
    "xml": XMLAdapter,
    "baml": BAMLAdapter,
}

AdapterOption: TypeAlias = Annotated[
    Literal["chat", "json", "xml", "baml"],
    typer.Option(help="The adapter."),
]
ModeOption: TypeAlias = Annotated[
    Literal["auto", "native", "prompted"],
    typer.Option(help="The adapter's tool_calling."),
]
EngineOption: TypeAlias = Annotated[Literal["auto", "litellm"], typer.Option(help="The engine of dspy.LM.")]
InputOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", help="An input as name=value; JSON unless the field is a string."),
]
ToolsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--tools", "-t", help="Tools as module:name; anything that a ToolDecls field accepts."),
]
McpOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--mcp", help="A command that starts an MCP server on stdio; its tools are used."),
]


def sentence(error: BaseException) -> str:
    """Return an error as one sentence: of a provider's error, its first line; LiteLLM's hold tracebacks."""
    text = str(error).strip()
    if isinstance(error, SigadaptError):
        return " ".join(text.split())
    return text.partition("\n")[0] or type(error).__name__
