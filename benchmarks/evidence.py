"""Write docs/evidence.md: recorded traffic, attacks, costs, and a grid of faults beside other libraries.

The recorded answers need the recordings (`SIGADAPT_CORPUS`), and the exchanges and attacks the independent
checks too (`SIGADAPT_CHECKS`). Without them these sections stay as they are. The grid (`benchmarks/grid.py`)
needs neither.
"""

import gzip
import json
import logging
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from benchmarks import answers
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

`python3 tasks.py evidence` writes this page in two minutes. It has three parts: recorded traffic of
real providers, attacks, and a grid of faulty answers. The grid compares sigadapt with DSPy's own adapter,
pydantic-ai and LangChain, and you can run it yourself. The recorded answers need
[the recordings](corpus.md), which you can build. The exchanges and the attacks need independent checks
too, which are not in this repository. Without them, the recipe leaves these sections as they are.
`python3 tasks.py peers` writes the last two sections: whole runs and six jobs, beside DSPy, pydantic-ai,
LangChain and the OpenAI Agents SDK.

The grid runs the libraries beside LiteLLM, which pins the OpenAI SDK below 3, so it has the versions named
above, from constraints.txt. Whole runs and [the board](board.md) run them in another environment, with the
newer versions of `benchmarks/peers/versions.txt`.
"""

ANSWERS = """
## Recorded answers

sigadapt was developed on the recordings of this section and the next, so neither is a blind test.

{answers:,} answers of {models} models to the Berkeley Function-Calling Leaderboard, all of them text.
*Theirs* counts the right calls and correct abstentions by the leaderboard's decoder for that model, *here*
those that sigadapt reads, without a setting. [What public models write](answers.md) explains the
differences.

{by_model}
{unread}

Where theirs is ahead: calls of {fewer_calls}; abstentions of {fewer_silences}. An answer that a decoder
can't read counts as an abstention.
"""

EXCHANGES = """
## Recorded exchanges

Answers of real providers, whole and streamed, from the recordings of pydantic-ai's tests (MIT). Each call, id
and text must come out exactly as recorded. The check that compares them is not in this repository;
[the board](board.md) reads the same answers with a command that you can run.

{exchanges}
Requests of real clients, read back with `conversation_from_request`. *Sent again* means that sigadapt
writes the same request on the same wire. *Moved* means that another provider's wire takes the conversation
with all calls, results and tools. Both are measured on a sample. These checks are not in this repository
either.

{requests}"""

ATTACKS = """
## Attacks

Each check tries what an attacker, a stale approval or a hostile tool would try. The checks are kept apart
from sigadapt's own tests, and are not in this repository: this table cannot be repeated outside.

{attacks}"""

COST = """
## Cost

[Batches, measured](scale_measured.md) has these, and [Benchmarks](benchmarks.md) has the time of a single
call beside other libraries.

{costs}

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

- The faults are ours. A model's own mistakes come in other proportions; the recorded answers above have
  those.
- A library is judged by one program. With other settings, such as pydantic-ai's own validators, the outcome
  may differ.
- "Told" is decided by a pattern for each fault, in `benchmarks/faulty.py`. It's generous: any word that
  hints at the fault will do.
- No library's prompt is measured here, and no model is asked.
- The text without a call is sent in the form that DSPy's adapter reads, `[[ ## answer ## ]]`. The text beside
  a call is plain. DSPy's adapter loses plain text in both places: [What arrives](faults.md).

## Run it

```sh
python3 tasks.py evidence           # this page
python3 tasks.py answers            # what public models write
python3 tasks.py bench              # the time of a call
```

To compare another version of a library, install it into `.venv` and run the recipe again. To add a library,
write a program of ten lines in `benchmarks/grid.py` and add it to `PROGRAMS`.
"""

LEFT_OUT = (
    "They need the recordings (`python3 tasks.py corpus` builds them, SIGADAPT_CORPUS names their folder), "
    "and all but the first need independent checks, which are not in this repository (SIGADAPT_CHECKS)."
)
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


def check(script: str, *arguments: str) -> list[str]:
    """Run one of the independent checks and return the lines that it prints."""
    command = [sys.executable, str(Path(os.environ["SIGADAPT_CHECKS"], f"{script}.py")), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()


def groups(lines: list[str]) -> list[tuple[str, str, str]]:
    """Return the groups of a check: how many hold, of how many, and the group's name."""
    found = (re.fullmatch(r" *(\d+) of (\d+) +(.+)", line) for line in lines)
    return [(m[1], m[2], m[3].strip()) for m in found if m and m[3] != "hold"]


def recorded_answers(corpus: Path) -> str:
    """Write the section of what public models answered."""
    tallies, _, _ = answers.measure(corpus / "answers")
    by_model = [(t.model, t.their_calls, t.calls, t.their_silences, t.silences) for t in tallies]
    by_model.append(("**all**", *(sum(column) for column in zip(*(t[1:] for t in tallies), strict=True))))
    return ANSWERS.format(
        answers=1_240 * len(tallies),
        models=len(tallies),
        by_model=table(("model", "calls, theirs", "here", "abstentions, theirs", "here"), by_model),
        unread=answers.unread(tallies),
        fewer_calls=", ".join(t.model for t in tallies if t.calls < t.their_calls) or "no model",
        fewer_silences=", ".join(t.model for t in tallies if t.silences < t.their_silences) or "no model",
    )


def recorded_exchanges(corpus: Path) -> str:
    """Write the section of recorded exchanges."""
    wire, logs = groups(check("wire")), check("logs", "--table")
    models = {path.name.split(".")[0]: models_of(path) for path in sorted((corpus / "logs").glob("*.gz"))}
    requests: list[list[object]] = []
    for line in logs:
        if "requests" in line and "read" in line:
            name = line.split()[0]
            share = dict(re.findall(r"(requests|read|round|moved) +(\d+(?: of \d+)?)", line))
            requests.append([name, models[name], *(share.get(k, "-") for k in ("read", "round", "moved"))])
    return EXCHANGES.format(
        exchanges=table(
            ("wire", "read exactly"),
            [*((name, f"{good} of {of}") for good, of, name in wire), ("**all**", total(wire))],
        ),
        requests=table(("wire", "models", "read", "sent again", "moved"), requests),
    )


def attacks() -> str:
    """Write the section of attacks."""
    held = {name: groups(check(name)) for name in ("secure", "trust", "turns", "talk")}
    words = {
        "secure": "forged signatures, drifted pins, stale approvals, results posing as blocks, recordings",
        "trust": "swapped results, stale schemas, lost blocks, unbounded checks",
        "turns": "a conversation goes back whole, on each wire",
        "talk": "stable prefixes, orphans, cuts that keep pairs",
    }
    return ATTACKS.format(
        attacks=table(("what is tried", "held"), [(words[name], total(held[name])) for name in held])
    )


def sections() -> list[str]:
    """Measure the sections of recordings and attacks; those that cannot be measured here stay as they are."""
    corpus = Path(os.environ.get("SIGADAPT_CORPUS", ""))
    has_corpus = bool(os.environ.get("SIGADAPT_CORPUS"))
    has_checks = bool(os.environ.get("SIGADAPT_CHECKS"))
    measures: dict[str, tuple[bool, Callable[[], str]]] = {
        "Recorded answers": (has_corpus, lambda: recorded_answers(corpus)),
        "Recorded exchanges": (has_corpus and has_checks, lambda: recorded_exchanges(corpus)),
        "Attacks": (has_checks, attacks),
    }
    page = PAGE.read_text(encoding="utf-8")
    kept = [title for title, (is_possible, _) in measures.items() if not is_possible]
    if kept:
        print(f"evidence: left as they are: {', '.join(kept)}. {LEFT_OUT}")
    return [section(page, title) if title in kept else measure() for title, (_, measure) in measures.items()]


def section(page: str, title: str) -> str:
    """Return a section of the page as it stands."""
    text = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return f"\n## {title}\n{text}"


def total(found: list[tuple[str, str, str]]) -> str:
    """Sum the groups of a check, and name those that aren't whole."""
    short = [name for good, of, name in found if good != of]
    counts = f"{sum(int(good) for good, _, _ in found):,} of {sum(int(of) for _, of, _ in found):,}"
    return f"{counts}; short: {', '.join(short)}" if short else counts


def models_of(path: Path) -> int | str:
    """Count the models of a file of recorded requests."""
    names = {json.loads(line)["model"] for line in gzip.decompress(path.read_bytes()).splitlines()}
    return len(names - {None, ""}) or "not recorded"


def costs() -> str:
    """Quote the first table of docs/scale_measured.md."""
    page = (ROOT / "docs" / "scale_measured.md").read_text(encoding="utf-8")
    section = page.partition("## Rows per second")[2].partition("\n## ")[0]
    return "\n".join(re.findall(r"^\|.+$", section, re.MULTILINE))


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
    head = HEAD.format(stamp=stamp(*LIBRARIES)) + "".join(sections()) + COST.format(costs=costs())
    runs = PEERS.search(PAGE.read_text(encoding="utf-8"))  # `tasks.py peers` writes this section
    section = f"\n{runs[0]}" if runs else ""
    PAGE.write_text(head + GRID.format(**grid(measured())) + section, encoding="utf-8")


if __name__ == "__main__":
    main()
