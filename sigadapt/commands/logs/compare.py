"""Ask models with the rows that `sigadapt adopt` made, and print how far they agree with the log."""

import json
import runpy
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import dspy
import pydantic
import typer
from rich.table import Table

from sigadapt.adapters.lm.over_litellm.tokens import token_counter
from sigadapt.commands.arguments import load
from sigadapt.commands.printing import AsJson, complain, draw, emit, progress, quiet, say
from sigadapt.errors import InvalidOption
from sigadapt.logs.compare import OUTCOMES, Agreement, Reply, ask, sign_tests
from sigadapt.schemas.json_values import Json, compact, is_object, short_hash
from sigadapt.signatures.places import printable
from sigadapt.testing.private_files import open_private

_REPLY = pydantic.TypeAdapter(Reply)
FolderOption = Annotated[Path, typer.Argument(help="What adopt wrote.", exists=True, file_okay=False)]


def compare(
    folder: FolderOption,
    model: Annotated[list[str], typer.Option(help="A model of dspy.LM, or module:name of a dspy.LM.")],
    threads: Annotated[int, typer.Option(help="How many rows are asked at once.", min=1)] = 4,
    asks_again: Annotated[
        bool, typer.Option("--again", help="Ask rows again that an earlier run asked.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask models with recorded rows: the same call, other arguments, another tool, a bad call, none.

    It is agreement with what was recorded. A run that was stopped goes on where it was.
    """
    quiet()
    program, tools = adopted_program(folder)
    gold = [*rows_in(folder / "train.jsonl"), *rows_in(folder / "heldout.jsonl")]
    silences = rows_in(folder / "silences.jsonl")
    rows = [*gold, *silences]
    if not rows:
        raise InvalidOption("there are no rows to ask with", field="folder", fix="Run sigadapt adopt first.")
    models = {name: model_of(name) for name in dict.fromkeys(model)}
    _, count = token_counter()
    tools_size = count(compact(tools.to_openai()))
    tokens = sum(tools_size + count(compact(row)) for row in rows) * len(models)
    complain(f"{len(rows) * len(models):,} requests at most, about {tokens:,} input tokens in all")
    agreements: list[Agreement] = []
    for name, lm in models.items():
        path = folder / f"asked-{short_hash(compact([name, lm.model, tools.fingerprint()]))}.jsonl"
        earlier_replies = {} if asks_again else asked_before(rows_in(path))
        journal = _Journal(path, earlier_replies)
        answer = partial(_answer, program=program, lm=lm, tools=tools, journal=journal)
        pool = ThreadPoolExecutor(threads)
        try:
            replies = [*progress(pool.map(answer, rows), name, len(rows))]
        finally:
            pool.shutdown(cancel_futures=True)  # who stops it pays no more
        agreements.append(Agreement(name, replies[: len(gold)], replies[len(gold) :]))
    documents = [agreement.document() for agreement in agreements]
    tests = sign_tests(agreements)
    if as_json:
        emit("compare", models=documents, sign_tests=tests)
    else:
        _print_report(agreements, documents, tests)


class _Journal(NamedTuple):
    """The file of a model's replies, and those of an earlier run, by the hashes of their rows."""

    path: Path
    replies: dict[str, Reply]


def _answer(row: Json, *, program: Any, lm: Any, tools: Any, journal: _Journal) -> Reply:
    """Return the reply to a row: the earlier one, or a new one, which is written to the journal."""
    key = short_hash(compact(row))
    if key in journal.replies:
        return journal.replies[key]
    reply = ask(program, lm, row, tools)
    if reply.outcome != "error":
        with open_private(journal.path, "a") as file:
            file.write(f"{compact({'row': key, 'asked': asdict(reply)})}\n")
    return reply


def _print_report(agreements: list[Agreement], documents: list[Json], tests: list[Json]) -> None:
    columns = ("rows", *OUTCOMES, "called_anyway", "changes", "input_tokens", "output_tokens", "cost")
    models = [document["model"] for document in documents]
    table = Table("", *models, title="Agreement with what was recorded")
    for name in columns:
        table.add_row(name.replace("_", " "), *(_number(document[name]) for document in documents))
    draw(table)
    for test in tests:
        first, second = test["models"]
        alone = f"{first} alone {test['first_alone']}, {second} alone {test['second_alone']}"
        say(f"The same call: {alone}; by chance with p = {test['p']:.3g}")
    for agreement in agreements:
        other_replies = [reply for reply in agreement.rows if reply.outcome not in ("same_call", "none")]
        for reply in other_replies[:5]:
            say(f"{agreement.model}: {reply.outcome.replace('_', ' ')}: {printable(reply.why)}")


def asked_before(journal: list[Json]) -> dict[str, Reply]:
    """Return the replies of an earlier run, by the hashes of their rows."""
    replies: dict[str, Reply] = {}
    for entry in journal:
        with suppress(KeyError, pydantic.ValidationError):  # what is no reply is asked again
            replies[str(entry["row"])] = _REPLY.validate_python(entry["asked"])
    return replies


def adopted_program(folder: Path) -> tuple[Any, Any]:
    """Return `program` and `TOOLS` of a folder's program.py."""
    try:
        names: Any = runpy.run_path(str(folder / "program.py"))
    except Exception as error:  # it is the user's own file by now
        fix = "Run sigadapt adopt, or mend the file."
        raise InvalidOption(f"program.py cannot be used: {error}", field="folder", fix=fix) from error
    return names["program"], names["TOOLS"]


def rows_in(path: Path) -> list[Json]:
    """Return the rows of a file; none if it is not there. A line that was not written whole is left out."""
    lines = path.read_bytes().decode("utf-8", "replace").split("\n") if path.exists() else []
    rows: list[Json] = []
    for line in filter(str.strip, lines):
        row: Any = None
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
        if is_object(row):
            rows.append(row)
        else:
            complain(f"{path.name}: a line is no JSON object, and is left out")
    return rows


def model_of(name: str) -> Any:
    """Return the language model of a name as `dspy.LM` takes it, or of `module:name`."""
    lm: Any = dspy.LM(name) if "/" in name else load(name, "model")
    if not isinstance(lm, dspy.BaseLM):
        raise InvalidOption(f"{name!r} is a {type(lm).__name__}, not a dspy.LM", field="model")
    return lm


def _number(value: Any) -> str:
    if value is None:
        return "unknown"
    return f"${value:.4f}" if isinstance(value, float) else f"{value:,}"
