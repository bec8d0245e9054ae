"""Write the page of the wires from the wire matrix: what each provider is sent, and how its answer is read.

The matrix is `tests/adapters/wire_matrix.py`; `test_wire_matrix.py` compares every cell with the requests of
the real `dspy.LM`. `python3 tasks.py site` builds the page with the site.
"""  # noqa: INP001  (a script)

import importlib.util
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

MATRIX = Path(__file__).resolve().parents[1] / "tests" / "adapters" / "wire_matrix.py"
WIDTH = 100  # characters of JSON that fit on one line
HEAD = """# What goes over the wire

The JSON that sigadapt sends to each provider and reads from it, by subject. The table has both of DSPy's
engines. Below it, each subject has the JSON of DSPy's native engine, as far as it belongs to the subject;
formats with the same JSON are shown once. A choice of tools is shown without the tools, unless it changes
them. `sigadapt show --engine litellm` prints LiteLLM's.

*Recorded* lists the differences between the canonical request and the one that the provider gets: `changes`
(made by sigadapt) or `adaptations` (made by DSPy) of the history entry.
"""
LITELLM = "(LiteLLM)"  # in the title of a column


def matrix() -> Any:
    """Import the module of the matrix, which is not part of the package."""
    spec = importlib.util.spec_from_file_location("wire_matrix", MATRIX)
    if spec is None or spec.loader is None:
        raise ImportError(f"{MATRIX} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["wire_matrix"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def page(data: Any) -> str:
    """Return the whole page."""
    native = {key: column for key, column in data.COLUMNS.items() if LITELLM not in column.title}
    rows = "\n".join(line for row in data.ROWS.values() for line in section(shown(row), native))
    return f"{HEAD}\n{summary(data)}\n\n{rows}\n"


def shown(row: Any) -> Any:
    """Return the row; one that chooses among tools, without the tools that its choice leaves as they are."""
    if not row.title.startswith(("Tool choice", "One call")):
        return row
    cells = dict(row.cells)
    for key, cell in cells.items():
        if cell.sent and not any(where == "/tools" for where, _ in cell.changes):
            sent = {name: value for name, value in cell.sent.items() if name != "tools"}
            cells[key] = replace(cell, sent=sent)
    return replace(row, cells=cells)


def summary(data: Any) -> str:
    """Return the table of marks: one line for each row of the matrix, one mark for each column."""
    titles = [column.title for column in data.COLUMNS.values()]
    lines = ["| | " + " | ".join(titles) + " |", "|---|" + "---|" * len(titles)]
    for row in data.ROWS.values():
        marks = [mark(row.cells[key]) for key in data.COLUMNS]
        link = row.title.lower().translate(str.maketrans(" ", "-", ":`,"))
        lines.append(f"| [{row.title}](#{link}) | " + " | ".join(marks) + " |")
    return (
        "\n".join(lines)
        + "\n\n`yes`: sent as asked. `recorded`: sent by other means or not at all, and recorded. "
        "`refused`: an error\nbefore the request. `none`: the wire has nothing of the kind."
    )


def mark(cell: Any) -> str:
    """Return the mark of a cell: whether the wire carries what was asked."""
    if cell.known:
        return "not yet"
    if cell.refused or cell.absent:
        return "refused" if cell.refused else "none"
    return "recorded" if cell.changes or cell.adapted else "yes"


def section(row: Any, columns: Any) -> Iterator[str]:
    """Yield a row: its subject, then its cells, equal ones together."""
    yield f"## {row.title}\n\n{row.about}\n"
    for titles, cell in alike(row, columns):
        yield f"### {' · '.join(titles)}\n"
        if cell.heard is not None and row.scope == "said":
            yield f"The answer:\n\n{block(cell.heard)}\n\nOn the next turn:\n"
        if cell.refused or cell.absent:
            yield f"{cell.absent or 'Refused before the request: ' + cell.refused + '.'}\n"
            continue
        yield f"{block(cell.sent)}\n" if cell.sent else "Nothing is sent.\n"
        yield from remarks(cell)


def alike(row: Any, columns: Any) -> Iterator[tuple[list[str], Any]]:
    """Yield the different cells, each with the titles of its columns."""
    cells: list[tuple[list[str], Any]] = []
    for key, column in columns.items():
        cell = row.cells[key]
        same = next((titles for titles, known in cells if known == cell), None)
        if same is None:
            cells.append(([column.title], cell))
        else:
            same.append(column.title)
    yield from cells


def remarks(cell: Any) -> Iterator[str]:
    """Yield the remarks on a cell."""
    recorded = [f"`{where}` {what}" for where, what in cell.changes] + [
        f"`{name}` adapted" for name in cell.adapted
    ]
    if recorded:
        yield f"*Recorded:* {', '.join(recorded)}.\n"
    if cell.note:
        yield f"{cell.note}\n"
    if cell.known:
        yield f"*Does not hold yet:* {cell.known}.\n"


def block(value: Any) -> str:
    """Write JSON as a code block."""
    return f"```json\n{written(value)}\n```"


def written(value: Any, depth: int = 0) -> str:
    """Write JSON in as few lines as fit the width."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + 2 * depth <= WIDTH or not isinstance(value, (dict, list)):
        return line
    inside, outside = "  " * (depth + 1), "  " * depth
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        items = [f"{json.dumps(key)}: {written(item, depth + 1)}" for key, item in known.items()]
        opened, closed = "{", "}"
    else:
        items = [written(item, depth + 1) for item in cast("list[Any]", value)]
        opened, closed = "[", "]"
    return f"{opened}\n{inside}" + f",\n{inside}".join(items) + f"\n{outside}{closed}"


def main() -> None:
    """Print the page, which the site has."""
    print(page(matrix()))  # noqa: T201


if __name__ == "__main__":
    main()
