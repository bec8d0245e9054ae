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
    texts = [path.read_bytes().decode("utf-8", "replace") for path in files]
    lines = [line for text in texts for line in text.split("\n") if line.strip()]
    exchanges: list[LoggedExchange] = []
    unread: list[str] = []
    for number, line in enumerate(progress(lines, "Reading", len(lines)), 1):
        try:
            exchanges.append(exchange_in(line))
        except Exception as error:  # a log may hold anything; it is counted, and told without a secret
            sentence = f"line {number}: {error}"
            unread.append(printable(Echoes(secrets_in({"": sentence})).hidden(sentence)))
    if not exchanges:
        why = unread[0] if unread else "the files are empty"
        raise InvalidHistory(f"no line holds a request and its answer: {why}", field="files")
    result = adopt_log(exchanges)
    counts = {
        **{name: len(getattr(result, name)) for name in ("rows", "silences")},
        **{name: getattr(result, name) for name in ("conversations", "drifted", "own_tools")},
        "heldout": sum(row["conversation"] in result.heldout for row in result.rows),
    }
    sentence = f"{counted(len(exchanges), 'exchange')} read, {counted(len(unread), 'line')} not"
    summary = Table("", "count", title=sentence)
    for name, meaning in _MEANINGS.items():
        summary.add_row(meaning, f"{counts[name]:,}")
    failures = Table("code", "tool", "place in the arguments", "calls", title="Calls that were not right")
    for each in result.table():
        failures.add_row(*(printable(str(each[key] or "")) for key in ("code", "tool", "path", "count")))
    tables = [summary, failures] if result.failures else [summary]
    report = Group(*tables, *(f"Not read: {each}" for each in unread[:5]))
    output.mkdir(parents=True, exist_ok=True)
    for name, text in {**result.files(), "report.html": page(report)}.items():
        with open_private(output / name, "w") as file:
            file.write(text)
    if as_json:
        emit("adopt", read=len(exchanges), unread=len(unread), **counts, failures=result.table())
    else:
        draw(Group(report, f"Written: {output / 'program.py'}, and the rows beside it."))
