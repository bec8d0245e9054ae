"""Replay a recorded exchange through a signature: the same answer, byte for byte, to the same adapter.

The recording is that of `LoopbackProvider(script, record=path)`. A loopback provider sends the recorded
responses, and the real `dspy.LM` reads them, streams as streams.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NamedTuple

import dspy
import typer

from sigadapt.adapters.hooks import HookContext
from sigadapt.adapters.response.choice import Choice
from sigadapt.commands.adapters import ADAPTERS, AdapterOption, ModeOption
from sigadapt.commands.arguments import (
    WIRE_NAMES,
    EngineOption,
    InputOption,
    McpOption,
    ToolsOption,
    decls_of,
    sentence,
    signature_of,
)
from sigadapt.commands.printing import AsJson, counted, draw, emit, quiet, say, waiting
from sigadapt.commands.programs import inputs_of
from sigadapt.commands.read import choice_document, content_of
from sigadapt.commands.request_parts import READING_ORDER, parts_of
from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import Json
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.testing import WIRES, Exchange, LoopbackProvider, exchanges_in
from sigadapt.testing.exchange import read


class Replayed(NamedTuple):
    """What became of one exchange; without a choice or outputs, the error says why."""

    exchange: Exchange
    choice: Choice | None
    outputs: dict[str, Any] | None
    error: str | None
    differs: list[str]
    """The fields of the request's body that differ from the recorded ones."""
    adapter: str
    told_alike: bool
    """Whether the model got the recorded instructions; otherwise another program was recorded."""

    @property
    def is_good(self) -> bool:
        """Whether the program is the recorded one and got its outputs, and every call is good."""
        calls = self.choice.tool_calls if self.choice else None
        return self.told_alike and self.error is None and (calls is None or not calls.invalid)


class _Noted:
    """A hook that keeps the last choice."""

    choice: Choice | None = None

    def after_choice(self, choice: Choice, context: HookContext) -> None:
        self.choice = choice


class Program(NamedTuple):
    """What answers are replayed through; without an adapter or mode, the recording's own."""

    signature: Any
    inputs: dict[str, Any]
    tools: Sequence[str] = ()
    engine: str = "auto"
    adapter: str | None = None
    tool_calling: str | None = None


_RECORD = "Record with LoopbackProvider(script, record=path)."


def replay_exchange(exchange: Exchange, program: Program) -> Replayed:
    """Return what becomes of an exchange under an adapter of sigadapt's, which keeps bad calls.

    Raises:
        InvalidOption: for a wire that the loopback provider does not speak.
    """
    if exchange.wire not in WIRES:
        raise InvalidOption(f"the wire {exchange.wire!r} cannot be replayed", field="file")
    mode = program.tool_calling or _mode(exchange, program.tools)
    first, *others = [program.adapter] if program.adapter else ADAPTERS
    found = _under(first, mode, exchange, program)
    tried = (found, *(_under(name, mode, exchange, program) for name in others if not found.told_alike))
    return next((each for each in tried if each.told_alike), found)


def _mode(exchange: Exchange, tools: Sequence[str]) -> str:
    """How the recorded request offers tools: as its own, in the prompt, or not at all."""
    if "tools" in exchange.request:
        return "native"
    prompt = json.dumps(exchange.request)
    return "prompted" if tools and all(json.dumps(name)[1:-1] in prompt for name in tools) else "auto"


def _under(name: str, mode: str, exchange: Exchange, program: Program) -> Replayed:
    wire, noted = WIRES[exchange.wire], _Noted()
    was = read(1, wire, exchange.path, {}, json.dumps(exchange.request).encode())
    if not was.model:
        raise InvalidOption("a recorded request names no model", field="file", fix=_RECORD)
    engine = {} if program.engine == "auto" else {"engine": program.engine}
    changes = {"model": f"{wire.model.partition('/')[0]}/{was.model}", **engine}
    adapter = ADAPTERS[name](on_invalid="keep", tool_calling=mode, hooks=[noted])
    outputs: dict[str, Any] | None = None
    error: str | None = None
    with LoopbackProvider([exchange.reply]) as provider:
        lm = dspy.LM(**provider.lm_options(wire.name, **changes))
        with dspy.context(lm=lm, adapter=adapter):
            try:
                outputs = _run(dspy.Predict(program.signature), program.inputs, streamed=was.stream)
            except Exception as raised:  # what the program would get is what is reported
                error = f"{type(raised).__name__}: {sentence(raised)}"
        now = provider.received[0].body if provider.received else {}
    keys = sorted(now.keys() | exchange.request.keys())
    differs = [key for key in keys if now.get(key) != exchange.request.get(key)]
    told = _instructions(exchange.request)  # none in an exchange written by hand
    alike = not told or _instructions(now) == told
    return Replayed(exchange, noted.choice, outputs, error, differs, name, alike)


def _instructions(body: Json) -> list[Any]:
    """Return what a request tells the model before any input, on any wire."""
    return [part.value for part in parts_of(body, READING_ORDER) if part.kind == "instructions"]


def _run(program: Any, inputs: dict[str, Any], *, streamed: bool) -> dict[str, Any]:
    if not streamed:
        return dict(program(**inputs).items())
    streamed_program: Any = dspy.streamify(program, async_streaming=False)
    pieces: list[Any] = list(streamed_program(**inputs))
    answer: Any = next(piece for piece in reversed(pieces) if isinstance(piece, dspy.Prediction))
    return dict(answer.items())


_NOT_THE_SAME = (
    "the instructions are not the recorded ones, so the recorded program may have read the answer in another "
    "way; give its signature, --tools, --adapter and --tool-calling"
)


def _wire_name(exchange: Exchange) -> str:
    return next(name for name, wire in WIRE_NAMES.items() if wire == exchange.wire)


def lines(number: int, found: Replayed) -> Iterator[tuple[Any, str | None]]:
    """Yield what became of an exchange, as lines with their styles and as renderables."""
    exchange = found.exchange
    size = counted(len(exchange.response), "byte")
    yield f"{number}. {_wire_name(exchange)} {exchange.path}, status {exchange.status}, {size}", "bold"
    if found.choice is not None:
        yield found.choice, None
    for name, value in (found.outputs or {}).items():
        yield f"  {name} = {value!r}", None
    if found.error:
        yield f"  error: {found.error}", "red"
    if found.differs:
        yield f"  The request differs from the recorded one in: {', '.join(found.differs)}", None
    if not found.told_alike:
        yield f"  error: {_NOT_THE_SAME}", "red"


def replay(
    file: Annotated[str, typer.Argument(help="The recording, in JSON lines; - for stdin.")],
    signature: Annotated[
        str, typer.Option("--signature", "-s", help="module:Signature, or 'question -> answer'.")
    ],
    tools: ToolsOption = None,
    mcp: McpOption = None,
    inputs: InputOption = None,
    engine: EngineOption = "auto",
    adapter: AdapterOption = None,
    tool_calling: ModeOption = None,
    as_json: AsJson = False,
) -> None:
    """Replay a recording through a signature.

    It prints what a program gets from the recorded answers, for bug reports.
    """
    # A recording is made with sigadapt.testing: LoopbackProvider(script, record="file.jsonl"). Exits with 1
    # if an answer has a bad call or ends in an error, or if the instructions are not the recorded ones.
    quiet()
    target = signature_of(signature)
    if isinstance(target, dspy.Module):
        raise InvalidOption("replaying takes a signature, not a module", field="signature")
    decls = asyncio.run(decls_of(tools or (), mcp or ()))
    values, placeholders = inputs_of(target, inputs or (), decls)
    exchanges = list(exchanges_in(content_of(file)))
    if not exchanges:
        raise InvalidOption("the recording is empty", field="file")
    names = [decl.name for decl in decls]
    program = Program(target, values, names, engine, adapter, tool_calling)
    with waiting("replaying ..."):
        found = [replay_exchange(exchange, program) for exchange in exchanges]
    if as_json:
        emit("replay", placeholders=placeholders, exchanges=[document(each) for each in found])
    else:
        _print(found, placeholders, decls)
    if not all(each.is_good for each in found):
        raise typer.Exit(1)


def _print(found: Sequence[Replayed], placeholders: list[str], decls: ToolDecls) -> None:
    say(f"sigadapt replay: {counted(len(found), 'exchange')}, {counted(len(decls), 'tool')}", "bold")
    if placeholders:
        say(f"No value given, so a placeholder is sent: {', '.join(placeholders)}")
    for number, each in enumerate(found, 1):
        for line, style in lines(number, each):
            say(line, style) if isinstance(line, str) else draw(line)


def document(found: Replayed) -> dict[str, Any]:
    """Return what became of an exchange as the JSON document holds it."""
    return {
        "wire": _wire_name(found.exchange),
        "path": found.exchange.path,
        "status": found.exchange.status,
        "ok": found.is_good,
        "answer": None if found.choice is None else choice_document(found.choice),
        "outputs": found.outputs and {n: v if v is None else str(v) for n, v in found.outputs.items()},
        "error": found.error,
        "adapter": found.adapter,
        "same_instructions": found.told_alike,
        "request_differs_in": found.differs,
    }
