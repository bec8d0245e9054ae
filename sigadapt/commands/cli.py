"""The command `sigadapt`: its verbs, and its exit codes.

0 is success. 1 means that something was found: an error of `check`, a bad call that was read, a request that
cannot be sent, a model that does not answer. 2 means that the arguments cannot be used. An error is one line
on stderr, and never a traceback.
"""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Annotated, Any, Literal

import typer
from dspy.utils.exceptions import LMError

from sigadapt import __version__
from sigadapt.commands.demo import demo
from sigadapt.commands.read import read
from sigadapt.commands.show import show
from sigadapt.commands.terminal import complain, sentence
from sigadapt.errors import SigadaptError

USAGE = 2
"""The exit code for arguments that cannot be used."""

_STOPPED = 130  # what typer returns for an interrupt, which it does not raise
# What the parser raises for a word that it cannot use; typer exports only its subclass.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]

# Typer writes bold and boxes into its help under `NO_COLOR`, too.
_MARKUP_MODE: Literal["rich"] | None = None if os.environ.get("NO_COLOR") else "rich"
app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=_MARKUP_MODE)
_VERBS = {verb.__name__: verb for verb in (demo, show, read)}
for _verb in _VERBS.values():
    app.command()(_verb)


def _print_version(is_set: bool) -> None:  # typer calls it
    if is_set:
        typer.echo(f"sigadapt {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Tool calling for DSPy signatures: see what is sent, and read what comes back.

    Exit codes: 0 is success, 1 a finding such as a bad call, 2 unusable arguments.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    words = sys.argv[1:] if arguments is None else [*arguments]
    verb = "sigadapt"
    if words and words[0] in _VERBS:
        verb = f"sigadapt {words[0]}"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal may lack a character, not a line
    try:
        code = app(words, prog_name="sigadapt", standalone_mode=False)
    except _UsageError as error:
        usage: Any = error
        complain(f"{verb}: {usage.format_message().replace('Value error, ', '')} See {verb} --help.")
        return USAGE
    except (SigadaptError, LMError) as error:
        complain(f"{verb}: {sentence(error)}")
        return USAGE if isinstance(error, SigadaptError) and error.code != "provider_error" else 1
    except typer.Abort:
        code = _STOPPED
    except Exception as error:  # a fault of this program or of one that it runs
        if os.environ.get("SIGADAPT_DEBUG"):
            raise
        complain(
            f"{verb}: unexpected {type(error).__name__}: {sentence(error)} (SIGADAPT_DEBUG=1 shows where.)"
        )
        return 1
    if code == _STOPPED:
        complain(f"{verb}: stopped")
        return 1
    return code or 0
