"""What is held in memory of a signature and of a declaration, and whether anything is left behind."""

import gc
from collections.abc import Iterator
from typing import Any

import dspy

import sigadapt
from benchmarks import wholecall
from benchmarks.measure import Table, resident
from benchmarks.provider import provider
from benchmarks.subjects import Floor, Ours, predicting, tool
from sigadapt import ToolDecls
from sigadapt.adapters import plan

HELD = 1_000
DISTINCT = 100_000
CALLS = 5_000


def tables(seconds: float) -> Iterator[Table]:
    """The measurements; with less than a second, of a hundredth of the things."""
    share = 1.0 if seconds >= 1 else 0.01
    yield held(int(HELD * share))
    yield left(int(DISTINCT * share))
    yield remembered(int(CALLS * share))


def settled() -> int:
    """The bytes held after a collection; twice, because a class may hold another."""
    gc.collect()
    gc.collect()
    return resident()


def kilobytes(count: int, number: int) -> str:
    """Bytes a thing."""
    return f"{count / number / 1024:,.1f} kB"


def held(count: int) -> Table:
    """What a live signature and a live declaration hold."""
    adapter, decls = sigadapt.ChatAdapter(tool_calling="native"), ToolDecls(tool(0))
    predicting(adapter, Ours, question="q", tools=decls)()
    start = settled()
    signatures = [distinct(number) for number in range(count)]
    made = settled()
    for signature in signatures:
        predicting(adapter, signature, question="q", tools=decls)()
    called = settled()
    declared = [ToolDecls(tool(number)) for number in range(count)]
    declarations = settled()
    theirs = [dspy.Tool(tool(number)) for number in range(count)]
    dspys = settled()
    rows = [
        ["a signature class of DSPy's, for comparison", kilobytes(made - start, count)],
        ["what sigadapt keeps of it after a call", kilobytes(called - made, count)],
        ["a declared function, with schema and validator", kilobytes(declarations - called, count)],
        ["a `dspy.Tool` of it, for comparison", kilobytes(dspys - declarations, count)],
    ]
    told = f"How much {count:,} of each grow the process. A cache is freed with the object it belongs to."
    del declared, theirs
    return Table("Memory held", told, ("", "each"), rows)


def distinct(number: int) -> Any:
    """A signature like no other."""
    return Ours.with_instructions(f"Answer with the tools, case {number}.")


def left(count: int) -> Table:
    """What is left after many signatures, each called once and dropped; and of DSPy alone."""
    ours, decls = sigadapt.ChatAdapter(tool_calling="native"), ToolDecls(tool(0))
    rows: list[list[str]] = []
    for name, adapter, number in (
        ("DSPy alone, a tenth of the signatures", Floor(decls.to_openai()), count // 10),
        ("sigadapt", ours, count),
    ):
        for each in range(1_000 if count >= DISTINCT else 10):  # until allocators and caches have their size
            predicting(adapter, distinct(each), question="q", tools=decls)()
        start = settled()
        for each in range(number):
            predicting(adapter, distinct(each), question="q", tools=decls)()
        grown = settled() - start
        known = len(plan._PLANS)  # noqa: SLF001
        rows.append(
            [name, f"{number:,}", f"{grown / 1024:,.0f} kB", f"{grown / number:,.1f} bytes", str(known)]
        )
    told = (
        "Signatures made, called once and dropped, one after another. DSPy's trace is off here; it would "
        "keep the last 10,000 predictions with their signatures."
    )
    head = ("", "signatures", "the process grew by", "each", "still known to sigadapt")
    return Table("Memory left behind", told, head, rows)


def remembered(count: int) -> Table:
    """What DSPy's trace and history keep of a call, which sigadapt does not change."""
    neither: dict[str, Any] = {"trace": None, "disable_history": True}
    ways = {"the trace": {**neither, "trace": []}, "the history": {**neither, "disable_history": False}}
    rows: list[list[str]] = []
    with provider(wholecall.answer) as options:
        for name, settings in {**ways, "neither": neither}.items():
            lm, predict = dspy.LM(**options["openai"]), dspy.Predict(wholecall.Ours)
            with dspy.context(lm=lm, adapter=sigadapt.ChatAdapter(), **settings):
                start = 0
                for each in range(count + 20):
                    if each == 20:  # until allocators and caches have their size
                        start = settled()
                    predict(question=f"{each:05}{'x' * 1_000}", tools=[wholecall.get_weather])
                rows.append([name, kilobytes(settled() - start, count)])
    told = f"DSPy keeps the last 10,000 calls in each. Here: {count:,} calls, with 1,000-character questions."
    return Table("What DSPy keeps of a call", told, ("", "a call"), rows)
