"""Write docs/show.md: what five providers would get for DSPy's ReActV2 with the tools of an MCP server.

The page is what `sigadapt show` finds. It needs npx, and the server in npm's cache or a network. Run it with
`python3 tasks.py docs`.
"""  # noqa: INP001  (a script)

import asyncio
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from sigadapt.commands.arguments import decls_of, signature_of
from sigadapt.commands.printing import quiet
from sigadapt.commands.sending import default_models
from sigadapt.commands.show import Shown, lines, shown
from sigadapt.errors import InvalidOption

PAGE = Path(__file__).with_name("show.md")
SERVER = "@modelcontextprotocol/server-filesystem@2026.8.31"
HEAD = f"""# What an agent sends

What five providers would get for the first request of `dspy.ReActV2` over `question -> answer`, with the
tools of the MCP filesystem server. The page is the output of one command, which sends nothing to a provider:

```sh
sigadapt show "question -> answer" --react --mcp "npx -y {SERVER} ." --short
```

`--short` cuts long texts and lists; without it the requests are whole. [The command](guides/command.md) has
the options.
"""
FOOT = "`docs/make_show.py` writes this page."


def found(*, offline: bool = False) -> Shown:
    """Return what the command finds; offline, only if the server is in npm's cache."""
    quiet()
    command = f"npx {'--offline ' if offline else ''}-y {SERVER} ."
    decls = asyncio.run(decls_of([], [command]))
    return shown(signature_of("question -> answer"), decls, default_models(), react=True)


def versions() -> str:
    """Return the versions that the page depends on."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in ("dspy", "litellm", "mcp"))


def page(what: Shown) -> str:
    """Return the whole page."""
    return "\n".join([HEAD, f"Made with {versions()}.\n", *summary(what), "", *sections(what), FOOT, ""])


def summary(what: Shown) -> Iterator[str]:
    """Yield the table: one line for each provider."""
    yield "| model | wire | bytes | tokens | of these, tools | changes |"
    yield "|---|---|---|---|---|---|"
    for sent, weighed in what.sent:
        total, tokens = (sum(getattr(weight, unit) for weight in weighed) for unit in ("bytes", "tokens"))
        tools = sum(weight.tokens for weight in weighed if weight.part.startswith("tool "))
        changes = len(sent.changes) + len(sent.adaptations)
        yield f"| `{sent.model}` | {sent.wire} | {total:,} | {tokens:,} | {tools:,} | {changes} |"


def sections(what: Shown) -> Iterator[str]:
    """Yield one section for each provider, as the command prints it."""
    for sent, weighed in what.sent:
        text = [line for line, _ in lines(what._replace(sent=[(sent, weighed)], placeholders=[]), short=True)]
        yield f"## {sent.model}\n"
        yield "\n".join(["```text", *text[3:], "```", ""])


def main(write: Callable[[str], object] = lambda text: PAGE.write_text(text, encoding="utf-8")) -> None:
    """Write the page; leave it as it is where the server cannot be had."""
    try:
        write(page(found()))
    except InvalidOption as error:
        print(f"docs/show.md is left as it is: {error}")  # noqa: T201


if __name__ == "__main__":
    main()
