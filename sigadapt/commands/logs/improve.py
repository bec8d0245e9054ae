"""Rewrite the descriptions of adopted tools by failure, and write what helps into one file to review."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.table import Table

from sigadapt.commands.logs.compare import FolderOption, adopted_program, model_of, rows_in
from sigadapt.commands.printing import AsJson, complain, draw, emit, page, quiet, waiting
from sigadapt.errors import InvalidOption
from sigadapt.logs.compare import sign_test
from sigadapt.logs.improve import improve as improve_texts
from sigadapt.signatures.places import printable
from sigadapt.testing.private_files import open_private
from sigadapt.tool_texts import texts_of


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
    """Rewrite descriptions of tools by failure; keep what gains without a row getting worse.

    It learns from train.jsonl, and asks heldout.jsonl before and after. Review the file before you use it.
    """
    quiet()
    _, tools = adopted_program(folder)
    train = rows_in(folder / "train.jsonl")
    heldout = rows_in(folder / "heldout.jsonl")
    if not train:
        reason = "there are no rows to learn from"
        raise InvalidOption(reason, field="folder", fix="Run sigadapt adopt first.")
    lm = model_of(model)
    reflection = model_of(reflection_model) if reflection_model else lm
    start = texts_of(texts, tools) if texts else {}
    complain(f"at most {budget:,} requests")
    with waiting("rewriting texts ..."):
        result = improve_texts(
            tools, train, heldout, lm=lm, reflection=reflection, budget=budget, texts=start
        )
    document = result.document()
    measures = {key: value for key, value in document.items() if key != "texts"} | {"model": model}
    measures["p"] = sign_test(document["better"], document["worse"])
    text_file = {"format": 1, "texts": result.texts, "made_for": tools.fingerprint(), "measured": measures}
    path = output or folder / "tool_texts.json"
    path.write_text(json.dumps(text_file, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    counts = Table("", "count", title="Held-out rows: the same call as recorded")
    for key in ("rows", "before", "after", "better", "worse", "requests"):
        counts.add_row(key, f"{document[key]:,}")
    steps = Table("text", "before", "now", "rows", "", title="Texts, in the order in which they were tried")
    for step in result.steps:
        cells = (printable(str(step.get(key, ""))) for key in ("text", "before", "now", "rows"))
        outcome = "kept" if step["kept"] else f"undone: {step['why']}"
        steps.add_row(*cells, outcome)
    rendering = Group(counts, steps, *(printable(f"{name}: {text}") for name, text in result.texts.items()))
    with open_private(report or folder / "report.html", "w") as file:
        file.write(page(rendering))
    if as_json:
        emit("improve", **document)
    else:
        draw(Group(rendering, f"Written: {path}. Review it before you use it."))
