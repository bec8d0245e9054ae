"""The folder of an adopted log: files that are replaced only by whole new ones, for their owner alone."""

import json
import runpy
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sigadapt.errors import InvalidOption
from sigadapt.logs.adoption.program_text import is_unchanged
from sigadapt.schemas.json_values import Json, compact, is_array, is_object
from sigadapt.trust.private_files import open_private

PROGRAM = "program.py"
NEW_PROGRAM = "program_new.py"
"""Where a new program goes beside one that its user changed."""


def write_files(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write files into a folder, all or none, and return their paths. A changed program is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    paths: dict[Path, str] = {}
    for name, text in files.items():
        path = folder / name
        if name == PROGRAM and path.exists():
            old_text = text_in(path)
            if old_text != text and not is_unchanged(old_text):
                path = folder / NEW_PROGRAM
        paths[path] = text
    drafts = {path: path.with_name(f".{path.name}.draft") for path in paths}
    try:
        for path, text in paths.items():
            with open_private(drafts[path], "w") as file:
                file.write(text)
        for path, draft in drafts.items():
            draft.replace(path)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
    if PROGRAM in files and folder / PROGRAM in paths:
        (folder / NEW_PROGRAM).unlink(missing_ok=True)  # of an earlier run
    return [*paths]


def text_in(path: Path) -> str:
    """Return the text of a file, whatever its bytes are."""
    return path.read_bytes().decode("utf-8", "replace")


def json_lines(rows: Iterable[Json]) -> str:
    """Return rows as lines of JSON."""
    return "".join(f"{compact(row)}\n" for row in rows)


def program_in(folder: Path) -> tuple[Any, Any]:
    """Return `program` and `TOOLS` of a folder's program.py, which is run.

    Raises:
        InvalidOption: if it cannot be run, or lacks one of these.
    """
    fix = "Run sigadapt adopt, or mend the file."
    try:
        names: Any = runpy.run_path(str(folder / PROGRAM))
        return names["program"], names["TOOLS"]
    except Exception as error:  # it is the user's own file by now
        raise InvalidOption(f"program.py cannot be used: {error}", field="folder", fix=fix) from error


def rows_in(path: Path) -> tuple[list[Json], int]:
    """Return the rows of a file, one or a list of them on each line, and how many lines have none."""
    lines = text_in(path).split("\n") if path.exists() else []
    rows: list[Json] = []
    bad_lines = 0
    for line in filter(str.strip, lines):
        row: Any = None
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
        entries = row if is_array(row) else [row]
        if entries and all(map(is_object, entries)):
            rows += entries
        else:
            bad_lines += 1
    return rows, bad_lines
