"""Replay a recorded exchange through a signature: the same answer, byte for byte, to the same adapter.

The recording is that of `LoopbackProvider(script, record=path)`. A loopback provider sends the recorded
responses, and the real `dspy.LM` reads them, streams as streams.
"""

import json
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, TypeAlias

import dspy
import typer

from sigadapt import Choice
from sigadapt.commands.arguments import (
    ADAPTERS,
    WIRE_NAMES,
    AdapterOption,
    EngineOption,
    InputOption,
    McpOption,
    ModeOption,
    ToolsOption,
    decls_of,
    sentence,
    signature_of,
)
from sigadapt.commands.printing import AsJson, counted, draw, emit, quiet, say, waiting
from sigadapt.commands.programs import inputs_of, tools_field
from sigadapt.commands.read import choice_document, content_of
from sigadapt.commands.request_parts import READING_ORDER, parts_of
from sigadapt.errors import InvalidOption
from sigadapt.schemas.json_values import Json, listed
from sigadapt.testing import WIRES, Exchange, LoopbackProvider, exchanges_in
from sigadapt.testing.exchange import read

Replayed: TypeAlias = tuple[Json, Choice | None, Json]
"""What became of one exchange: its document, the choice and the outputs that the lines show."""


class Program(NamedTuple):
    """What answers are replayed through; without an adapter or mode, the recording's own."""

    signature: Any
    inputs: dict[str, Any]
    tools: Sequence[str]
    engine: str
    adapter: str | None
    tool_calling: str | None


def replay_exchange(exchange: Exchange, program: Program) -> Replayed:
    """Return what becomes of an exchange under an adapter of sigadapt's, which keeps bad calls."""
    if exchange.wire not in WIRES:
        raise InvalidOption(f"the wire {exchange.wire!r} cannot be replayed", field="file")
    prompt = json.dumps(exchange.request)
    mode = program.tool_calling
    if mode is None and "tools" in exchange.request:  # as the recorded request offers tools
        mode = "native"
    elif mode is None:
        is_told = program.tools and all(json.dumps(name)[1:-1] in prompt for name in program.tools)
        mode = "prompted" if is_told else "auto"
    tries: list[Replayed] = []
    for name in [program.adapter] if program.adapter else ADAPTERS:
        tries.append(_under(name, mode, exchange, program))
        if tries[-1][0]["same_instructions"]:
            return tries[-1]
    return tries[0]


def _under(name: str, mode: str, exchange: Exchange, program: Program) -> Replayed:
    wire = WIRES[exchange.wire]
    was = read(1, wire, exchange.path, {}, json.dumps(exchange.request).encode())
    if not was.model:
        fix = "Record with LoopbackProvider(script, record=path)."
        raise InvalidOption("a recorded request names no model", field="file", fix=fix)
    engine = {} if program.engine == "auto" else {"engine": program.engine}
    changes = {"model": f"{wire.model.partition('/')[0]}/{was.model}", **engine}
    choices: list[Choice | None] = [None]

    def keep(choice: Choice, _: object) -> None:
        choices.append(choice)

    adapter = ADAPTERS[name](on_invalid="keep", tool_calling=mode, hooks=[SimpleNamespace(after_choice=keep)])
    outputs: Json = {}
    error: str | None = None
    with LoopbackProvider([exchange.reply]) as provider:
        lm = dspy.LM(**provider.lm_options(wire.name, **changes))
        with dspy.context(lm=lm, adapter=adapter):
            try:
                predictor: Any = dspy.Predict(program.signature)
                if was.stream:
                    streaming: Any = dspy.streamify(predictor, async_streaming=False)
                    answer: Any = [*streaming(**program.inputs)][-1]
                else:
                    answer = predictor(**program.inputs)
                outputs = dict(answer.items())
            except Exception as raised:  # what the program would get is what is reported
                error = f"{type(raised).__name__}: {sentence(raised)}"
        now = provider.received[0].body if provider.received else {}
    choice = choices[-1]
    answer = None if choice is None else choice_document(choice)
    instructions = _instructions(exchange.request)  # none in an exchange written by hand
    is_same = not instructions or _instructions(now) == instructions
    keys = sorted(now.keys() | exchange.request.keys())
    document: Json = {
        "wire": next(name for name, wire_row in WIRE_NAMES.items() if wire_row == exchange.wire),
        "path": exchange.path,
        "status": exchange.status,
        "ok": is_same and error is None and not (answer and answer["invalid"]),
        "answer": answer,
        "outputs": None if error else {n: v if v is None else str(v) for n, v in outputs.items()},
        "error": error,
        "adapter": name,
        "same_instructions": is_same,
        "request_differs_in": [key for key in keys if now.get(key) != exchange.request.get(key)],
        "masked": list(exchange.masked),
    }
    return document, choice, outputs


def _instructions(body: Json) -> list[Any]:
    """Return what a request tells the model before any input, on any wire."""
    return [part.value for part in parts_of(body, READING_ORDER) if part.kind == "instructions"]


_MOST_PLACES = 8  # of what is masked
_NOT_THE_SAME = (
    "the instructions are not the recorded ones, so the recorded program may have read the answer in another "
    "way; give its signature, --tools, --adapter and --tool-calling"
)


def _lines(
    number: int, size: int, document: Json, choice: Choice | None, outputs: Json
) -> Iterator[tuple[Any, str | None]]:
    """Yield what became of an exchange, as lines with their styles and as renderables."""
    where = f"{document['wire']} {document['path']}, status {document['status']}"
    yield f"{number}. {where}, {counted(size, 'byte')}", "bold"
    if choice is not None:
        yield choice, None
    for name, value in outputs.items():
        yield f"  {name} = {value!r}", None
    if document["error"]:
        yield f"  error: {document['error']}", "red"
    if differs := document["request_differs_in"]:
        yield f"  The request differs from the recorded one in: {', '.join(differs)}", None
    if places := document["masked"]:
        yield f"  Masked in the recording: {listed(places, _MOST_PLACES, ', ')}", None
    if not document["same_instructions"]:
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
    decls = decls_of(tools, mcp)
    values, placeholders = inputs_of(target.input_fields, inputs or (), decls, tools_field(target))
    exchanges = list(exchanges_in(content_of(file)))
    if not exchanges:
        raise InvalidOption("the recording is empty", field="file")
    names = [decl.name for decl in decls]
    program = Program(target, values, names, engine, adapter, tool_calling)
    with waiting("replaying ..."):
        replays = [replay_exchange(exchange, program) for exchange in exchanges]
    if as_json:
        emit("replay", placeholders=placeholders, exchanges=[document for document, _, _ in replays])
    else:
        say(f"sigadapt replay: {counted(len(replays), 'exchange')}, {counted(len(decls), 'tool')}", "bold")
        if placeholders:
            say(f"No value given, so a placeholder is sent: {', '.join(placeholders)}")
        for number, each in enumerate(replays, 1):
            for line, style in _lines(number, len(exchanges[number - 1].response), *each):
                say(line, style) if isinstance(line, str) else draw(line)
    if not all(document["ok"] for document, _, _ in replays):
        raise typer.Exit(1)
