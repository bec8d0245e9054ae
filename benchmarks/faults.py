"""Write the section of docs/measured.md on faulty answers beside other libraries; print each answer."""

import logging
import os
from collections import Counter, defaultdict
from collections.abc import Iterable

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from benchmarks import measured
from benchmarks.faulty import FOUR, ROWS, cells
from benchmarks.grid import CLASSES, PROGRAMS, outcome, verdict
from benchmarks.tree import stamp

LIBRARIES = ("dspy", "litellm", "pydantic-ai-slim", "langchain-openai", "openai", "google-genai")
SHORT = {"good call lost": "**good call lost**", "silent": "**silent**", "": "·"}
Verdicts = dict[tuple[str, str, bool], dict[str, str]]

SECTION = """## Faulty answers beside other libraries

{stamp}

`python3 tasks.py evidence faults` writes this section. {cells} answers, {faulty} of them faulty, go to
four libraries on every wire that can carry them, whole and streamed. Each program is the one that its
library's documentation shows, and it **runs the calls it gets**. So a fault counts as *told* even if the
call fails only when it runs, which is kinder than the count above.

| class | meaning |
| --- | --- |
| right | nothing was wrong, and the program got all of it |
| lenient | the answer was malformed, and the program got the right value anyway |
| told | an error that names the fault |
| in a field | no error, but the result holds a finish reason, a refusal or an invalid call that says so |
| reason lost | an error that doesn't name the fault |
| good call lost | a good call, or a sound answer, didn't reach the program |
| silent | something wrong, missing or cut off passed as good |

{totals}
{limits}

Where another library has a better class than sigadapt (`w` is a whole answer, `s` a streamed one):

{better}
{why}

The faults are ours; a model's own mistakes come in other proportions. A library is judged by one program,
and "told" by a pattern for each fault (`benchmarks/faulty.py`). To add a library, add a program to
`benchmarks/grid.py`.
"""

EMPTY = """\
constraints.txt lacks langchain-anthropic and langchain-google-genai, and its pydantic-ai can't use its
Anthropic SDK."""
WHY = """\
sigadapt refuses arguments that aren't a JSON object of the declared shape. `repair=True` and `unwrap=True`
read most of them, and `altered` says so."""


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Write a table; all columns but the first are numbers or words."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def verdicts() -> Verdicts:
    """Judge every cell. A wire on which a library cannot even read a good call has no working provider."""
    found: Verdicts = {}
    broken: set[tuple[str, str]] = set()
    for sent in cells():
        row = found.setdefault((sent.row.name, sent.wire, sent.streamed), {})
        for who in PROGRAMS:
            came = outcome(sent, who) if (who, sent.wire) not in broken else None
            row[who] = verdict(sent, came) if came else ""
            if sent.row is ROWS[0] and not sent.streamed and row[who] not in {"", "right"}:
                broken.add((who, sent.wire))
                row[who] = ""
    return found


def places(at: list[tuple[str, bool]]) -> str:
    """Write wires, with `w` for whole and `s` for streamed."""
    marks = {wire: "".join("ws"[streamed] for each, streamed in at if each == wire) for wire in FOUR}
    return ", ".join(f"{wire} {mark}" for wire, mark in marks.items() if mark)


def grid(found: Verdicts) -> dict[str, object]:
    """Return the parts of the grid's section."""
    tallies: dict[str, Counter[str]] = {who: Counter(row[who] for row in found.values()) for who in PROGRAMS}
    totals = [
        [who, sum(n for name, n in counts.items() if name), *(counts[name] for name in CLASSES)]
        for who, counts in tallies.items()
    ]
    empty = [
        f"{who} on {', '.join(wires)}"
        for who in PROGRAMS
        if (wires := [w for w in FOUR if not any(r[who] for k, r in found.items() if k[1] == w)])
    ]
    better: dict[tuple[str, str, str, str], list[tuple[str, bool]]] = defaultdict(list)
    for (name, wire, streamed), row in found.items():
        for who, what in row.items():
            if what and CLASSES.index(what) < CLASSES.index(row["sigadapt"]):
                better[name, who, what, row["sigadapt"]].append((wire, streamed))
    lines = [[name, who, what, ours, places(at)] for (name, who, what, ours), at in better.items()]
    alike: dict[tuple[str, ...], list[tuple[str, bool]]] = defaultdict(list)
    for (name, wire, streamed), row in found.items():
        classes = [SHORT.get(row[who], row[who]) for who in PROGRAMS]
        alike[(name, *classes)].append((wire, streamed))
    rows = [[name, places(at), *classes] for (name, *classes), at in alike.items()]
    sound = {row.name for row in ROWS if row.sound}
    return {
        "cells": len(found),
        "faulty": sum(name not in sound for name, _, _ in found),
        "totals": table(("", "answers", *CLASSES), totals),
        "limits": f"Left out: {'; '.join(empty)}. {EMPTY}" if empty else "",
        "better": table(("what arrives", "library", "its class", "sigadapt's", "where"), lines)
        if lines
        else "None.\n",
        "why": WHY if lines else "",
        "grid": table(("what arrives", "wire", *PROGRAMS), rows),
    }


def main() -> None:
    """Measure, write the section, and print every answer."""
    logging.disable(logging.CRITICAL)
    parts = grid(verdicts())
    measured.write("faults", SECTION.format(stamp=stamp(*LIBRARIES), **parts))
    print(parts["grid"])


if __name__ == "__main__":
    main()
