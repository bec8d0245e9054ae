"""Rewrite the descriptions of adopted tools by failure, and write what helps into one file to review."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group

from sigadapt.commands.logs.compare import FolderOption, adopted_in, language_model
from sigadapt.commands.printing import AsJson, complain, draw, emit, quiet, waiting
from sigadapt.logs import improve as improve_texts
from sigadapt.logs.tables import html_page
from sigadapt.trust.private_files import open_private


def improve(
    folder: FolderOption,
    model: Annotated[str, typer.Option(help="The model that reads the texts, as in compare.")],
    reflection_model: Annotated[str, typer.Option(help="The model that writes them. Default: --model.")] = "",
    budget: Annotated[int, typer.Option(help="The most requests, reflections included.", min=4)] = 200,
    texts: Annotated[Path | None, typer.Option(help="A file to begin with.", exists=True)] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Default: tool_texts.json.")] = None,
    report: Annotated[Path | None, typer.Option(help="Default: report.html in the folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Rewrite the descriptions of tools where calls failed, and keep a text only if no row gets worse.

    It learns from train.jsonl, and is measured on heldout.jsonl. Review the file before you use it.
    """
    quiet()
    adopted = adopted_in(folder)
    lm = language_model(model)
    reflection = language_model(reflection_model) if reflection_model else lm
    complain(f"at most {budget:,} requests")
    with waiting("rewriting texts ..."):
        improved = improve_texts(adopted, lm, reflection_model=reflection, budget=budget, texts=texts)
    improved.model = model
    path = improved.save(output or folder / "tool_texts.json")
    with open_private(report or folder / "report.html", "w") as file:
        file.write(html_page(improved))
    if as_json:
        emit("improve", **improved.document())
    else:
        draw(Group(*improved.tables(), f"Written: {path}. Review it before you use it."))
