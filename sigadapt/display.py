"""Render calls, results, declarations and answers as small tables, for terminals and notebooks.

A `Rendering` is what a `Displayable` object shows, without its form. Rich prints it, and writes the same as
HTML for a notebook. Rich is imported only to show something. An `Excerpt` shows the place of a flaw in the
text of a call's arguments.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from sigadapt.errors import printable
from sigadapt.json_values import compact, cut, is_array, is_object, listed
from sigadapt.schemas.subschemas import key_of

if TYPE_CHECKING:
    from rich.console import RenderableType

Mark: TypeAlias = Literal["", "good", "bad", "dim", "id"]
"""`good` and `bad` are badges, `dim` is less important, and an `id` is shortened in a terminal."""

_MOST_ROWS = 100
_MOST_PARAMETERS = 12
_TEXT_WIDTH = 110
_FLAGS = ("strict", "long_running", "requires_confirmation")

_STYLES = {
    "good": "bold green",
    "bad": "bold red",
    "dim": "dim",
    "id": "dim",
    "fault": "bold red",
    "place": "bold red",
    "": "",
}
"""For a terminal, whose colours fit its background."""
_PAGE_STYLES = {
    **dict.fromkeys(("dim", "id", ""), ""),
    "good": "bold #ffffff on #1b6e3c",
    "bad": "bold #ffffff on #b3261e",
    "fault": "bold",
    "place": "bold #000000 on #ffd54f",
}
"""For a notebook: no text has a colour on the page's own background, so that light and dark ones do."""
_PAGE = (
    '<div class="sigadapt"><pre style="font-family:monospace;line-height:1.3;color:inherit;'
    'background:transparent;overflow-x:auto">{code}</pre></div>'
)
_ID_ENDS = 10, 9  # characters of a long id that a terminal shows, from its beginning and from its end
_NARROW = 24  # cells that an excerpt asks for


_LONGEST = 100_000  # characters of arguments that are searched
_AROUND = 28  # characters shown on each side of a place
_MOST_MARKED = 36
_UNREAD = 12  # characters marked where JSON could not be read on
_DECODER = json.JSONDecoder()


class Excerpt(NamedTuple):
    """A part of a text around one place, which is empty if it is a point. What does not print is escaped."""

    before: str  # the text up to the fault
    marked: str  # the fault itself
    after: str  # the text that follows


def excerpt_of(text: str, code: str, path: str | None = None) -> Excerpt | None:
    """Return the part of a call's arguments where a flaw is."""
    if not text or len(text) > _LONGEST:
        return None
    span = _span(text, code, path)
    if span is None:
        return None
    start, end = span
    head = text[:start]
    flaw = text[start:end]
    tail = text[end:]
    if len(flaw) > _MOST_MARKED:
        flaw = f"{flaw[:_MOST_MARKED]}…"
        tail = ""
    if len(head) > _AROUND:
        head = f"…{head[-_AROUND:]}"
    if len(tail) > _AROUND:
        tail = f"{tail[:_AROUND]}…"
    return Excerpt(printable(head), printable(flaw), printable(tail))


def _span(text: str, code: str, path: str | None) -> tuple[int, int] | None:
    end = len(text)
    fixed = {"unknown_tool": None, "missing_name": None, "truncated": (end, end), "not_an_object": (0, end)}
    if code in fixed:
        return fixed[code]
    constants: list[str] = []  # NaN and infinities, which JSON does not have
    try:
        if code == "duplicate_key":
            return _second_key(text)
        if path is not None:
            return _value_at(text, path)
        json.loads(text, parse_constant=constants.append)
    except json.JSONDecodeError as error:
        if not constants:
            return error.pos, min(end, error.pos + _UNREAD)
    except (ValueError, IndexError, RecursionError):
        pass
    if not constants:
        return None
    start = text.find(constants[0])
    return start, start + len(constants[0])


def _value_at(text: str, path: str) -> tuple[int, int]:
    """Return where the value of a JSON Pointer is, or the object that lacks a member of it."""
    start = _past_space(text, 0)
    for key in map(key_of, path.split("/")[1:]):
        starts = [value_start for name, _, value_start in _members(text, start) if name == key]
        if not starts:
            break
        start = starts[-1]  # of a key that comes twice, the last one
    return start, _DECODER.raw_decode(text, start)[1]


def _second_key(text: str, start: int = 0) -> tuple[int, int] | None:
    """Return where the first key is that its object has already."""
    names: set[str] = set()
    for name, key_start, value_start in _members(text, _past_space(text, start)):
        if name in names:
            return key_start, _DECODER.raw_decode(text, key_start)[1]
        names.add(name)
        if span := _second_key(text, value_start):
            return span
    return None


def _members(text: str, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield the key of each member of an object or array, and where its key and value begin."""
    is_object = text[start] == "{"
    number = 0
    if not is_object and text[start] != "[":
        return
    cursor = _past_space(text, start + 1)
    while text[cursor] not in "}]":
        name = str(number)
        key_start = cursor
        if is_object:
            name, cursor = _DECODER.raw_decode(text, cursor)
            cursor = _past_space(text, _past_space(text, cursor) + 1)
        yield name, key_start, cursor
        number += 1
        cursor = _past_space(text, _DECODER.raw_decode(text, cursor)[1])
        if text[cursor] == ",":
            cursor = _past_space(text, cursor + 1)


def _past_space(text: str, start: int) -> int:
    while text[start] in " \t\n\r":
        start += 1
    return start


class Cell(NamedTuple):
    """A piece of a cell: a text, or the excerpt of a call's arguments with the place of its flaw."""

    text: str
    mark: Mark = ""  # a sign before the text, such as that of a bad call
    excerpt: Excerpt | None = None  # the place of a fault in its text

    def rich(self, styles: Mapping[str, str]) -> "RenderableType":
        """Return the piece as rich prints it."""
        from rich.text import Text

        if self.excerpt is not None:
            return _ExcerptInCell(self.excerpt, styles)
        text = self.text
        first, last = _ID_ENDS
        if self.mark == "id" and len(text) > first + 1 + last:
            text = f"{text[:first]}…{text[-last:]}"
        return Text(printable(text), styles[self.mark])


Row: TypeAlias = Sequence[Sequence[Cell]]
"""The cells of a row, each with its pieces under one another."""


class Rendering(NamedTuple):
    """What is shown of an object: a title, lines with a label and a text each, and a table."""

    title: str
    heads: tuple[str, ...] = ()  # the names of the columns
    rows: Sequence[Row] = ()
    lines: Sequence[tuple[str, str]] = ()  # a label and its text, below the title
    bad: bool = False  # whether to show it as a failure

    def html(self) -> str:
        """Return HTML for a notebook, with everything that somebody else wrote escaped."""
        from io import StringIO

        from rich.console import Console

        console = Console(file=StringIO(), width=_TEXT_WIDTH, record=True, legacy_windows=False)
        console.print(self.rich(_PAGE_STYLES))
        return console.export_html(inline_styles=True, code_format=_PAGE)

    def text(self) -> str:
        """Return it as text of a fixed width, for `print`."""
        from io import StringIO

        from rich.console import Console

        console = Console(file=StringIO(), width=_TEXT_WIDTH, color_system=None, legacy_windows=False)
        with console.capture() as capture:
            console.print(self.rich())
        return "\n".join(line.rstrip() for line in capture.get().rstrip().split("\n"))

    def rich(self, styles: Mapping[str, str] = _STYLES) -> "RenderableType":
        """Return a renderable of rich."""
        from rich import box
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        style = styles["fault"] if self.bad else "bold"
        blocks: list[RenderableType] = [Text(printable(cut(self.title)), style)]
        for label, text in self.lines:
            blocks.append(Text.assemble((label, styles["dim"]), "  ", printable(cut(text))))
        if self.rows:
            table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style=styles["dim"])
            for head in self.heads:
                table.add_column(head, overflow="fold")
            for row in self.rows:
                table.add_row(*(Group(*(piece.rich(styles) for piece in cell)) for cell in row))
            blocks.append(table)
        return Group(*blocks)


class Displayable:
    """An object that a notebook and a terminal show as a table."""

    __slots__ = ()

    def _rendering(self, /) -> Rendering:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self._rendering().html()

    def __rich__(self) -> "RenderableType":
        return self._rendering().rich()


# ---- what is shown ----


def rendered_call(call: Any) -> Rendering:
    """Return what is shown of one call, good or bad."""
    title = f"{type(call).__name__}: {call.name}"
    return Rendering(title, ("", "tool", "arguments"), [_call_row(call, "ok")], bad="code" in vars(call))


def rendered_calls(calls: Any, good: str = "ok") -> Rendering:
    """Return what is shown of a ToolCalls: one row for each call, good and bad, in order."""
    in_order: list[Any] = calls.in_order()
    bad = sum(hasattr(call, "code") for call in in_order)
    title = f"ToolCalls: {_count(len(in_order), 'call')}" + _also(bad, "bad")
    lines = [(name, text) for name in ("text", "reasoning") if (text := getattr(calls, name))]
    rows = _rows(in_order, lambda call: _call_row(call, good))
    return Rendering(title, ("", "tool", "arguments"), rows, lines, bad > 0)


def rendered_answer(choice: Any, error: Exception | None = None, *, checked: bool = False) -> Rendering:
    """Return what is shown of a Choice, or of the error that carries it."""
    lines = [("finish", choice.finish_reason), ("text", choice.text), ("reasoning", choice.reasoning)]
    calls = choice.tool_calls
    # Only an adapter checks calls against declarations; `choice_from_response` knows none.
    good = "ok" if checked or error is not None else "unchecked"
    table = Rendering("") if calls is None else rendered_calls(calls, good=good)
    title = "Choice: " + (table.title.removeprefix("ToolCalls: ") or "no calls")
    if error is not None:
        title = f"{type(error).__name__}: {error}"
    bad = error is not None or table.bad
    return table._replace(title=title, lines=[line for line in lines if line[1]], bad=bad)


def rendered_results(pairs: Sequence[tuple[Any, str]]) -> Rendering:
    """Return what is shown of results, each with its value as text: one row for each."""

    def row(pair: tuple[Any, str]) -> Row:
        result, text = pair
        outcome = Cell("failed", "bad") if result.is_error else Cell("ok", "good")
        return [outcome], [_cut(result.name), Cell(result.call_id, "id")], [_cut(text)]

    failures = sum(result.is_error for result, _ in pairs)
    title = f"ToolResults: {_count(len(pairs), 'result')}" + _also(failures, "failed")
    return Rendering(title, ("", "tool", "result"), _rows(pairs, row))


def rendered_rounds(rounds: Sequence[Sequence[tuple[Any, Any, str]]]) -> Rendering:
    """Return what is shown of rounds, each of calls with a result and its text: one row for each call."""
    numbered: list[tuple[int, Any, Any, str]] = []
    for number, answers in enumerate(rounds, 1):
        numbered += [(number, *answer) for answer in answers]

    def row(item: tuple[int, Any, Any, str]) -> Row:
        number, call, result, text = item
        arguments = call.arguments if hasattr(call, "code") else compact(call.args)
        outcome = [Cell("failed", "bad"), _cut(text)] if result.is_error else [_cut(text)]
        return [Cell(str(number), "dim")], [_cut(call.name or "?")], [_cut(arguments)], outcome

    failures = sum(result.is_error for _, _, result, _ in numbered)
    title = f"{_count(len(rounds), 'round')}, {_count(len(numbered), 'call')}" + _also(failures, "failed")
    return Rendering(title, ("round", "tool", "arguments", "result"), _rows(numbered, row))


def rendered_decl(decl: Any) -> Rendering:
    """Return what is shown of a ToolDecl: one row for each parameter."""

    def row(parameter: tuple[str, Any]) -> Row:
        name, schema = parameter
        has_description = is_object(schema) and "description" in schema
        description = cut(str(schema["description"])) if has_description else ""
        return [_cut(name)], [_cut(_type(schema))], [Cell(description)]

    flags = ", ".join(name for name in _FLAGS if getattr(decl, name))
    lines = [("description", decl.description.strip()), ("marked", flags)]
    title = f"ToolDecl: {decl.name}, {decl.size:,} bytes"
    heads = ("parameter", "type", "description")
    return Rendering(title, heads, _rows(_parameters(decl), row), [line for line in lines if line[1]])


def rendered_decls(decls: Any) -> Rendering:
    """Return what is shown of a ToolDecls: one row for each tool."""
    total = len(compact(decls.to_openai()).encode())
    title = f"ToolDecls: {_count(len(decls.entries), 'tool')}, {total:,} bytes"
    return Rendering(title, ("tool", "description", "parameters", "bytes"), _rows(decls.entries, _decl_row))


def rendered_toolset(toolset: Any) -> Rendering:
    """Return what is shown of a Toolset, which is not asked for its tools."""
    sources = toolset.source if is_array(toolset.source) else [toolset.source]
    lines: list[tuple[str, str]] = []
    for label, things in (("source", sources), ("then", toolset.transforms)):
        if things:
            lines.append((label, listed(map(_name_of, things), _MOST_PARAMETERS, ", ")))
    return Rendering(f"Toolset: {toolset.name}", lines=lines)


def _name_of(thing: Any) -> str:
    function = getattr(thing, "func", thing)  # a partial has the function that it calls
    name = getattr(thing, "name", None) or getattr(function, "__name__", None) or type(thing).__name__
    return str(name).lstrip("_")


def _call_row(call: Any, good: str) -> Row:
    marks = [Cell(f"({', '.join(call.altered)})", "dim")] if call.altered else []
    name = cut(call.name) if call.name else "(no name)"
    tool = [Cell(name), Cell(call.id, "id")]
    code: str | None = getattr(call, "code", None)
    if code is None:
        mark: Mark = "good" if good == "ok" else "dim"
        return [Cell(good, mark)], tool, [_cut(call.arguments or "{}"), *marks]
    path = [Cell(f"at {call.path or '/'}", "dim")] if call.path is not None else []
    excerpt = excerpt_of(call.arguments, code, call.path)
    text = "" if excerpt else cut(call.arguments)
    message = call.message.removesuffix(f": {cut(call.arguments)}")  # which the cell shows already
    return [Cell(code, "bad"), *path], tool, [Cell(text, excerpt=excerpt), Cell(message), *marks]


def _decl_row(entry: Any) -> Row:
    if hasattr(entry, "kind"):  # a tool that the provider runs
        size = len(compact(entry.to_openai()).encode())
        owner = Cell("run by the provider", "dim")
        return [Cell(str(entry.kind))], [owner], [Cell("")], [Cell(f"{size:,}")]
    first_line = entry.description.strip().partition("\n")[0]
    summary = cut(first_line) if first_line else ""
    description = [Cell(summary)]
    if flags := ", ".join(name for name in _FLAGS if getattr(entry, name)):
        description.append(Cell(f"({flags})", "dim"))
    names = [f"{name}: {_type(schema)}" for name, schema in _parameters(entry)]
    parameters = listed(names, _MOST_PARAMETERS, ", ") if names else "none"
    return [_cut(entry.name)], description, [Cell(parameters)], [Cell(f"{entry.size:,}")]


def _parameters(decl: Any) -> list[tuple[str, Any]]:
    """Return the name of each parameter, with `?` for one that may be left out, and its schema."""
    properties = decl.parameters.get("properties")
    required = decl.parameters.get("required")
    if not is_object(properties):
        return []
    if not is_array(required):
        required = []
    marks = dict.fromkeys(required, "")
    return [(f"{name}{marks.get(name, '?')}", schema) for name, schema in properties.items()]


def _type(schema: Any) -> str:
    if not is_object(schema):
        return "any"
    if isinstance(schema.get("enum"), list):
        return listed((compact(value) for value in schema["enum"]), 5, " | ")
    kinds = schema.get("type") or str(schema.get("$ref", "any")).rpartition("/")[2]
    return " | ".join(map(str, kinds)) if is_array(kinds) else str(kinds)


def _rows(items: Sequence[Any], row: Callable[[Any], Row]) -> list[Row]:
    rows = [row(item) for item in items[:_MOST_ROWS]]
    hidden = len(items) - len(rows)
    if hidden:
        rows.append([[Cell("")], [Cell(f"and {hidden} more", "dim")], [Cell("")]])
    return rows


def _cut(text: str) -> Cell:
    return Cell(cut(text))


def _also(number: int, noun: str) -> str:
    return f", {number} {noun}" if number else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# ---- an excerpt ----


class _ExcerptInCell(NamedTuple):
    """An excerpt in a cell: cut around its place to the width of a column, carets under the place."""

    excerpt: Excerpt
    styles: Mapping[str, str]

    def __rich_measure__(self, *_: Any) -> Any:
        from rich.cells import cell_len
        from rich.measure import Measurement

        widest = cell_len("".join(self.excerpt)) + (not self.excerpt.marked)
        return Measurement(min(widest, _NARROW), widest)

    def __rich_console__(self, console: Any, options: Any) -> "Iterator[RenderableType]":
        from rich.cells import cell_len
        from rich.text import Text

        head, flaw, tail = self.excerpt
        room = options.max_width - cell_len(flaw + tail) - (not flaw)
        while cell_len(head) > max(room, options.max_width // 2, 1):
            head = f"…{head[2:]}"
        under = " " * cell_len(head) + "^" * max(1, cell_len(flaw))
        yield Text.assemble(head, (flaw, self.styles["place"]), tail, no_wrap=True, overflow="ellipsis")
        yield Text(under, self.styles["fault"], no_wrap=True, overflow="crop")
