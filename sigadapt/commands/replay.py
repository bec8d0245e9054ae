"""Replay a recorded exchange through a signature: the same answer, byte for byte, to the same adapter.

The recording is that of `LoopbackProvider(script, record=path)`. A loopback provider sends the recorded
responses, and the real `dspy.LM` reads them, streams as streams.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple, cast

import dspy
import typer

from sigadapt.adapters.chat_adapter import ChatAdapter
from sigadapt.adapters.hooks import HookContext
from sigadapt.adapters.response.choice import Choice
from sigadapt.commands.arguments import (
    EngineOption,
    InputOption,
    McpOption,
    ToolsOption,
    decls_of,
    inputs_of,
    sentence,
    signature_of,
)
from sigadapt.commands.printing import AsJson, console, emit, quiet, say, waiting
from sigadapt.commands.read import choice_document, content_of
from sigadapt.errors import InvalidOption
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.testing import WIRES, Exchange, LoopbackProvider, exchanges_in
from sigadapt.testing.exchange import read


class Replayed(NamedTuple):
    """What became of one exchange.

    Args:
        exchange: the exchange.
        choice: what was read; None if nothing could be.
        outputs: the output fields; None if there is an error.
        error: the error, in a sentence.
        differs: the fields of the request's body that differ from the recorded ones.
    """

    exchange: Exchange
    choice: Choice | None
    outputs: dict[str, Any] | None
    error: str | None
    differs: list[str]

    @property
    def is_good(self) -> bool:
        """Whether the program got its outputs, and every call is good."""
        calls = self.choice.tool_calls if self.choice else None
        return self.error is None and (calls is None or not calls.invalid)


class _Noted:
    """A hook that keeps the last choice."""

    choice: Choice | None = None

    def after_choice(self, choice: Choice, context: HookContext) -> None:  # noqa: ARG002
        self.choice = choice


def replayed(exchange: Exchange, signature: Any, inputs: dict[str, Any], engine: str = "auto") -> Replayed:
    """Return what becomes of an exchange under sigadapt's ChatAdapter, which keeps bad calls.

    Args:
        exchange: the exchange.
        signature: the signature.
        inputs: its inputs, the tools among them.
        engine: the engine of `dspy.LM`.

    Raises:
        InvalidOption: for a wire that the loopback provider does not speak.
    """
    if exchange.wire not in WIRES:
        raise InvalidOption(f"the wire {exchange.wire!r} cannot be replayed", field="file")
    wire, noted = WIRES[exchange.wire], _Noted()
    was = read(1, wire, exchange.path, {}, json.dumps(exchange.request).encode())
    prefix = wire.model.partition("/")[0]
    changes = {"model": f"{prefix}/{was.model}", **({} if engine == "auto" else {"engine": engine})}
    adapter = ChatAdapter(on_invalid="keep", tool_calling=_mode(exchange), hooks=[noted])
    outputs: dict[str, Any] | None = None
    error: str | None = None
    with LoopbackProvider([exchange.reply]) as provider:
        lm = dspy.LM(**provider.lm_options(wire.name, **changes))
        with dspy.context(lm=lm, adapter=adapter):
            try:
                outputs = _run(dspy.Predict(signature), inputs, streamed=was.stream)
            except Exception as raised:  # noqa: BLE001  (what the program would get is what is reported)
                error = f"{type(raised).__name__}: {sentence(raised)}"
        now = provider.received[0].body if provider.received else {}
    keys = sorted(now.keys() | exchange.request.keys())
    differs = [key for key in keys if now.get(key) != exchange.request.get(key)]
    return Replayed(exchange, noted.choice, outputs, error, differs)


def _mode(exchange: Exchange) -> Any:
    return "native" if "tools" in exchange.request else "auto"


def _run(program: Any, inputs: dict[str, Any], *, streamed: bool) -> dict[str, Any]:
    if not streamed:
        return dict(program(**inputs).items())
    pieces = list(cast("Any", dspy.streamify(program, async_streaming=False))(**inputs))
    last = next(piece for piece in reversed(pieces) if isinstance(piece, dspy.Prediction))
    return dict(cast("Any", last).items())


def lines(number: int, found: Replayed) -> Iterator[tuple[Any, str | None]]:
    """Yield what became of an exchange, as lines with their styles and as renderables."""
    exchange = found.exchange
    size = f"{len(exchange.response):,} bytes"
    yield f"{number}. {exchange.wire} {exchange.path}, status {exchange.status}, {size}", "bold"
    if found.choice is not None:
        yield found.choice, None
    for name, value in (found.outputs or {}).items():
        yield f"  {name} = {value!r}", None
    if found.error:
        yield f"  error: {found.error}", "red"
    if found.differs:
        yield f"  The request differs from the recorded one in: {', '.join(found.differs)}", None


def replay(
    file: Annotated[str, typer.Argument(help="The recording, in JSON lines; - for stdin.")],
    signature: Annotated[
        str, typer.Option("--signature", "-s", help="module:Signature, or 'question -> answer'.")
    ],
    tools: ToolsOption = None,
    mcp: McpOption = None,
    inputs: InputOption = None,
    engine: EngineOption = "auto",
    as_json: AsJson = False,
) -> None:
    """Replay recorded exchanges through a signature and print what a program gets, for bug reports.

    A recording is made with sigadapt.testing: LoopbackProvider(script, record="file.jsonl"). Exits with 1 if
    an answer has a bad call or ends in an error.
    """
    quiet()
    target = signature_of(signature)
    if isinstance(target, dspy.Module):
        raise InvalidOption("replaying takes a signature, not a module", field="signature")
    decls = asyncio.run(decls_of(tools or (), mcp or ()))
    values, placeholders = inputs_of(target, inputs or (), decls)
    exchanges = list(exchanges_in(content_of(file)))
    if not exchanges:
        raise InvalidOption("the recording is empty", field="file")
    with waiting("replaying ..."):
        found = [replayed(exchange, target, values, engine) for exchange in exchanges]
    if as_json:
        emit("replay", placeholders=placeholders, exchanges=[document(each) for each in found])
    else:
        _print(found, placeholders, decls)
    if not all(each.is_good for each in found):
        raise typer.Exit(1)


def _print(found: Sequence[Replayed], placeholders: list[str], decls: ToolDecls) -> None:
    say(f"sigadapt replay: {len(found)} exchanges, {len(decls)} tools", "bold")
    if placeholders:
        say(f"No value given, so a placeholder is sent: {', '.join(placeholders)}")
    for number, each in enumerate(found, 1):
        for line, style in lines(number, each):
            say(line, style) if isinstance(line, str) else console().print(line)


def document(found: Replayed) -> dict[str, Any]:
    """Return what became of an exchange as the JSON document holds it."""
    return {
        "wire": found.exchange.wire,
        "path": found.exchange.path,
        "status": found.exchange.status,
        "ok": found.is_good,
        "answer": None if found.choice is None else choice_document(found.choice),
        "outputs": found.outputs and {name: str(value) for name, value in found.outputs.items()},
        "error": found.error,
        "request_differs_in": found.differs,
    }
