"""Show the exact request that each provider would get, what was changed on the way, and what it weighs.

Nothing leaves the machine: `programs.py` catches each request. Of tools alone, without a program, it says
what each provider would refuse or change (`tool_report.py`).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import compress
from typing import Annotated, Any, Literal, TypeAlias

import typer

from sigadapt.adapters.lm.litellm_engines import token_counter
from sigadapt.commands.programs import Program, program_of, run, sent_to
from sigadapt.commands.terminal import (
    ADAPTERS,
    CODE,
    AdapterOption,
    AsJson,
    EngineOption,
    InputOption,
    McpOption,
    ModeOption,
    ToolsOption,
    decls_of,
    emit,
    layout,
    quiet,
    say,
    signature_of,
    waiting,
)
from sigadapt.commands.tool_report import report
from sigadapt.json_values import Json, is_array, is_object
from sigadapt.signatures.server_tools import NativeTool
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.testing import WIRES

_Models: TypeAlias = Sequence[tuple[str, Mapping[str, Any]]]
"""Names of models, and the other arguments of `dspy.LM`."""

DEFAULT_MODELS: _Models = [(wire.model, wire.options) for wire in WIRES.values()]
_NUMBER = re.compile(r"/\d+(?=/|$)")
_LONGEST = 60  # characters of a text in a shortened body
_MOST = 2  # members of its lists
_MOST_TOOLS = 5  # rows of tools in a table of weights


def document_of(
    program: Program, decls: ToolDecls, models: _Models, adapter_with: Callable[..., Any]
) -> Json:
    """Return the document: what each provider would get for a program."""
    counting, count = token_counter()
    send = partial(run, program)
    requests = [sent_to(model, settings, adapter_with, send, count) for model, settings in models]
    server_tools = [entry.kind for entry in decls.entries if isinstance(entry, NativeTool)]
    tools = [decl.name for decl in decls] + [kind for kind in server_tools if kind not in program.left_out]
    if not decls.entries:  # those that the module holds itself
        tools = next((names for _, names in requests if names), list[str]())
    return {
        "signature": program.name,
        "tools": tools,
        "placeholders": program.placeholders,
        "left_out": program.left_out,
        "tokens_are": counting,
        "requests": [request for request, _ in requests],
    }


def shorten(value: Any, key: str = "") -> Any:
    """Return JSON with long texts and lists cut, each saying what was cut."""
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}… ({len(value)} characters)"
    if is_object(value):
        return {name: shorten(item, name) for name, item in value.items()}
    if not is_array(value):
        return value
    limit = 1 if key in ("tools", "functionDeclarations", "function_declarations") else _MOST
    items = [shorten(item) for item in value[:limit]]
    if len(value) > limit:
        items.append(f"… and {len(value) - limit} more")
    return items


def lines(document: Json, *, short: bool) -> Iterator[tuple[str, str | None]]:
    """Yield the document's lines, each with its style."""
    names = ", ".join(document["tools"]) or "none"
    yield f"sigadapt show: {document['signature']}, tools: {names}", "bold"
    if document["placeholders"]:
        yield f"No value given, so a placeholder is sent: {', '.join(document['placeholders'])}", None
    if document["left_out"]:
        yield f"Left out, because only functions can be given here: {', '.join(document['left_out'])}", None
    yield f"Tokens are {document['tokens_are']}.", None
    for request in document["requests"]:
        yield "", None
        yield from _request_lines(request, short=short)


def _request_lines(request: Json, *, short: bool) -> Iterator[tuple[str, str | None]]:
    target = "nothing is sent" if request["path"] is None else f"POST {request['path']}"
    yield f"{request['model']} ({request['wire']}): {target}", "bold"
    if request["error"]:
        yield f"  error: {request['error']}", "red"
        return
    if request["prompted"]:
        yield "  The tools are in the prompt, and calls are read from the text.", None
    yield from ((line, None) for line in _change_lines(request["changes"]))
    for adaptation in request["adaptations"]:
        yield f"  {adaptation['action']} {adaptation['field']}: {adaptation['reason']}", None
    if not request["changes"] and not request["adaptations"]:
        yield "  Nothing is renamed, lowered or dropped.", None
    for weight in _rows(request["weights"]):
        yield f"  {weight['bytes']:>8,} bytes {weight['tokens']:>7,} tokens  {weight['part']}", None
    body = shorten(request["body"]) if short else request["body"]
    for line in layout(body, 76).splitlines():
        yield f"  {line}", CODE


def _change_lines(changes: list[Json]) -> Iterator[str]:
    """Yield changes, those that differ only in which tool or message they are of as one."""
    pointers: dict[tuple[str, str, str], list[str]] = {}
    for change in changes:
        key = change["what"], _NUMBER.sub("/*", change["where"]), change["why"]
        pointers.setdefault(key, []).append(change["where"])
    for (action, pattern, reason), same in pointers.items():
        pointer = same[0] if len(same) == 1 else f"{pattern} ({len(same)} times)"
        yield f"  {action} {pointer}: {reason}"


def _rows(rows: list[Json]) -> Iterator[Json]:
    """Yield the total, and the parts; of many tools, the sum and the largest."""
    yield _total("in all", rows)
    tools = [weight for weight in rows if weight["part"].startswith("tool ")]
    if len(tools) > _MOST_TOOLS:
        largest = sorted(tools, key=lambda weight: -weight["bytes"])[:3]
        yield _total(f"{len(tools)} tools; the largest are:", tools)
        yield from ({**weight, "part": f"  {weight['part']}"} for weight in largest)
        rows = [weight for weight in rows if weight not in tools]
    yield from rows


def _total(name: str, rows: list[Json]) -> Json:
    size = sum(row["bytes"] for row in rows)
    return {"part": name, "bytes": size, "tokens": sum(row["tokens"] for row in rows)}


_ModelOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="A model; may be repeated. Default: one for each wire."),
]
_TypeOption: TypeAlias = Annotated[
    Literal["chat", "responses"], typer.Option(help="dspy.LM's model_type for --model.")
]


def show(
    signature: Annotated[
        str | None,
        typer.Argument(help="module:Signature, a dspy.Module as module:name, or 'question -> answer'."),
    ] = None,
    tools: ToolsOption = None,
    mcp: McpOption = None,
    model: _ModelOption = None,
    model_type: _TypeOption = "chat",
    engine: EngineOption = "auto",
    inputs: InputOption = None,
    adapter: AdapterOption = "chat",
    tool_calling: ModeOption = "auto",
    react: Annotated[
        bool, typer.Option("--react", help="Show the first request of dspy.ReActV2 over the signature.")
    ] = False,
    short: Annotated[bool, typer.Option("--short", help="Cut long texts and lists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the exact request that each provider would get.

    It also shows each change with its reason, and the size of each part. Nothing is sent. Without a
    signature, it lists what each provider would refuse or change in the tools.
    """
    quiet()
    if signature is None:
        report(tools or (), mcp or (), as_json=as_json)
        return
    target = signature_of(signature)
    decls = decls_of(tools, mcp)
    options = {"model_type": model_type}
    if engine != "auto":
        options["engine"] = engine
    models = [(name, options) for name in model] if model else DEFAULT_MODELS
    make_adapter = partial(ADAPTERS[adapter], tool_calling=tool_calling)
    with waiting("making the requests ..."):
        program = program_of(target, decls, inputs or (), react=react)
        document = document_of(program, decls, models, make_adapter)
    if as_json:
        emit("show", **document)
    else:
        for line, style in lines(document, short=short):
            say(line, style)
    # Nobody asked for the models that are shown by default, and one of them needs LiteLLM.
    is_optional = not model and find_spec("litellm") is None
    needed = [not is_optional or options.get("engine") != "litellm" for _, options in models]
    requests: Iterable[Json] = compress(document["requests"], needed)
    if any(request["error"] for request in requests):
        raise typer.Exit(1)
