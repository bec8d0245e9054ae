"""Show the exact request that each provider would get, what was changed on the way, and what it weighs.

Nothing leaves the machine: `sending.py` catches each request.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias

import typer

from sigadapt.adapters.lm.over_litellm.tokens import token_counter
from sigadapt.commands.arguments import (
    ADAPTERS,
    AdapterOption,
    EngineOption,
    InputOption,
    McpOption,
    ModeOption,
    ToolsOption,
    decls_of,
    signature_of,
)
from sigadapt.commands.cache_prefix import divergence, earlier_request
from sigadapt.commands.printing import CODE, AsJson, emit, layout, quiet, say, waiting
from sigadapt.commands.programs import Program, program_of
from sigadapt.commands.read import content_of
from sigadapt.commands.sending import sent_to
from sigadapt.schemas.json_values import Json, is_array, is_object
from sigadapt.signatures.native_tools import NativeTool
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.testing import WIRES

_Models: TypeAlias = Sequence[tuple[str, Mapping[str, Any]]]
"""Names of models, and the other arguments of `dspy.LM`."""

DEFAULT_MODELS: _Models = [(wire.model, wire.options) for wire in WIRES.values()]
_NUMBER = re.compile(r"/\d+(?=/|$)")
_LONGEST = 60  # characters of a text in a shortened body
_MOST = 2  # members of its lists
_MOST_TOOLS = 5  # rows of tools in a table of weights


def shown(program: Program, decls: ToolDecls, models: _Models, adapter_with: Callable[..., Any]) -> Json:
    """Return the document: what each provider would get for a program."""
    counting, count = token_counter()
    run = partial(program.module, **program.inputs)
    requests = [sent_to(model, settings, adapter_with, run, count) for model, settings in models]
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
    if is_array(value):
        most = _MOST if key not in ("tools", "functionDeclarations", "function_declarations") else 1
        rest = [f"… and {len(value) - most} more"] if len(value) > most else []
        return [*(shorten(item) for item in value[:most]), *rest]
    return value


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
    where = "nothing is sent" if request["path"] is None else f"POST {request['path']}"
    yield f"{request['model']} ({request['wire']}): {where}", "bold"
    if request["error"]:
        yield f"  error: {request['error']}", "red"
        return
    if request["prompted"]:
        yield "  The tools are in the prompt, and calls are read from the text.", None
    places: dict[tuple[str, str, str], list[str]] = {}
    for change in request["changes"]:  # those that differ only in which tool or message they are of, once
        key = change["what"], _NUMBER.sub("/*", change["where"]), change["why"]
        places.setdefault(key, []).append(change["where"])
    for (what, where, why), alike in places.items():
        yield f"  {what} {alike[0] if len(alike) == 1 else f'{where} ({len(alike)} times)'}: {why}", None
    for adaptation in request["adaptations"]:
        yield f"  {adaptation['action']} {adaptation['field']}: {adaptation['reason']}", None
    if not request["changes"] and not request["adaptations"]:
        yield "  Nothing is renamed, lowered or dropped.", None
    for weight in _rows(request["weights"]):
        yield f"  {weight['bytes']:>8,} bytes {weight['tokens']:>7,} tokens  {weight['part']}", None
    for line in layout(shorten(request["body"]) if short else request["body"], 76).splitlines():
        yield f"  {line}", CODE


def _rows(rows: list[Json]) -> Iterator[Json]:
    """Yield the total, and the parts; of many tools, the sum and the largest."""

    def total(part: str, rows: list[Json]) -> Json:
        return {"part": part, **{unit: sum(row[unit] for row in rows) for unit in ("bytes", "tokens")}}

    yield total("in all", rows)
    tools = [weight for weight in rows if weight["part"].startswith("tool ")]
    if len(tools) > _MOST_TOOLS:
        largest = sorted(tools, key=lambda weight: -weight["bytes"])[:3]
        yield total(f"{len(tools)} tools; the largest are:", tools)
        yield from ({**weight, "part": f"  {weight['part']}"} for weight in largest)
        rows = [weight for weight in rows if weight not in tools]
    yield from rows


_ModelOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="A model; may be repeated. Default: one for each wire."),
]
_TypeOption: TypeAlias = Annotated[
    Literal["chat", "responses"], typer.Option(help="dspy.LM's model_type for --model.")
]


def show(
    signature: Annotated[
        str, typer.Argument(help="module:Signature, a dspy.Module as module:name, or 'question -> answer'.")
    ],
    tools: ToolsOption = None,
    mcp: McpOption = None,
    model: _ModelOption = None,
    model_type: _TypeOption = "chat",
    engine: EngineOption = "auto",
    inputs: InputOption = None,
    adapter: AdapterOption = None,
    tool_calling: ModeOption = None,
    react: Annotated[
        bool, typer.Option("--react", help="Show the first request of dspy.ReActV2 over the signature.")
    ] = False,
    short: Annotated[bool, typer.Option("--short", help="Cut long texts and lists.")] = False,
    compare: Annotated[
        str | None, typer.Option(help="A file with an earlier request, to see where a prompt cache ends.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the exact request that each provider would get.

    It also shows each change with its reason, and the size of each part. Nothing is sent.
    """
    quiet()
    earlier = content_of(compare) if compare else b""
    target = signature_of(signature)
    decls = decls_of(tools, mcp)
    options = {"model_type": model_type, **({} if engine == "auto" else {"engine": engine})}
    models = [(name, options) for name in model] if model else DEFAULT_MODELS
    make_adapter = partial(ADAPTERS[adapter or "chat"], tool_calling=tool_calling or "auto")
    with waiting("making the requests ..."):
        document = shown(program_of(target, decls, inputs or (), react=react), decls, models, make_adapter)
    requests: list[Json] = document["requests"]
    divergences = {
        request["model"]: divergence(earlier_request(earlier, request["model"]), request["body"])
        for request in requests
        if compare and request["body"] is not None
    }
    if as_json:
        parts = {"compared": {name: each._asdict() for name, each in divergences.items()}} if compare else {}
        emit("show", **document, **parts)
    elif not compare:
        for line, style in lines(document, short=short):
            say(line, style)
    else:
        for name, each in divergences.items():
            say(f"{name}: the first {each.byte:,} of {each.of:,} earlier bytes are the same.", "bold")
            say(f"  {each.place or 'No difference'}: {each.why}")
            for label, text in (("before", each.before), ("now", each.after)) if each.place else ():
                say(f"  {label:6} ... {text} ...", CODE)
    if any(request["error"] for request in requests):
        raise typer.Exit(1)
