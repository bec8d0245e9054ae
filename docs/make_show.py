"""Write docs/show.md: what five providers would get for DSPy's ReActV2 with the tools of an MCP server.

The page is what `sigadapt show` finds. It needs npx, and the server in npm's cache or a network.
`python3 tasks.py site --write` runs it.
"""  # noqa: INP001  (a script)

from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.commands.arguments import decls_of, signature_of
from sigadapt.commands.printing import quiet
from sigadapt.commands.programs import program_of
from sigadapt.commands.show import DEFAULT_MODELS, document_of, lines
from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import Json

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


def found(*, offline: bool = False) -> Json:
    """Return what the command finds; offline, only if the server is in npm's cache."""
    quiet()
    command = f"npx {'--offline ' if offline else ''}-y {SERVER} ."
    decls = decls_of([], [command])
    program = program_of(signature_of("question -> answer"), decls, (), react=True)
    return document_of(program, decls, DEFAULT_MODELS, ChatAdapter)


def versions() -> str:
    """Return the versions that the page depends on."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in ("dspy", "litellm", "mcp"))


def page(document: Json) -> str:
    """Return the whole page."""
    made_with = f"Made with {versions()}.\n"
    return "\n".join([HEAD, made_with, *summary(document), "", *sections(document), FOOT, ""])


def summary(document: Json) -> Iterator[str]:
    """Yield the table: one line for each provider."""
    yield "| model | wire | bytes | tokens | of these, tools | changes |"
    yield "|---|---|---|---|---|---|"
    for request in document["requests"]:
        tools = sum(each["tokens"] for each in request["weights"] if each["part"].startswith("tool "))
        changes = len(request["changes"]) + len(request["adaptations"])
        sizes = f"{request['bytes']:,} | {request['tokens']:,} | {tools:,}"
        yield f"| `{request['model']}` | {request['wire']} | {sizes} | {changes} |"


def sections(document: Json) -> Iterator[str]:
    """Yield one section for each provider, as the command prints it."""
    for request in document["requests"]:
        alone = {**document, "requests": [request], "placeholders": []}
        text = [line for line, _ in lines(alone, short=True)]
        yield f"## {request['model']}\n"
        yield "\n".join(["```text", *text[3:], "```", ""])


def main(write: Callable[[str], object] = lambda text: PAGE.write_text(text, encoding="utf-8")) -> None:
    """Write the page; leave it as it is where the server cannot be had."""
    try:
        write(page(found()))
    except InvalidOption as error:
        print(f"docs/show.md is left as it is: {error}")  # noqa: T201


if __name__ == "__main__":
    main()
