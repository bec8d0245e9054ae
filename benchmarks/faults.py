"""Write docs/evidence.md: a grid of faulty answers (`benchmarks/grid.py`) beside other libraries."""

import logging
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from benchmarks.faulty import FOUR, ROWS, cells
from benchmarks.grid import CLASSES, PROGRAMS, outcome, verdict
from benchmarks.tree import ROOT, stamp

PAGE = ROOT / "docs" / "evidence.md"
LIBRARIES = ("dspy", "litellm", "pydantic-ai-slim", "langchain-openai", "openai", "google-genai")
SHORT = {"good call lost": "**good call lost**", "silent": "**silent**", "": "·"}
PEERS = re.compile(r"<!-- peers -->.*<!-- /peers -->\n", re.DOTALL)
Verdicts = dict[tuple[str, str, bool], dict[str, str]]

HEAD = """# Evidence

{stamp}

`python3 tasks.py evidence faults` writes the first sections of this page: a grid of faulty answers. It
compares sigadapt with DSPy's own adapter, pydantic-ai and LangChain. `python3 tasks.py evidence peers` writes
the last one: whole runs beside DSPy, pydantic-ai, LangChain and the OpenAI Agents SDK.

The grid runs the libraries beside LiteLLM, which pins the OpenAI SDK below 3, so it has the versions named
above, from constraints.txt. Whole runs and [the board](board.md) run them in another environment, with the
newer versions of `benchmarks/peers/versions.txt`.

"""

GRID = """## Faults and endings, beside other libraries

{cells} answers, {faulty} of them faulty: each fault and each ending of [What arrives](faults.md) on every
wire that can carry it, whole and streamed, sent by a loopback provider over HTTP. Each program is the one
that its library's documentation shows. It has two functions as tools and **runs the calls it gets**. So a
call counts as *told* even if it fails only when it runs. [What arrives](faults.md) is stricter: a faulty call
counts against an adapter as soon as the adapter returns it like a good one. In sigadapt, no adapter runs
a tool; `calls.run(tools)` and `call.execute(tools)` do, when your program calls them.

| class | meaning |
| --- | --- |
| right | nothing was wrong, and the program got all of it |
| lenient | the answer was malformed, and the program got the right value anyway |
| told | an error that names the fault, in its message or in that of a cause |
| in a field | no error, but the result holds a finish reason, a refusal or an invalid call that says so |
| reason lost | an error that doesn't name the fault |
| good call lost | a good call, or a sound answer, didn't reach the program |
| silent | something wrong, missing or cut off passed as good |

{totals}
{limits}

### Where another library does better

The classes are in order, from best to worst, and leniency counts as better than an error. These are all
answers for which a library has a better class than sigadapt:

{better}
{why}

### Every answer

`w` is a whole answer and `s` a streamed one; answers with the same outcome share a line. A dot means that the
library couldn't run on this wire here. A wire without a row can't carry that fault.

{grid}
## What this doesn't show

- The faults are ours. A model's own mistakes come in other proportions; [the board](board.md) and [What
  public models write](answers.md) have those.
- A library is judged by one program. With other settings, such as pydantic-ai's own validators, the outcome
  may differ.
- "Told" is decided by a pattern for each fault, in `benchmarks/faulty.py`. It's generous: any word that
  hints at the fault will do.
- No library's prompt is measured here, and no model is asked.
- The text without a call is sent in the form that DSPy's adapter reads, `[[ ## answer ## ]]`. The text beside
  a call is plain. DSPy's adapter loses plain text in both places: [What arrives](faults.md).

To compare another version of a library, install it into `.venv` and run the recipe again. To add a library,
write a program of ten lines in `benchmarks/grid.py` and add it to `PROGRAMS`.
"""

EMPTY = """\
constraints.txt lacks langchain-anthropic and langchain-google-genai. pydantic-ai 2.31 can't use the
Anthropic SDK of constraints.txt, which takes clients of httpx2 only."""
WHY = """\
- **Lenient outcomes.** sigadapt refuses arguments that aren't a JSON object of the declared shape.
  `repair=True` and `unwrap=True` read most of them, and `altered` says so. An undeclared
  argument is refused too, because the model meant something by it.
- **A key twice** in a body whose provider sends a decoded object: a JSON library has dropped one value
  before any of these libraries can look. Where arguments are text, sigadapt reports `duplicate_key`."""


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Write a table; all columns but the first are numbers or words."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def measured() -> Verdicts:
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
    """Measure, and write the page."""
    logging.disable(logging.CRITICAL)
    head = HEAD.format(stamp=stamp(*LIBRARIES))
    runs = PEERS.search(PAGE.read_text(encoding="utf-8"))  # which benchmarks/peers writes
    section = f"\n{runs[0]}" if runs else ""
    PAGE.write_text(head + GRID.format(**grid(measured())) + section, encoding="utf-8")


if __name__ == "__main__":
    main()
