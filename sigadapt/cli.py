"""The command `sigadapt`: what can be shown and checked from a terminal."""

import argparse
import sys
from collections.abc import Sequence

from sigadapt import __version__, demo
from sigadapt.testing import WIRES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: the words after `sigadapt`; the process' own by default.

    Returns:
        The exit code: 0 for success, 2 for words that are off.
    """
    options = _parser().parse_args(arguments)
    demo.quiet()
    if options.model:
        lines = demo.on_model(options.model, options.engine)
    else:
        lines = demo.on_loopback(options.wire, options.engine)
    for line in lines:
        print(line)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sigadapt", description="Tool calling for DSPy that loses nothing.")
    parser.add_argument("--version", action="version", version=f"sigadapt {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("demo", help="a signature with tools, its request, and the typed calls")
    show.add_argument(
        "--wire", choices=tuple(WIRES), default="openai", help="the embedded provider's wire format"
    )
    show.add_argument("--engine", choices=("auto", "litellm"), default="auto", help="dspy.LM's engine")
    show.add_argument(
        "--model", help="ask a real provider instead, such as openai/gpt-4o-mini (uses your key)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
