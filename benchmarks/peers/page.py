"""The section of docs/evidence.md about whole runs beside other libraries."""

from collections import Counter

from benchmarks.peers.cases import Case
from benchmarks.peers.checks import CLASSES

HEAD = """<!-- peers -->
## Whole runs, beside other libraries

{count} scripted runs. Every library asks the same loopback provider over HTTP, each in its own process:
`sigadapt.ReAct`, `dspy.ReActV2` under DSPy's own `ChatAdapter`, pydantic-ai's `Agent`, LangChain's
`create_agent` and the Agents SDK's `Runner`. The programs are those of each library's documentation. Code
in `benchmarks/peers/cases.py` decides each class from what ran, what was sent and what came back. A run
that isn't over after 20 seconds is lost.

`python3 tasks.py evidence peers` writes this section. The peers get their own environment with the versions
of `benchmarks/peers/versions.txt`.

- sigadapt and DSPy: {ours}.
- The others: {peers}.

| class | meaning |
| --- | --- |
| right | what the user wants happened |
| told | an error or a field of the result says what went wrong, and nothing is lost |
| lost | work or results are gone, or the run hangs |
| silent | something wrong passes as right |
| cannot | the library documents no such feature, or has no client for the wire |

{sums}
### Where sigadapt isn't best

All runs in which another library has a better class:

{worse}
{why}
### Every run

{every}
<!-- /peers -->
"""

WHY = {
    "cut answers: ": """\
- **Cut, filtered and refused answers.** DSPy's adapter can't parse them, asks again in JSON mode, and the
  script's next answer is good. DSPy never says that the first one was filtered, refused or cut off, and
  the second request is paid for. sigadapt raises an error that names the reason, and `agent(history=...)`
  resumes the run.
""",
    "approvals: what was saved is decided twice": """\
- **A saved run that is decided twice.** What `InputNeeded` saves is a value, so a program that loads
  it twice runs the call twice. The same holds for pydantic-ai's messages and the Agents SDK's `RunState`.
  LangChain keeps the state in its checkpointer, where the first decision ends the interrupt. Delete what you
  saved when you resume it.
""",
}
"""Why another library is better, by the beginning of the runs' names."""


def table(rows: list[list[str]]) -> str:
    """Write rows as a table."""
    head, *rest = rows
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rest])


def write(found: dict[str, list[tuple[str, str]]], chosen: list[Case], ours: str, peers: str) -> str:
    """Write the section."""
    names = list(found)
    sums = [["", *CLASSES, "right or told"]]
    for name in names:
        counts = Counter(verdict for verdict, _ in found[name])
        both = counts["right"] + counts["told"]
        possible = len(chosen) - counts["cannot"]
        sums.append([name, *(str(counts[kind]) for kind in CLASSES), f"{both} of {possible}"])
    worse = [["run", "sigadapt", "better"]]
    every = [["run", "right is", *names]]
    for place, case in enumerate(chosen):
        verdicts = {name: found[name][place][0] for name in names}
        every.append([f"{case.group}: {case.name}", case.right, *verdicts.values()])
        rank = CLASSES.index(verdicts["sigadapt"])
        better = [name for name in names if CLASSES.index(verdicts[name]) < rank]
        if better:
            cell = ", ".join(f"{name} ({verdicts[name]})" for name in better)
            worse.append([f"{case.group}: {case.name}", verdicts["sigadapt"], cell])
    listed = table(worse) if len(worse) > 1 else "None.\n"
    names_of_worse = [row[0] for row in worse[1:]]
    reasons = [text for start, text in WHY.items() if any(name.startswith(start) for name in names_of_worse)]
    return HEAD.format(
        count=len(chosen),
        ours=ours,
        peers=peers,
        sums=table(sums),
        worse=listed,
        why="".join(reasons),
        every=table(every),
    )
