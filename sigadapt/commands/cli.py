"""The parser of the command `sigadapt`."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from dspy.utils.exceptions import LMError

from sigadapt import __version__
from sigadapt.commands import check, demo
from sigadapt.errors import SigadaptError
from sigadapt.testing import WIRES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: the words after `sigadapt`; those of the process by default.

    Returns:
        The exit code: 0 for success, 1 if `check` finds errors or the demo's model does not answer, 2 for
        arguments that cannot be used.
    """
    options = _parser().parse_args(arguments)
    if options.command == "check":
        return _check(options.tools)
    demo.quiet()
    if options.model:
        lines = demo.on_model(options.model, options.engine)
    else:
        lines = demo.on_loopback(options.wire, options.engine)
    try:
        for line in lines:
            print(line)
    except (LMError, SigadaptError) as error:
        # Of a provider's error, its first line alone: LiteLLM's hold tracebacks.
        print(f"sigadapt demo: {str(error).strip().partition(chr(10))[0]}", file=sys.stderr)
        return 1
    return 0


def _check(place: str) -> int:
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does, to find the modules of a project
    try:
        report = asyncio.run(check.checked(check.loaded(place)))
    except SigadaptError as error:
        print(error, file=sys.stderr)
        return 2
    for line in check.lines(report):
        print(line)
    return 1 if report.failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sigadapt", description="Tool calling for DSPy signatures.")
    parser.add_argument("--version", action="version", version=f"sigadapt {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("demo", help="show a signature with tools, its request and the typed calls")
    show.add_argument(
        "--wire", choices=tuple(WIRES), default="openai", help="the embedded provider's wire format"
    )
    show.add_argument("--engine", choices=("auto", "litellm"), default="auto", help="dspy.LM's engine")
    show.add_argument(
        "--model", help="ask a real provider instead, such as openai/gpt-4o-mini (uses your key)"
    )
    checks = commands.add_parser("check", help="report what each provider would refuse or change")
    checks.add_argument("tools", help="the tools, as module:name; anything that a ToolDecls field takes")
    return parser


if __name__ == "__main__":
    sys.exit(main())
