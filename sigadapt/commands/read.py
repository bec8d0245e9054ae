"""Read a provider's body, its stream, or a model's plain text, and print the calls, good and bad."""

import json
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from sigadapt import ToolCalls, ToolDecls
from sigadapt.adapters.passes.names import aliases
from sigadapt.adapters.response.choice import Choice, choice_from_stream, choices_from_response
from sigadapt.adapters.response.typed_calls import with_declared_names
from sigadapt.commands.terminal import (
    AsJson,
    McpOption,
    ToolsOption,
    calls_document,
    decls_of,
    draw,
    emit,
    say,
)
from sigadapt.display import rendered_answer
from sigadapt.errors import InvalidOption, UnreadableResponse
from sigadapt.json_values import is_object
from sigadapt.providers import PROVIDERS, ROUTES, provider_named
from sigadapt.response import choice_from_text

DIALECTS = tuple(provider.name for provider in PROVIDERS)
_STREAM_FIELDS = ("data:", "event:", ":", "id:", "retry:")


class AnswerReading(NamedTuple):
    """What was read: a `body`, a `stream` or a `text`, which has no wire, and its candidates."""

    kind: str
    wire: str | None
    choices: list[Choice]

    @property
    def calls(self) -> list[ToolCalls]:
        """The calls of the candidates that have any, good or bad."""
        return [choice.tool_calls for choice in self.choices if choice.tool_calls is not None]


def read_from(content: bytes, decls: ToolDecls | None = None, dialect: str | None = None) -> AnswerReading:
    """Read what a provider sent, or what a model wrote, which needs declarations."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):  # as PowerShell writes files
        content = content.decode("utf-16", "replace").encode()
    start = content.removeprefix(BOM_UTF8).lstrip()
    if start[:1] not in (b"{", b"[") and not start.decode(errors="replace").startswith(_STREAM_FIELDS):
        return _text(content, decls)
    try:
        reading = _provider_answer(content, dialect)
    except UnreadableResponse as error:
        # Models write calls as JSON and as lists too.
        if error.code == "provider_error":
            raise
        if decls is None:
            fix = f"{error.fix or ''} If it is a model's text, give the tools with --tools module:name."
            raise UnreadableResponse(error.reason, code=error.code, fix=fix.strip()) from error
        if not (as_text := _text(content, decls)).calls:
            raise
        return as_text
    if decls is None:
        return reading
    return reading._replace(choices=[_check(choice, decls, reading.wire) for choice in reading.choices])


def _provider_answer(content: bytes, dialect: str | None) -> AnswerReading:
    """Read a provider's body or stream."""
    body: Any = None
    with suppress(ValueError, RecursionError):
        body = json.loads(content)
    if is_object(body):
        choices = choices_from_response(body, dialect=dialect)
        return AnswerReading("body", choices[0].dialect, choices)
    choice = choice_from_stream(content, dialect=dialect)
    return AnswerReading("stream", choice.dialect, [choice])


def _text(content: bytes, decls: ToolDecls | None) -> AnswerReading:
    text = content.removeprefix(BOM_UTF8).decode(errors="surrogateescape")
    if not text.strip():
        fix = "Pass a provider's body or its whole stream."
        raise UnreadableResponse("there is nothing to read", fix=fix)
    if decls is None:
        reason = "this is no body and no stream but text, and only calls of declared tools are read from text"
        raise InvalidOption(reason, field="tools", fix="Give the tools with --tools module:name.")
    return AnswerReading("text", None, [_check(choice_from_text(text, decls), decls)])


def _check(choice: Choice, decls: ToolDecls, wire: str | None = None) -> Choice:
    """Return the choice with checked calls, and declared names for the aliases of the wire (names travel)."""
    calls = choice.tool_calls
    names = [decl.name for decl in decls]
    if calls is None:
        return choice
    for rules in {route.names for route in ROUTES if route.wire == wire}:
        calls = with_declared_names(calls, aliases(names, rules.pattern, rules.longest))
    return replace(choice, tool_calls=calls.validated(decls))


def read(
    file: Annotated[str, typer.Argument(help="A file with the body, the stream or the text; - for stdin.")],
    tools: ToolsOption = None,
    mcp: McpOption = None,
    wire: Annotated[
        str | None,
        typer.Option(
            help=f"The wire, if it is not detected: {', '.join(DIALECTS)}.",
            autocompletion=lambda: list(DIALECTS),
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read an answer into calls, good and bad.

    The answer is a provider's body or stream, or the text of a model.
    """
    # With --tools, the calls are checked against the declarations. Text needs them. Exits with 1 if there is
    # a bad call, or if the provider answered with an error.
    decls = decls_of(tools, mcp) if tools or mcp else None
    if wire is not None:
        provider_named(wire, "wire")
    result = read_from(content_of(file), decls, wire)
    if as_json:
        emit("read", kind=result.kind, wire=result.wire, choices=[choice_document(c) for c in result.choices])
    else:
        of_wire = f" of {result.wire}" if result.wire else ""
        say(f"{result.kind}{of_wire}", "dim")
        for choice in result.choices:
            draw(rendered_answer(choice, checked=decls is not None).rich())
        if decls is None:
            say("The calls are not checked against tools; --tools module:name does that.")
    if any(calls.invalid for calls in result.calls):
        raise typer.Exit(1)


def content_of(file: str) -> bytes:
    """Return the bytes of a file, or of stdin for `-`."""
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InvalidOption(f"{file!r} cannot be read: {error.strerror}", field="file") from error


def choice_document(choice: Choice) -> dict[str, Any]:
    """Return a choice as the JSON documents hold it."""
    fields = {"text": choice.text, "reasoning": choice.reasoning, "finish_reason": choice.finish_reason}
    return {**fields, **calls_document(choice.tool_calls)}
