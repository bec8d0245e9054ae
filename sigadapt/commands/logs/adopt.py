"""Make a program and rows of data of recorded traffic. Nothing leaves the machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group

from sigadapt.commands.printing import AsJson, draw, emit, quiet
from sigadapt.logs import adopt as adopt_log

FailedOption = Annotated[
    str | None, typer.Option(help="A regular expression. A result that it matches counts as a failure.")
]


def adopt(
    files: Annotated[list[Path], typer.Argument(help="Files of JSON lines.", exists=True, dir_okay=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.", file_okay=False)],
    failed: FailedOption = None,
    seed: Annotated[int, typer.Option(help="Another seed holds out other conversations.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Turn recorded traffic into a program, rows with the calls that were right, and a table of failures.

    A line is a request and its response, together or apart, a span or a trace (OpenTelemetry, OpenInference,
    Langfuse, MLflow), LiteLLM's payload, a line of a batch or of a fine-tuning file, or a list of these.
    Secrets are masked. Lines that cannot be read are counted.
    """
    quiet()
    adopted = adopt_log(files, failed=failed, seed=seed)
    paths = adopted.save(output)
    if as_json:
        counts = {"read": adopted.read, "unread": len(adopted.unread), **adopted.counts()}
        emit("adopt", **counts, failures=adopted.failures)
        return
    sentence = f"Written: {paths[0]}, and the rows beside it."
    if paths[0].name != "program.py":
        sentence += " Your own program.py is as it was: compare its instructions and TOOLS with the new one."
    draw(Group(*adopted.tables(), sentence))
