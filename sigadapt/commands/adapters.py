"""The adapters that the commands use, and the options that choose one."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

import typer

from sigadapt.adapters.baml_adapter import BAMLAdapter
from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.json_adapter import JSONAdapter
from sigadapt.adapters.xml_adapter import XMLAdapter

ADAPTERS: dict[str, Callable[..., Any]] = {
    "chat": ChatAdapter,
    "json": JSONAdapter,
    "xml": XMLAdapter,
    "baml": BAMLAdapter,
}
"""The adapters by the names that the options take."""

AdapterOption: TypeAlias = Annotated[
    Literal["chat", "json", "xml", "baml"] | None,
    typer.Option(help="The adapter. Default: chat; for a recording, the one that fits it."),
]
ModeOption: TypeAlias = Annotated[
    Literal["auto", "native", "prompted"] | None,
    typer.Option(help="The adapter's tool_calling. Default: auto; for a recording, its own."),
]
