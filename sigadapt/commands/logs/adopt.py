"""Make a program and rows of data of recorded traffic. Nothing leaves the machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.table import Table

from sigadapt.commands.printing import AsJson, counted, draw, emit, page, progress, quiet
from sigadapt.errors import InvalidHistory
from sigadapt.logs.adopt import adopt_log
from sigadapt.logs.exchanges import LoggedExchange, exchange_in
from sigadapt.signatures.places import printable
from sigadapt.testing.private_files import open_private
from sigadapt.trust.echoes import Echoes
from sigadapt.trust.masking import secrets_in

_MEANINGS = {
    "conversations": "conversations",
    "rows": "rows with gold calls",
    "heldout": "of these, held out: no conversation is in both files",
    "silences": "turns that needed no call",
    "drifted": "rows left out, because a newer declaration refuses their calls",
    "own_tools": "tools that a provider runs, left out of the program",
}


def adopt(
    files: Annotated[list[Path], typer.Argument(help="Files of JSON lines.", exists=True, dir_okay=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.", file_okay=False)],
    as_json: AsJson = False,
) -> None:
    """Make a program, rows with gold calls and a table of failures of recorded traffic.

    A line is a request and its response, a recording of sigadapt's, LiteLLM's standard logging payload, or
    an OpenTelemetry span. Secrets are masked. What cannot be read is counted.
    """
    quiet()
    exchanges, faults = _read(files)
    if not exchanges:
        reason = faults[0] if faults else "the files are empty"
        raise InvalidHistory(f"no line holds a request and its answer: {reason}", field="files")
    result = adopt_log(exchanges)
    counts = {
        "rows": len(result.rows),
        "silences": len(result.silences),
        "conversations": result.conversations,
        "drifted": result.drifted,
        "own_tools": result.own_tools,
        "heldout": sum(row["conversation"] in result.heldout for row in result.rows),
    }
    sentence = f"{counted(len(exchanges), 'exchange')} read, {counted(len(faults), 'line')} not"
    summary = Table("", "count", title=sentence)
    for name, meaning in _MEANINGS.items():
        summary.add_row(meaning, f"{counts[name]:,}")
    failures = Table("code", "tool", "place in the arguments", "calls", title="Calls that were not right")
    for failure in result.table():
        cells = (failure["code"], failure["tool"], failure["path"], failure["count"])
        failures.add_row(*(printable(str(cell or "")) for cell in cells))
    tables = [summary, failures] if result.failures else [summary]
    report = Group(*tables, *(f"Not read: {fault}" for fault in faults[:5]))
    output.mkdir(parents=True, exist_ok=True)
    for name, text in {**result.files(), "report.html": page(report)}.items():
        with open_private(output / name, "w") as file:
            file.write(text)
    if as_json:
        emit("adopt", read=len(exchanges), unread=len(faults), **counts, failures=result.table())
    else:
        draw(Group(report, f"Written: {output / 'program.py'}, and the rows beside it."))


def _read(files: list[Path]) -> tuple[list[LoggedExchange], list[str]]:
    """Return the exchanges of files, and a sentence for each line that holds none."""
    lines: list[str] = []
    for path in files:
        text = path.read_bytes().decode("utf-8", "replace")
        lines += [line for line in text.split("\n") if line.strip()]
    exchanges: list[LoggedExchange] = []
    faults: list[str] = []
    for number, line in enumerate(progress(lines, "Reading", len(lines)), 1):
        try:
            exchanges.append(exchange_in(line))
        except Exception as error:  # a log may hold anything; it is counted, and told without a secret
            sentence = f"line {number}: {error}"
            faults.append(printable(Echoes(secrets_in({"": sentence})).hidden(sentence)))
    return exchanges, faults
