"""The section of docs/evidence.md about whole runs beside other libraries."""

from collections import Counter

from benchmarks.peers.cases import CLASSES, Case

HEAD = """<!-- peers -->
## Whole runs, beside other libraries

{count} scripted runs. Every library asks the same loopback provider over HTTP, each in a process of its own:
`sigadapt.ReAct`, `dspy.ReActV2` under DSPy's own `ChatAdapter`, pydantic-ai's `Agent`, LangChain's
`create_agent` and the Agents SDK's `Runner`. The programs are those of each library's documentation. Code
in `benchmarks/peers/cases.py` decides each class from what ran, what was sent and what came back.

sigadapt and DSPy: {ours}. The others: {peers}.

| class | meaning |
| --- | --- |
| right | what the user wants happened |
| told | an error or a field of the result says what went wrong, and nothing is lost |
| lost | work or results are gone, or the run hangs |
| silent | something wrong passes as right |
| cannot | the library has no such feature, or no provider for the wire |

{sums}
### Where sigadapt isn't best

{worse}
### Every run

{every}
<!-- /peers -->
"""


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
    listed = table(worse) if len(worse) > 1 else "Nowhere.\n"
    return HEAD.format(
        count=len(chosen), ours=ours, peers=peers, sums=table(sums), worse=listed, every=table(every)
    )
