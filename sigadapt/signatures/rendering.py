"""Render calls, results, declarations and answers as small tables, for notebooks (HTML) and terminals (rich).

A `Rendered` is what a `Shown` object shows, without its form: a title, lines and a table of cells. `html`
writes it for a notebook, and `rich` makes it a renderable of rich, which is imported only then. No text has a
fixed colour on the page's own background, so that it can be read on light and dark.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from sigadapt.schemas.json_values import compact, cut, is_array, is_object, listed
from sigadapt.signatures.places import Excerpt, excerpt_of, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

Mark: TypeAlias = Literal["", "good", "bad", "dim", "id"]

_MOST_ROWS = 100
_MOST_PARAMETERS = 12
_FLAGS = ("strict", "long_running", "requires_confirmation")


class Cell(NamedTuple):
    """A piece of a row.

    Args:
        text: what it says.
        mark: `good` and `bad` are badges, `dim` is less important, and `id` is a call's id, which a terminal
            shortens.
        excerpt: a part of a call's arguments with the place of its flaw; shown under the text.
        code: whether it is code, such as a name or JSON.
    """

    text: str
    mark: Mark = ""
    excerpt: Excerpt | None = None
    code: bool = False


class Rendered(NamedTuple):
    """What is shown of an object.

    Args:
        title: the first line.
        heads: the titles of the columns.
        rows: the rows; a cell may be a sequence of cells, which are shown under one another.
        lines: a label and a text each, before the table.
        bad: whether the title is that of an error.
    """

    title: str
    heads: tuple[str, ...] = ()
    rows: Sequence[Sequence[Cell | Sequence[Cell]]] = ()
    lines: Sequence[tuple[str, str]] = ()
    bad: bool = False

    def html(self) -> str:
        """Return HTML for a notebook, with everything that somebody else wrote escaped."""
        return _html(self)

    def rich(self) -> "RenderableType":
        """Return a renderable of rich. Its colours are those that the terminal has for its background."""
        return _rich(self)


class Shown:
    """An object that a notebook and a terminal show as a table."""

    __slots__ = ()

    def _rendered(self) -> Rendered:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self._rendered().html()

    def __rich__(self) -> "RenderableType":
        return self._rendered().rich()


# ---- what is shown ----


def rendered_call(call: Any) -> Rendered:
    """Return what is shown of one call, good or bad."""
    kind = type(call).__name__
    return Rendered(
        f"{kind}: {call.name}", ("", "tool", "arguments"), [_call_row(call, "ok")], bad="code" in vars(call)
    )


def rendered_results(pairs: Sequence[tuple[Any, str]]) -> Rendered:
    """Return what is shown of results, each with its value as text: one row for each."""
    failed = sum(result.is_error for result, _ in pairs)
    count = f"ToolResults: {_count(len(pairs), 'result')}" + (f", {failed} failed" if failed else "")
    rows = [
        [
            Cell("failed", "bad") if result.is_error else Cell("ok", "good"),
            [Cell(cut(result.name), code=True), Cell(result.call_id, "id")],
            Cell(cut(text), code=True),
        ]
        for result, text in pairs[:_MOST_ROWS]
    ]
    return Rendered(count, ("", "tool", "result"), _first_rows(rows, pairs))


def rendered_decl(decl: Any) -> Rendered:
    """Return what is shown of a ToolDecl: one row for each parameter."""
    known = decl.parameters.get("properties")
    parameters = known if is_object(known) else {}
    rows = [
        [
            Cell(cut(f"{name}{_mark(decl, name)}"), code=True),
            Cell(cut(_type(schema)), code=True),
            Cell(cut(str(schema["description"])) if is_object(schema) and "description" in schema else ""),
        ]
        for name, schema in [*parameters.items()][:_MOST_ROWS]
    ]
    flags = [name for name in _FLAGS if getattr(decl, name)]
    lines = [("description", decl.description.strip()), ("marked", ", ".join(flags))]
    title = f"ToolDecl: {decl.name}, {decl.size:,} bytes"
    heads = ("parameter", "type", "description")
    return Rendered(title, heads, _first_rows(rows, [*parameters]), [(k, text) for k, text in lines if text])


def rendered_toolset(toolset: Any) -> Rendered:
    """Return what is shown of a Toolset, which is not asked for its tools."""
    sources = toolset.source if is_array(toolset.source) else [toolset.source]
    parts = ("source", sources), ("then", toolset.transforms)
    lines = [(label, listed(map(_name_of, part), _MOST_PARAMETERS, ", ")) for label, part in parts if part]
    return Rendered(f"Toolset: {toolset.name}", lines=lines)


def _name_of(thing: Any) -> str:
    called = getattr(thing, "func", thing)  # of a partial, its function
    name = getattr(thing, "name", None) or getattr(called, "__name__", None) or type(thing).__name__
    return str(name).lstrip("_")


def rendered_calls(calls: Any, good: str = "ok") -> Rendered:
    """Return what is shown of a ToolCalls: one row for each call, good and bad, in order."""
    every: list[Any] = calls.in_order()
    bad = sum(hasattr(call, "code") for call in every)
    count = f"ToolCalls: {_count(len(every), 'call')}" + (f", {bad} bad" if bad else "")
    said = [(name, text) for name in ("text", "reasoning") if (text := getattr(calls, name))]
    rows = [_call_row(call, good) for call in every[:_MOST_ROWS]]
    return Rendered(count, ("", "tool", "arguments"), _first_rows(rows, every), said, bad > 0)


def rendered_decls(decls: Any) -> Rendered:
    """Return what is shown of a ToolDecls: one row for each tool."""
    entries: Sequence[Any] = decls.entries
    total = len(compact(decls.to_openai()).encode())
    title = f"ToolDecls: {_count(len(entries), 'tool')}, {total:,} bytes"
    rows = [_decl_row(entry) for entry in entries[:_MOST_ROWS]]
    return Rendered(title, ("tool", "description", "parameters", "bytes"), _first_rows(rows, entries))


def rendered_answer(choice: Any, error: Exception | None = None, *, checked: bool = False) -> Rendered:
    """Return what is shown of a Choice, or of the error that carries it."""
    said = [("finish", choice.finish_reason), ("text", choice.text), ("reasoning", choice.reasoning)]
    lines = [(label, text) for label, text in said if text]
    calls = choice.tool_calls
    # Only an adapter checks calls against declarations; `choice_from_response` knows none.
    good = "ok" if checked or error is not None else "unchecked"
    table = Rendered("") if calls is None else rendered_calls(calls, good=good)
    title = "Choice: " + (table.title.removeprefix("ToolCalls: ") or "no calls")
    if error is not None:
        title = f"{type(error).__name__}: {error}"
    return table._replace(title=title, lines=lines, bad=error is not None or table.bad)


def _call_row(call: Any, good: str) -> list[Cell | Sequence[Cell]]:
    code: str | None = getattr(call, "code", None)
    altered = [Cell(f"({', '.join(call.altered)})", "dim")] if call.altered else []
    tool = [Cell(cut(call.name) if call.name else "(no name)", code=True), Cell(call.id, "id")]
    if code is None:
        return [
            Cell(good, "good" if good == "ok" else "dim"),
            tool,
            [Cell(cut(call.arguments or "{}"), code=True), *altered],
        ]
    place = [Cell(f"at {call.path or '/'}", "dim")] if call.path is not None else []
    excerpt = excerpt_of(call.arguments, code, call.path)
    sent = Cell("" if excerpt else cut(call.arguments), code=True, excerpt=excerpt)
    why = call.message.removesuffix(f": {cut(call.arguments)}")  # which the cell shows already
    return [[Cell(code, "bad"), *place], tool, [sent, Cell(why), *altered]]


def _decl_row(entry: Any) -> list[Cell | Sequence[Cell]]:
    if hasattr(entry, "kind"):  # a tool that the provider runs
        size = len(compact(entry.to_openai()).encode())
        own = Cell("run by the provider", "dim")
        return [Cell(str(entry.kind), code=True), own, Cell(""), Cell(f"{size:,}")]
    flags = [name for name in _FLAGS if getattr(entry, name)]
    marks = [Cell(f"({', '.join(flags)})", "dim")] if flags else []
    about = Cell(cut(entry.description.strip().partition("\n")[0]) if entry.description.strip() else "")
    parameters = Cell(_parameters(entry), code=True)
    return [Cell(cut(entry.name), code=True), [about, *marks], parameters, Cell(f"{entry.size:,}")]


def _parameters(decl: Any) -> str:
    known = decl.parameters.get("properties")
    if not is_object(known) or not known:
        return "none"
    names = [f"{name}{_mark(decl, name)}: {_type(part)}" for name, part in known.items()]
    return listed(names, _MOST_PARAMETERS, ", ")


def _mark(decl: Any, name: str) -> str:
    """Return `?` for a parameter that may be left out."""
    required = decl.parameters.get("required")
    return "" if is_array(required) and name in required else "?"


def _type(schema: Any) -> str:
    if not is_object(schema):
        return "any"
    if isinstance(schema.get("enum"), list):
        return listed((compact(value) for value in schema["enum"]), 5, " | ")
    kinds = schema.get("type") or str(schema.get("$ref", "any")).rpartition("/")[2]
    return " | ".join(map(str, kinds)) if is_array(kinds) else str(kinds)


def _first_rows(rows: list[Any], every: Sequence[Any]) -> list[Any]:
    more = len(every) - len(rows)
    return [*rows, [Cell(""), Cell(f"and {more} more", "dim"), Cell("")]] if more else rows


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# ---- as HTML ----

_BADGES = {
    "good": "background:#1b6e3c;color:#fff;padding:0 .5em;border-radius:.6em",
    "bad": "background:#b3261e;color:#fff;padding:0 .5em;border-radius:.6em",
    "dim": "opacity:.75",
    "id": "opacity:.75",
}
_LINE = "border:1px solid rgba(128,128,128,.5);padding:.2em .6em;text-align:left;vertical-align:top"
_CODE = "font-family:monospace;white-space:pre-wrap;overflow-wrap:"
_WHOLE = 40  # characters of code that stay on one line, as the name of a tool
_PLACE = "background:#ffd54f;color:#000;padding:0 .1em"


def _html(shown: Rendered) -> str:
    title = f'<span style="{_BADGES["bad"]}">!</span> ' if shown.bad else ""
    parts = [f"<div>{title}<b>{_text(cut(shown.title))}</b></div>"]
    parts += [
        f'<div><span style="opacity:.75">{_text(k)}</span> {_text(cut(v))}</div>' for k, v in shown.lines
    ]
    if shown.rows:
        heads = "".join(f'<th style="{_LINE}">{_text(head)}</th>' for head in shown.heads)
        rows = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in shown.rows)
        table = 'style="border-collapse:collapse;margin:.3em 0;color:inherit;background:transparent"'
        parts.append(f"<table {table}><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>")
    return f'<div class="sigadapt">{"".join(parts)}</div>'


def _text(text: str) -> str:
    return escape(printable(text))


def _html_cell(cell: Cell | Sequence[Cell]) -> str:
    parts = "".join(f"<div>{_html_part(part)}</div>" for part in _parts(cell))
    return f'<td style="{_LINE}">{parts}</td>'


def _html_part(cell: Cell) -> str:
    if cell.excerpt is not None:
        before, marked, after = (escape(part) for part in cell.excerpt)
        place = f'<mark style="{_PLACE}">{marked or "&#8248;"}</mark>'
        return f'<code style="{_CODE}anywhere">{before}{place}{after}</code>'
    if cell.code:
        style = f"{_CODE}{'break-word' if len(cell.text) <= _WHOLE else 'anywhere'}"
        return f'<code style="{style};background:transparent;color:inherit">{_text(cell.text)}</code>'
    if cell.mark:
        return f'<span style="{_BADGES[cell.mark]}">{_text(cell.text)}</span>'
    return _text(cell.text)


def _parts(cell: Cell | Sequence[Cell]) -> Iterable[Cell]:
    return [cell] if isinstance(cell, Cell) else cell


# ---- in a terminal ----

_STYLES = {"good": "bold green", "bad": "bold red", "dim": "dim", "id": "dim", "": ""}
_ID_ENDS = 10, 9  # characters of a long id that are shown, from its beginning and from its end
_NARROW = 24  # cells that an excerpt asks for


def _rich(shown: Rendered) -> "RenderableType":
    from rich import box  # noqa: PLC0415  (the first lines say why)
    from rich.console import Group  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    title = Text(printable(cut(shown.title)), "bold red" if shown.bad else "bold")
    parts: list[RenderableType] = [title]
    for label, text in shown.lines:
        parts.append(Text.assemble((label, "dim"), "  ", printable(cut(text))))
    if shown.rows:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
        for head in shown.heads:
            table.add_column(head, overflow="fold")
        for row in shown.rows:
            table.add_row(*(Group(*map(_rich_part, _parts(cell))) for cell in row))
        parts.append(table)
    return Group(*parts)


def _rich_part(cell: Cell) -> "RenderableType":
    from rich.text import Text  # noqa: PLC0415

    if cell.excerpt is not None:
        return _Place(cell.excerpt)
    text = _short_id(cell.text) if cell.mark == "id" else cell.text
    return Text(printable(text), _STYLES[cell.mark])


def _short_id(text: str) -> str:
    first, last = _ID_ENDS
    return text if len(text) <= first + 1 + last else f"{text[:first]}…{text[-last:]}"


class _Place(NamedTuple):
    """An excerpt in a terminal: cut around its place to the width of a column, carets under the place."""

    excerpt: Excerpt

    def __rich_measure__(self, *_: Any) -> Any:
        from rich.measure import Measurement  # noqa: PLC0415

        widest = _cells("".join(self.excerpt)) + (not self.excerpt.marked)
        return Measurement(min(widest, _NARROW), widest)

    def __rich_console__(self, console: Any, options: Any) -> "Iterator[RenderableType]":
        from rich.text import Text  # noqa: PLC0415

        before, marked, after = _cut_around(self.excerpt, options.max_width)
        under = " " * _cells(before) + "^" * max(1, _cells(marked))
        yield Text.assemble(before, (marked, "bold red"), after, no_wrap=True)
        yield Text(under, "bold red", no_wrap=True)


def _cut_around(excerpt: Excerpt, width: int) -> Excerpt:
    """Return an excerpt of at most `width` cells, half of which are for its place, if that is so long."""
    before, marked, after = excerpt
    if _cells(before + marked + after) + (not marked) <= width:
        return excerpt
    if _cells(marked) > width // 2:
        marked, after = _cut_to(marked, max(width // 2, width - _cells(before))), ""
    room = width - max(1, _cells(marked))
    before = _cut_to(before, max(room // 2, room - _cells(after)), from_end=True)
    return Excerpt(before, marked, _cut_to(after, room - _cells(before)))


def _cut_to(text: str, width: int, *, from_end: bool = False) -> str:
    if _cells(text) <= width:
        return text
    while text and _cells(text) >= width:
        text = text[1:] if from_end else text[:-1]
    return (f"…{text}" if from_end else f"{text}…") if width > 0 else ""


def _cells(text: str) -> int:
    from rich.cells import cell_len  # noqa: PLC0415

    return cell_len(text)
