"""How what a log gives is printed: tables for `print`, terminals and notebooks, and bars while it is made."""

from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TypeVar

from rich.console import Console, Group, RenderableType
from rich.progress import track
from rich.table import Table

from sigadapt.signatures.places import printable

_T = TypeVar("_T")
_WIDTH = 110


class Report:
    """What prints as tables: in a terminal, in a notebook, and by `print`."""

    def tables(self) -> Sequence[RenderableType]:
        """Return the tables."""
        raise NotImplementedError

    def __rich__(self) -> RenderableType:
        return Group(*self.tables())

    def __str__(self) -> str:
        screen = Console(file=StringIO(), width=_WIDTH, color_system=None, markup=False, highlight=False)
        with screen.capture() as capture:
            screen.print(self)
        return "\n".join(line.rstrip() for line in capture.get().rstrip().splitlines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        screen = Console(file=StringIO(), record=True, width=_WIDTH, markup=False, highlight=False)
        screen.print(self)
        return screen.export_html(inline_styles=True, code_format='<pre style="line-height:1.2">{code}</pre>')


def table_of(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table; what a log or a model says is written without control characters."""
    table = Table(title=title)
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*map(cell, row))
    return table


def cell(value: object) -> str:
    """Return a value as a cell says it."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return printable(str(value))


def html_page(report: RenderableType) -> str:
    """Return what a terminal would show as an HTML page."""
    screen = Console(file=StringIO(), record=True, width=120, markup=False, highlight=False)
    screen.print(report)
    return screen.export_html()


def progress(items: Iterable[_T], label: str, total: int | None = None) -> Iterable[_T]:
    """Return the items, with a bar on a terminal's stderr as long as they are taken."""
    screen = Console(stderr=True, highlight=False, markup=False, emoji=False)
    return track(items, label, total, console=screen, disable=not screen.is_terminal, transient=True)
