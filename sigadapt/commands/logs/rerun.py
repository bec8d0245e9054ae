"""Replay recorded conversations on other models, and print where they leave the record."""

from typing import Annotated

import typer
from rich.console import Group

from sigadapt.commands.logs.adopt import FailedOption
from sigadapt.commands.logs.compare import (
    FolderOption,
    ModelsOption,
    ThreadsOption,
    adopted_in,
    language_model,
)
from sigadapt.commands.printing import AsJson, draw, emit, quiet
from sigadapt.logs import replay


def rerun(
    folder: FolderOption,
    model: ModelsOption,
    by_call: Annotated[
        bool, typer.Option("--by-call", help="Accept the calls of a turn in any order.")
    ] = False,
    failed: FailedOption = None,
    threads: ThreadsOption = 4,
    as_json: AsJson = False,
) -> None:
    """Replay whole conversations on other models, with the user's words and the tools' results of the log.

    It prints where a model leaves the record, which call was expected, and which came. No tool runs.
    """
    quiet()
    adopted = adopted_in(folder)
    match = "by-call" if by_call else "strict"
    runs = [
        replay(adopted, language_model(name), match=match, failed=failed, threads=threads, name=name)
        for name in dict.fromkeys(model)
    ]
    if as_json:
        emit("rerun", models=[run.document() for run in runs])
    else:
        draw(Group(*(table for run in runs for table in run.tables())))
