"""The two ends of a command: the words that it is called with, and the lines that it prints.

Words name objects of a user's modules, tools and inputs. The user's own modules are imported, as `python -m`
would. Nothing that a model or a file says is (nothing is executed).

Plain lines or tables go to stdout, one JSON document on request, and errors to stderr. Colours are the
terminal's own. A pipe, a file and `NO_COLOR` get plain text. What a user's module prints goes to stderr,
because stdout is the command's own.
"""

import asyncio
import importlib
import inspect
import json
import logging
import os
import shlex
import sys
import textwrap
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO, TypeAlias

import dspy
import typer
from dspy.signatures.signature import Signature
from rich.console import Console

from sigadapt import ChatAdapter, JSONAdapter, SigadaptError, ToolDecls, __version__
from sigadapt.adapters import BAMLAdapter, XMLAdapter
from sigadapt.display import printable
from sigadapt.errors import InvalidOption
from sigadapt.json_values import is_array, is_object, is_sequence
from sigadapt.signatures.awaiting import arun
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
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


AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]

CODE = "none"
"""The style of a line of code."""


def console(*, stderr: bool = False) -> Console:
    """Return the console of stdout as it is now, or of stderr."""
    # rich drops only colours under NO_COLOR, and still writes bold and moves the cursor.
    plain = False if os.environ.get("NO_COLOR") else None
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, force_terminal=plain)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 tool`, `2 tools`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def say(text: str = "", style: str | None = None) -> None:
    """Print a line. A terminal gets a long one wrapped with a hanging indent, a pipe gets it whole."""
    # What does not print, such as control characters and bidi overrides, is written as escapes (`printable`).
    screen = console()
    text = printable(text)
    if screen.is_terminal and style != CODE:
        indent = " " * (len(text) - len(text.lstrip()) + 4)
        text = textwrap.fill(text, screen.width, subsequent_indent=indent, break_long_words=False) or text
    screen.print(text, style=style, soft_wrap=True)


def draw(table: Any) -> None:
    """Print a table, without the blanks at the ends of lines that rich fills columns with in a pipe."""
    screen = console()
    if screen.is_terminal:
        screen.print(table)
        return
    with screen.capture() as capture:
        screen.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def emit(command: str, **document: Any) -> None:
    """Print the JSON document of a command: its name, the version, and what it found."""
    document = {"command": command, "version": __version__, **document}
    print(json.dumps(document, indent=2, default=str))


def complain(sentence: str) -> None:
    """Print an error on stderr, in one line."""
    print(printable(" ".join(sentence.split())), file=sys.stderr)


@contextmanager
def waiting(for_what: str) -> Generator[None]:
    """Say on a terminal's stderr what is waited for, as long as it is. A user's code prints there too."""
    screen = console(stderr=True)
    with redirect_stdout(sys.stderr), screen.status(for_what) if screen.is_terminal else nullcontext():
        yield


def quiet() -> None:
    """Keep what LiteLLM and DSPy log off the terminal: the command says itself what went wrong."""
    warnings.simplefilter("ignore")
    for name in ("LiteLLM", "dspy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def layout(value: Any, width: int = 78, depth: int = 0) -> str:
    """Write JSON in as few lines as fit the width, with escapes for what does not print."""
    line = _dumps(value)
    inside = "  " * (depth + 1)
    outside = "  " * depth
    if len(outside + line) <= width:
        return line
    if is_object(value):
        items = [f"{_dumps(key)}: {layout(item, width, depth + 1)}" for key, item in value.items()]
        opening = "{"
        closing = "}"
    elif not is_array(value):
        return line
    elif len(value) == 1:
        return f"[{layout(value[0], width, depth)}]"
    else:
        items = [layout(item, width, depth + 1) for item in value]
        opening = "["
        closing = "]"
    return f"{opening}\n{inside}" + f",\n{inside}".join(items) + f"\n{outside}{closing}"


def _dumps(value: Any) -> str:
    """Write JSON in one line, readable in every language, with JSON's escapes for what does not print."""
    line = json.dumps(value, ensure_ascii=False)
    if line.isprintable():
        return line
    escapes = {char: json.dumps(char)[1:-1] for char in {*line} if not char.isprintable()}
    return "".join(escapes.get(char, char) for char in line)


def calls_document(calls: ToolCalls | None) -> dict[str, Any]:
    """Return calls as the JSON documents hold them: `calls` and `invalid`."""
    calls = ToolCalls() if calls is None else calls
    names = ("id", "name", "args", "arguments", "index", "altered", "code", "message", "path")

    def fields(call: ToolCall | InvalidToolCall) -> dict[str, Any]:
        values = {name: getattr(call, name) for name in names if hasattr(call, name)}
        return {**values, "altered": list(call.altered)}

    return {"calls": [*map(fields, calls.tool_calls)], "invalid": [*map(fields, calls.invalid)]}
