"""Text -> Reading -> Choice: calls that a model wrote into its text, each marked `recovered`.

The table of formats is imported when a text is first read: it takes a fifth of the import, and most programs
never read calls from text.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from sigadapt.adapters.request.canonical import Change
from sigadapt.adapters.response.choice import Choice, choice_of
from sigadapt.errors import UnreadableResponse
from sigadapt.json_values import Json, is_iterable
from sigadapt.providers.wire.reading import Reading
from sigadapt.providers.wire.values import RawCall, join_texts
from sigadapt.schemas.arguments import CutOff
from sigadapt.signatures.calls import ToolCalls, with_each
from sigadapt.signatures.tool_decls import ToolDecls

if TYPE_CHECKING:
    from sigadapt.text.bodies.template import ResponseTemplate
    from sigadapt.text.contract import TextFormat
    from sigadapt.text.reader import TextReading

_CUTTING = frozenset(("length", "content_filter", "error"))
RECOVERED = "recovered"
"""What stands in `altered` of a call that was read from text."""


def choice_from_text(
    text: str | Iterable[str],
    tools: object,
    *,
    starts_in_reasoning: bool = False,
    formats: "Iterable[str | ResponseTemplate] | None" = None,
) -> Choice:
    r"""Read the calls that a model wrote into its text.

    Args:
        text: what the model wrote, or pieces of it, cut anywhere.
        tools: the declared tools, or anything that ToolDecls accepts. A call of another tool is a bad call
            where its markup can be nothing else, and text where it has none.
        starts_in_reasoning: whether the prompt has already opened the thinking, as templates of reasoning
            models do.
        formats: the names of the formats to read (`sigadapt/text/formats.py`), and models' own
            `ResponseTemplate`s; None for all formats.

    Returns:
        The Choice: the calls, each with `recovered` in its `altered`; the rest of the text; and the
        thinking as reasoning. A call that is broken or cut off is in `tool_calls.invalid` with its raw text;
        so is markup that can only be a call, in which none can be read.
        Prose, code, examples in fences, quoted markup and JSON answers are never calls.

    Raises:
        InvalidOption: for an unknown format.
        InvalidToolDecl: as ToolDecls.
        UnreadableResponse: if this is no text.

    Example:
        >>> choice = choice_from_text(
        ...     "<think>Weather.</think>Let me look.\n<tool_call>\n<function=get_weather>\n"
        ...     "<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>",
        ...     [{"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}}}],
        ... )
        >>> choice.text, choice.reasoning, choice.tool_calls, choice.tool_calls[0].altered
        ('Let me look.', 'Weather.', ToolCalls([get_weather(city='Paris')]), ('recovered',))
    """
    pieces: list[Any] = [text]
    if is_iterable(text) and not isinstance(text, (str, bytes)):
        pieces = [*text]
    for piece in pieces:
        if not isinstance(piece, str):
            reason = f"expected a text or pieces of one, got a {type(piece).__name__}"
            raise UnreadableResponse(reason, fix="Pass the text of an answer, not its message or its body.")
    whole = "".join(pieces)
    schemas = schemas_of(tools)
    reading = text_read(whole, schemas, formats, starts_in_reasoning=starts_in_reasoning)
    choice = choice_of(reading_of(reading), whole)
    calls = choice.tool_calls
    if calls is None:
        return choice
    if any(call.name not in schemas for call in calls):
        calls = calls.validated([{"name": name} for name in schemas])
    return replace(choice, tool_calls=mark_recovered(calls))


def text_read(
    text: str, schemas: Mapping[str, Json], formats: Iterable[Any] | None = None, **how: Any
) -> "TextReading":
    """Return what a text says."""
    from sigadapt.text.reader import read_text  # the first lines say why

    if formats is None:
        return read_text(text, schemas, None, **how)
    rows, templates = chosen_formats(formats)
    if not templates:
        return read_text(text, schemas, rows, **how)
    thinking, rest = templates[0].parts(text, starts_in_reasoning=how.pop("starts_in_reasoning", False))
    reading = read_text(rest, schemas, (*rows, *(each.row for each in templates)), **how)
    return reading._replace(reasoning=join_texts([thinking, reading.reasoning]))


def chosen_formats(formats: Iterable[Any]) -> tuple[tuple["TextFormat", ...], list["ResponseTemplate"]]:
    """Return the rows of the formats that a caller named, and the templates; InvalidOption for another."""
    from sigadapt.text.bodies.template import ResponseTemplate
    from sigadapt.text.formats import formats_named

    chosen: list[Any] = [formats]
    if is_iterable(formats) and not isinstance(formats, (str, ResponseTemplate)):
        chosen = [*formats]
    templates = [each for each in chosen if isinstance(each, ResponseTemplate)]
    return formats_named(each for each in chosen if not isinstance(each, ResponseTemplate)), templates


def openers_of(formats: Iterable[Any]) -> list[str]:
    """Return patterns of what begins what isn't said to the user, in the formats that a caller named."""
    rows, templates = chosen_formats(formats)
    own = [row.opener for row in rows]
    return own + [pattern for template in templates for pattern in template.marks]


def schemas_of(tools: object) -> dict[str, Json]:
    """Return the schemas of arguments by the names of the tools."""
    decls = cast("ToolDecls", tools) if issubclass(type(tools), ToolDecls) else ToolDecls(tools)
    return {decl.name: decl.parameters for decl in decls}


def reading_of(read: "TextReading", finish: str | None = None) -> Reading:
    """Return what was read of a text as a Reading."""
    calls: list[RawCall] = [(call.id, call.name, call.arguments) for _, call in read.calls]
    return Reading(read.text, read.reasoning, calls, finish)


def with_calls_of_text(reading: Reading, schemas: Mapping[str, Json], **how: Any) -> Reading:
    """Return a Reading with the calls and the thinking that its text holds, and the text without them."""
    read = text_read(reading.text or "", schemas, **how)
    from_text = reading_of(read, reading.finish)
    calls = from_text.calls
    if reading.finish is not None and reading.finish not in _CUTTING:
        # The model itself ended the turn and left a call open: nothing of the call is missing.
        calls = list[RawCall]()
        for call_id, name, raw in from_text.calls:
            arguments = raw.sent if isinstance(raw, CutOff) else raw
            calls.append((call_id, name, arguments))
    return reading._replace(
        text=from_text.text, reasoning=join_texts([reading.reasoning, from_text.reasoning]), calls=calls
    )


def mark_recovered(calls: ToolCalls) -> ToolCalls:
    """Return the calls marked as read from text."""
    return with_each(calls, lambda call: call.model_copy(update={"altered": (RECOVERED, *call.altered)}))


def looks_like(text: str, tools: object) -> tuple[str, str] | None:
    """Return the format and the tool of the first call that a text holds; None if it holds none."""
    # For the error of a native call that found no call: it says what the text looks like.
    schemas = schemas_of(tools)
    calls = [(name, call.name) for name, call in text_read(text, schemas).calls if call.name in schemas]
    return calls[0] if calls else None


def notes_of(text: str, tools: object) -> tuple[Change, ...]:
    """Return a note for each declared tool that a text calls in markup of no known format."""
    if "<" not in text:
        return ()
    from sigadapt.text.contract import Scan, ToolTable
    from sigadapt.text.openers import unknown_calls

    names = dict.fromkeys(call.name for call in unknown_calls(Scan(text), ToolTable(schemas_of(tools))))
    why = "the text names {!r} as what is called, in markup of no known format; it stays text"
    return tuple(Change("", "dropped", why.format(name)) for name in names)
