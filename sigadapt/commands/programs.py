"""The program that a command runs for a signature or a module, and the request that a provider would get.

The real adapter and the real `dspy.LM` make the request. `dspy.LM` is pointed at a server on this machine,
which records the first request whatever its path, and answers where it knows the wire. So the request is
what the provider would get, byte for byte.
"""

import asyncio
import inspect
import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import dspy
from pydantic.fields import FieldInfo

from sigadapt import ToolDecl, ToolDecls
from sigadapt.adapters.hooks import HookContext
from sigadapt.adapters.lm.routes import route_of
from sigadapt.adapters.passes.prompts import PROMPTED
from sigadapt.adapters.plan import plan_of
from sigadapt.commands.terminal import WIRE_NAMES, sentence
from sigadapt.dspy_boundary.contract import ReActV2
from sigadapt.errors import InvalidOption
from sigadapt.json_values import Json, compact, is_array, is_object
from sigadapt.providers.wire.values import an_object, objects
from sigadapt.server_tools import McpServer
from sigadapt.signatures.server_tools import NativeTool
from sigadapt.testing import WIRES, Answer
from sigadapt.testing.provider import Response, Server, read, write
from sigadapt.testing.wires import wire_at
from sigadapt.trust.echoes import Echoes


class Program(NamedTuple):
    """A program, and what it is given."""

    name: str
    module: dspy.Module
    inputs: dict[str, Any]
    placeholders: list[str]
    """The names of the inputs without a value."""
    left_out: list[str]
    """The kinds of the provider's own tools, where the program takes functions alone."""


def run(program: Program) -> None:
    """Run a program with its inputs, in a loop if it has no `forward`."""
    if hasattr(program.module, "forward"):
        program.module(**program.inputs)
    else:
        asyncio.run(program.module.acall(**program.inputs))


def program_of(target: Any, decls: ToolDecls, inputs: Iterable[str], *, react: bool = False) -> Program:
    """Return the program of a signature or a module."""
    if react:
        return _react_program(_signature_of(target), decls, inputs)
    if not isinstance(target, dspy.Module):
        return _signature_program(target, dspy.Predict(target), decls, inputs)
    predictors = _predictors(target)
    fields = _parameters_of(target, predictors)
    if fields is None:
        return _signature_program(_signature_of(target), target, decls, inputs)
    name = type(target).__name__
    tools = next((key for key, field in fields.items() if _TOOLS & {*_members(field.annotation)}), None)
    if decls.entries and tools is None:
        fix = "Add a parameter `tools: ToolDecls` to it, or leave out --tools."
        raise InvalidOption(f"the forward of {name} takes no tools", field="tools", fix=fix)
    return _program(name, target, fields, inputs, decls, tools)


def _signature_program(
    signature: Any, module: dspy.Module, decls: ToolDecls, inputs: Iterable[str]
) -> Program:
    """Return the program of a module that takes what a signature has."""
    tools = tools_field(signature)
    if decls.entries and tools is None:
        fix = "Add `tools: ToolDecls` and `calls: ToolCalls` to it, or give --react."
        raise InvalidOption(f"{signature.__name__} has no tools field", field="tools", fix=fix)
    return _program(signature.__name__, module, signature.input_fields, inputs, decls, tools)


def _react_program(signature: Any, decls: ToolDecls, inputs: Iterable[str]) -> Program:
    """Return `dspy.ReActV2` over a signature."""
    if tools_field(signature) is not None:
        fix = "Leave out --react, or name a signature without tool fields."
        reason = f"{signature.__name__} has a tools field of its own, and --react adds one"
        raise InvalidOption(reason, field="react", fix=fix)
    try:
        module = ReActV2(signature, tools=_for_dspy(decls))
    except ValueError as error:
        raise InvalidOption(f"dspy.ReActV2 refuses this: {error}", field="react") from error
    values, placeholders = inputs_of(signature.input_fields, inputs, decls, None)
    return Program(signature.__name__, module, values, placeholders, _server_tool_kinds(decls))


def _program(
    name: str,
    module: dspy.Module,
    fields: Mapping[str, FieldInfo],
    inputs: Iterable[str],
    decls: ToolDecls,
    tools: str | None,
) -> Program:
    values, placeholders = inputs_of(fields, inputs, decls, tools)
    takes_all = tools is None or _takes_all(fields[tools].annotation)
    left_out = [] if takes_all else _server_tool_kinds(decls)
    return Program(name, module, values, placeholders, left_out)


def _server_tool_kinds(decls: ToolDecls) -> list[str]:
    return [entry.kind for entry in decls.entries if isinstance(entry, NativeTool)]


def _signature_of(target: Any) -> Any:
    """Return the signature of a module, or the signature that was given."""
    if not isinstance(target, dspy.Module):
        return target
    predictors = _predictors(target)
    return getattr(target, "signature", None) or predictors[0].signature


def _predictors(module: dspy.Module) -> list[Any]:
    predictors: list[Any] = module.predictors()
    if not predictors:
        reason = f"{type(module).__name__} has no predictors, and so it sends no request"
        raise InvalidOption(reason, field="signature", fix="Name a module with a dspy.Predict in it.")
    return predictors


def tools_field(signature: Any) -> str | None:
    """Return the name of a signature's tools field; None if it has none."""
    plan = plan_of(signature)
    return None if plan is None else plan.tools


def _parameters_of(module: Any, predictors: Iterable[Any]) -> dict[str, FieldInfo] | None:
    """Return what a module's own forward takes; None if it takes whatever the signature has."""
    forward = getattr(module, "forward", None) or getattr(module, "aforward", None)
    if forward is None:
        return None
    parameters = inspect.signature(forward).parameters.values()
    kinds = {parameter.kind for parameter in parameters}
    by_name = [parameter for parameter in parameters if parameter.kind not in _VARIADIC]
    if not by_name and inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    hints: dict[str, Any] = {}
    for predictor in predictors:
        for name, field in predictor.signature.input_fields.items():
            hints[name] = field.annotation
    with suppress(Exception):  # a name that only a type checker knows
        hints |= {name: hint for name, hint in get_type_hints(forward).items() if hint is not Any}
    fields: dict[str, FieldInfo] = {}
    for parameter in by_name:
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = FieldInfo(annotation=hints.get(parameter.name, str), default=default)
    return fields


def inputs_of(
    fields: Mapping[str, FieldInfo], texts: Iterable[str], decls: ToolDecls, tools: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Return values for fields, of which `tools` gets the tools, and the names of those without a value."""
    values: dict[str, Any] = {}
    for item in texts:
        name, equals, value = item.partition("=")
        if name not in fields or not equals:
            fix = f"Write name=value with one of {', '.join(fields)}."
            raise InvalidOption(f"{item!r} does not set an input field", field="input", fix=fix)
        try:
            is_text = str in _members(fields[name].annotation)
            values[name] = value if is_text else json.loads(value)
        except ValueError as error:
            raise InvalidOption(f"the value of {name!r} is not JSON: {error}", field="input") from error
    if tools is not None and tools not in values:
        values[tools] = decls if _takes_all(fields[tools].annotation) else _for_dspy(decls)
    placeholders: list[str] = []
    for name, field in fields.items():
        if name not in values and field.is_required():
            if field.annotation is dspy.History:
                values[name] = dspy.History(messages=[])
            else:
                # Enough to show the request that would be sent; the command names it as missing.
                values[name] = f"<{name}>"
                placeholders.append(name)
    return values, placeholders


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_OF_DSPY = {dspy.Tool, list[dspy.Tool]}
_TOOLS = {ToolDecls, *_OF_DSPY}


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _takes_all(annotation: Any) -> bool:
    """Whether a tools field also takes tools that the provider runs."""
    return not _OF_DSPY & {*_members(annotation)}


def _for_dspy(decls: ToolDecls) -> list[Any]:
    """Return the tools as `dspy.Tool`s; one without a function gets one that is never called."""

    def never(**_: Any) -> None:
        raise NotImplementedError

    return [replace(decl, func=decl.func or never).to_dspy() for decl in decls]


_ADAPTATION_FIELDS = ("action", "field", "reason")


def sent_to(
    model: str,
    settings: Mapping[str, Any],
    adapter_with: Callable[..., Any],
    program: Callable[[], Any],
    count: Callable[[str], int],
) -> tuple[Json, list[str]]:
    """Return the document of the first request that a provider would get, and the names of its tools."""
    catch = _Catch()
    server = Server(catch.respond)
    error: str | None = None
    lm: Any = None
    wire = "?"
    try:
        options: dict[str, Any] = {"api_key": "loopback", "cache": False, "num_retries": 0, **settings}
        route = route_of(dspy.LM(model, **options), {})
        wire = route.wire if route.client == "lm15" else f"{route.client}/{route.wire}"
        suffix = WIRES[WIRE_NAMES[route.wire]].suffix if route.wire in WIRE_NAMES else ""
        lm = dspy.LM(model, **options, api_base=server.url + suffix)
        hook = SimpleNamespace(after_choice=catch.note, on_error=catch.note)
        with dspy.context(lm=lm, adapter=adapter_with(hooks=[hook])):
            program()
    except Exception as raised:  # the answer is not one to the question; the request counts
        error = sentence(raised)
    finally:
        server.stop()
    if catch.body is not None:
        error = None
    elif error is None:
        error = "the program sent no request"
    context = catch.context if catch.body is not None else None
    entries = context.decls.entries if context else ()
    tokens: list[str] = []
    tools: list[str] = []
    for entry in entries:
        tools.append(entry.name if isinstance(entry, ToolDecl) else entry.kind)
        if isinstance(entry, McpServer) and entry.token:
            tokens.append(entry.token)
    body: Any = Echoes(tokens).hidden_in(catch.body, (), {})
    changes = context.changes if context else ()
    adaptations: list[Any] = []
    if catch.body is not None and lm.history:
        adaptations = lm.history[0].get("adaptations") or []
    rows = weights(body, count) if body else []
    document: Json = {
        "model": model,
        "wire": wire,
        "path": catch.path,
        "error": error,
        "prompted": any(change.why == PROMPTED for change in changes),
        "changes": [change._asdict() for change in changes],
        "adaptations": [
            {name: str(getattr(change, name)) for name in _ADAPTATION_FIELDS} for change in adaptations
        ],
        "bytes": sum(weight["bytes"] for weight in rows),
        "tokens": sum(weight["tokens"] for weight in rows),
        "weights": rows,
        "body": body,
    }
    return document, tools


class _Catch:
    """The first request that reaches the server, and the record of the call that sent it."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.body: Json | None = None
        self.context: HookContext | None = None

    async def respond(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Response:
        """Keep the first request, and answer any."""
        if self.body is None:
            self.path = path
            self.body = json.loads(content)
        row = wire_at(path)
        if row is None:  # no client tries again after a 418
            return Response(418, "application/json", [b'{"error": {"message": "recorded, not answered"}}'])
        return write(Answer(text="recorded"), row, read(1, row, path, {}, content))

    def note(self, _: object, context: HookContext) -> None:
        """Keep the record of the first call."""
        if self.context is None:
            self.context = context


_TOOL_MEMBERS = ("tools", "toolConfig")
_MESSAGE_MEMBERS = ("messages", "input", "contents")
_LEAST = 40  # bytes of a field that has a row of its own


def weights(body: Json, count: Callable[[str], int]) -> list[Json]:
    """Return what each tool, message and long field weigh, in bytes and tokens; small fields are one part."""
    heavy: list[Json] = []
    small: Json = {}
    for key, value in body.items():
        rows = [_weight(name, part, count) for name, part in _parts_of(key, value)]
        # Gemini's `toolConfig` holds settings only, so it has no row of a tool.
        if not rows or (rows[0]["part"] == key and rows[0]["bytes"] < _LEAST):
            small[key] = value
        else:
            heavy += rows
    if small:
        heavy.append(_weight(", ".join(small), small, count))
    return heavy


def _parts_of(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a field, each with its name; each tool alone, also out of one that holds several."""
    if key in _TOOL_MEMBERS and value is not None:
        for tool in _tools_in(value):
            yield f"tool {_name_of(tool)}", tool
    elif key in _MESSAGE_MEMBERS and is_array(value):
        for number, row in enumerate(objects(value), 1):
            yield f"message {number}, {row.get('role') or row.get('type') or '?'}", row
    else:
        yield key, value


def _tools_in(value: Any) -> Iterator[Json]:
    """Yield the tools of a body's field: each of several functions that one entry declares."""
    entries = value.get("tools") if is_object(value) else value
    for entry in objects(entries):
        functions = objects(entry.get("functionDeclarations") or entry.get("function_declarations"))
        yield from functions or [entry]


def _name_of(tool: Json) -> Any:
    declaration = an_object(tool.get("function")) or an_object(tool.get("toolSpec")) or tool
    return declaration.get("name") or declaration.get("type") or next(iter(declaration), "?")


def _weight(name: str, value: Any, count: Callable[[str], int]) -> Json:
    text = compact(value)
    return {"part": name, "bytes": len(text.encode(errors="replace")), "tokens": count(text)}
