"""The section of docs/measured.md about whole runs beside other libraries."""

from collections import Counter

from benchmarks.peers.cases import Case
from benchmarks.peers.checks import CLASSES

HEAD = """## Whole runs beside other libraries

{stamp} The others: {peers}.

`python3 tasks.py evidence peers` writes this section. {count} scripted runs: every library asks the same
loopback provider over HTTP, each with the programs of its own documentation. Code in
`benchmarks/peers/cases.py` decides each class from what ran, what was sent and what came back.

| class | meaning |
| --- | --- |
| right | what the user wants happened |
| told | an error or a field of the result says what went wrong, and nothing is lost |
| lost | work or results are gone, or the run hangs |
| silent | something wrong passes as right |
| cannot | the library documents no such feature, or has no client for the wire |

{sums}
Where another library has a better class than sigadapt:

{worse}
{why}"""

WHY = {
    "cut answers: ": """\
- DSPy's adapter can't parse cut, filtered and refused answers, and asks again; the script's next answer
  is good. sigadapt raises an error that names the reason, and `agent(history=...)` resumes the run.
""",
    "approvals: what was saved is decided twice": """\
- What `InputNeeded` saves is a value, so a program that loads it twice runs the call twice. Delete what
  you saved when you resume it. LangChain keeps the state in its checkpointer.
""",
}
"""Why another library is better, by the beginning of the runs' names."""


def table(rows: list[list[str]]) -> str:
    """Write rows as a table."""
    head, *rest = rows
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rest])


def section(found: dict[str, list[tuple[str, str]]], chosen: list[Case], stamp: str, peers: str) -> str:
    """Return the section."""
    names = list(found)
    sums = [["", *CLASSES, "right or told"]]
    for name in names:
        counts = Counter(verdict for verdict, _ in found[name])
        both = counts["right"] + counts["told"]
        possible = len(chosen) - counts["cannot"]
        sums.append([name, *(str(counts[kind]) for kind in CLASSES), f"{both} of {possible}"])
    worse = [["run", "sigadapt", "better"]]
    for place, case in enumerate(chosen):
        verdicts = {name: found[name][place][0] for name in names}
        rank = CLASSES.index(verdicts["sigadapt"])
        better = [name for name in names if CLASSES.index(verdicts[name]) < rank]
        if better:
            cell = ", ".join(f"{name} ({verdicts[name]})" for name in better)
            worse.append([f"{case.group}: {case.name}", verdicts["sigadapt"], cell])
    listed = table(worse) if len(worse) > 1 else "None.\n"
    names_of_worse = [row[0] for row in worse[1:]]
    reasons = [text for start, text in WHY.items() if any(name.startswith(start) for name in names_of_worse)]
    return HEAD.format(
        count=len(chosen), stamp=stamp, peers=peers, sums=table(sums), worse=listed, why="".join(reasons)
    )
