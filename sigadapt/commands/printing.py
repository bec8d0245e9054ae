"""How the command prints: plain lines or tables on stdout, one JSON document on request, errors on stderr.

Colours are the terminal's own. A pipe, a file and `NO_COLOR` get plain text. What a user's module prints goes
to stderr, because stdout is the command's own.
"""

import json
import logging
import os
import sys
import textwrap
import warnings
from collections.abc import Generator
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import Annotated, Any, TypeAlias

import typer
from rich.console import Console

from sigadapt import __version__
from sigadapt.display.places import printable
from sigadapt.schemas.json_values import is_array, is_object
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls

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
