"""Ask models with the rows that `sigadapt adopt` made, and print how far they agree with the log."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group

from sigadapt.adapters.lm.over_litellm.tokens import token_counter
from sigadapt.commands.arguments import load as load_object
from sigadapt.commands.printing import AsJson, complain, draw, emit, quiet
from sigadapt.logs import compare as compare_models
from sigadapt.logs import load
from sigadapt.logs.adoption.adopted import Adopted
from sigadapt.logs.agreement import model_of
from sigadapt.schemas.json_values import compact

FolderOption = Annotated[
    Path, typer.Argument(help="The folder that `sigadapt adopt` wrote.", exists=True, file_okay=False)
]
ThreadsOption = Annotated[int, typer.Option(help="How many requests to send at once.", min=1)]
ModelsOption = Annotated[list[str], typer.Option(help="A model of dspy.LM, or module:name of a dspy.LM.")]


def compare(
    folder: FolderOption,
    model: ModelsOption,
    threads: ThreadsOption = 4,
    asks_again: Annotated[
        bool, typer.Option("--again", help="Ask all rows again, even those that an earlier run asked.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask models what was asked in the log, and count where they make the recorded call.

    This measures agreement with the log, not accuracy. A run that was stopped resumes where it stopped.
    """
    quiet()
    adopted = adopted_in(folder)
    models = {name: language_model(name) for name in model}
    rows = [*adopted.rows, *adopted.silences]
    _, count = token_counter()
    tools_size = count(compact(adopted.tools.to_openai()))
    tokens = sum(tools_size + count(compact(row.toDict())) for row in rows) * len(models)
    complain(f"{len(rows) * len(models):,} requests at most, about {tokens:,} input tokens in all")
    comparison = compare_models(adopted, models, threads=threads, journal=folder, again=asks_again)
    if as_json:
        documents = [each.document() for each in comparison.models]
        emit("compare", models=documents, sign_tests=comparison.sign_tests)
    else:
        draw(Group(*comparison.tables()))


def adopted_in(folder: Path) -> Adopted:
    """Return what a folder holds; a line that was not written whole is named on stderr."""
    adopted = load(folder)
    for fault in adopted.unread:
        complain(f"{fault.line}: {fault.reason}, left out")
    return adopted


def language_model(name: str) -> Any:
    """Return the language model of a name as `dspy.LM` takes it, or of `module:name`."""
    return model_of(name if "/" in name else load_object(name, "model"))
