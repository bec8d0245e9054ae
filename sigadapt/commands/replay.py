"""Replay a recorded exchange through a signature: the same answer, byte for byte, to the same adapter.

The recording is that of `LoopbackProvider(script, record=path)`. A loopback provider sends the recorded
responses, and the real `dspy.LM` reads them, streams as streams.
"""

import json
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

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


class ReplayResult(NamedTuple):
    """What became of one exchange: its document, the choice and the outputs that the lines show."""

    document: Json
    choice: Choice | None
    outputs: Json


class Replay(NamedTuple):
    """What answers are replayed through; without an adapter or mode, the recording's own."""

    signature: Any
    inputs: dict[str, Any]
    tools: Sequence[str]
    engine: str
    adapter: str | None
    tool_calling: str | None


def replay_exchange(exchange: Exchange, replay: Replay) -> ReplayResult:
    """Return what becomes of an exchange under an adapter of sigadapt's, which keeps bad calls."""
    if exchange.wire not in WIRES:
        raise InvalidOption(f"the wire {exchange.wire!r} cannot be replayed", field="file")
    mode = replay.tool_calling or _mode_of(exchange, replay.tools)
    results: list[ReplayResult] = []
    for name in [replay.adapter] if replay.adapter else ADAPTERS:
        results.append(_under(name, mode, exchange, replay))
        if results[-1].document["same_instructions"]:
            return results[-1]
    return results[0]


def _mode_of(exchange: Exchange, tools: Sequence[str]) -> str:
    """Return the mode in which a recorded request offers its tools."""
    if "tools" in exchange.request:
        return "native"
    prompt = json.dumps(exchange.request)
    is_prompted = tools and all(json.dumps(name)[1:-1] in prompt for name in tools)
    return "prompted" if is_prompted else "auto"


def _under(name: str, mode: str, exchange: Exchange, replay: Replay) -> ReplayResult:
    wire = WIRES[exchange.wire]
    received = read(1, wire, exchange.path, {}, json.dumps(exchange.request).encode())
    if not received.model:
        fix = "Record with LoopbackProvider(script, record=path)."
        raise InvalidOption("a recorded request names no model", field="file", fix=fix)
    settings = {"model": f"{wire.model.partition('/')[0]}/{received.model}"}
    if replay.engine != "auto":
        settings["engine"] = replay.engine
    choices: list[Choice | None] = [None]

    def keep(choice: Choice, _: object) -> None:
        choices.append(choice)

    adapter = ADAPTERS[name](on_invalid="keep", tool_calling=mode, hooks=[SimpleNamespace(after_choice=keep)])
    outputs: Json = {}
    error: str | None = None
    with LoopbackProvider([exchange.reply]) as provider:
        lm = dspy.LM(**provider.lm_options(wire.name, **settings))
        with dspy.context(lm=lm, adapter=adapter):
            try:
                outputs = _outputs(replay, is_stream=received.stream)
            except Exception as raised:  # what the program would get is what is reported
                error = f"{type(raised).__name__}: {sentence(raised)}"
        request = provider.received[0].body if provider.received else {}
    choice = choices[-1]
    answer = None if choice is None else choice_document(choice)
    instructions = _instructions(exchange.request)  # none in an exchange written by hand
    is_same = not instructions or _instructions(request) == instructions
    keys = sorted(request.keys() | exchange.request.keys())
    texts: Json = dict.fromkeys(outputs)
    texts |= {output: str(value) for output, value in outputs.items() if value is not None}
    document: Json = {
        "wire": next(name for name, wire_row in WIRE_NAMES.items() if wire_row == exchange.wire),
        "path": exchange.path,
        "status": exchange.status,
        "ok": is_same and error is None and not (answer and answer["invalid"]),
        "answer": answer,
        "outputs": None if error else texts,
        "error": error,
        "adapter": name,
        "same_instructions": is_same,
        "request_differs_in": [key for key in keys if request.get(key) != exchange.request.get(key)],
        "masked": list(exchange.masked),
    }
    return ReplayResult(document, choice, outputs)


def _outputs(replay: Replay, *, is_stream: bool) -> Json:
    """Run the signature, as a stream if the recorded answer is one, and return its outputs."""
    predictor: Any = dspy.Predict(replay.signature)
    if not is_stream:
        return dict(predictor(**replay.inputs).items())
    streaming: Any = dspy.streamify(predictor, async_streaming=False)
    prediction: Any = [*streaming(**replay.inputs)][-1]
    return dict(prediction.items())


def _instructions(body: Json) -> list[Any]:
    """Return what a request tells the model before any input, on any wire."""
    return [part.value for part in parts_of(body, READING_ORDER) if part.kind == "instructions"]


_MOST_PLACES = 8  # of what is masked
_NOT_THE_SAME = (
    "the instructions are not the recorded ones, so the recorded program may have read the answer in another "
    "way; give its signature, --tools, --adapter and --tool-calling"
)


def _lines(number: int, size: int, result: ReplayResult) -> Iterator[tuple[Any, str | None]]:
    """Yield what became of an exchange, as lines with their styles and as renderables."""
    document = result.document
    heading = f"{document['wire']} {document['path']}, status {document['status']}"
    yield f"{number}. {heading}, {counted(size, 'byte')}", "bold"
    if result.choice is not None:
        yield result.choice, None
    for name, value in result.outputs.items():
        yield f"  {name} = {value!r}", None
    if document["error"]:
        yield f"  error: {document['error']}", "red"
    if keys := document["request_differs_in"]:
        yield f"  The request differs from the recorded one in: {', '.join(keys)}", None
    if masked := document["masked"]:
        yield f"  Masked in the recording: {listed(masked, _MOST_PLACES, ', ')}", None
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
    program = Replay(target, values, names, engine, adapter, tool_calling)
    with waiting("replaying ..."):
        results = [replay_exchange(exchange, program) for exchange in exchanges]
    if as_json:
        emit("replay", placeholders=placeholders, exchanges=[result.document for result in results])
    else:
        say(f"sigadapt replay: {counted(len(results), 'exchange')}, {counted(len(decls), 'tool')}", "bold")
        if placeholders:
            say(f"No value given, so a placeholder is sent: {', '.join(placeholders)}")
        for number, (exchange, result) in enumerate(zip(exchanges, results, strict=True), 1):
            for line, style in _lines(number, len(exchange.response), result):
                say(line, style) if isinstance(line, str) else draw(line)
    if not all(result.document["ok"] for result in results):
        raise typer.Exit(1)
