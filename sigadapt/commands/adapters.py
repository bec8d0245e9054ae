"""The adapters that the commands use, and the options that choose one."""

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

import typer

from sigadapt.adapters.baml_adapter import BAMLAdapter
from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.json_adapter import JSONAdapter
from sigadapt.adapters.xml_adapter import XMLAdapter
from sigadapt.commands.arguments import one_of

ADAPTERS: dict[str, Callable[..., Any]] = {
    "chat": ChatAdapter,
    "json": JSONAdapter,
    "xml": XMLAdapter,
    "baml": BAMLAdapter,
}
"""The adapters by the names that the options take."""

MODES = ("auto", "native", "prompted")

AdapterOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"The adapter: {', '.join(ADAPTERS)}. Default: chat; of a recording, the one that it fits.",
        callback=one_of(ADAPTERS),
        autocompletion=lambda: list(ADAPTERS),
    ),
]
ModeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help=f"The adapter's tool_calling: {', '.join(MODES)}. Default: auto; of a recording, its own.",
        callback=one_of(MODES),
        autocompletion=lambda: list(MODES),
    ),
]
