"""What an adapter adds to a call, by the number of tools and by their form."""

from collections.abc import Iterator

import dspy

import sigadapt
from benchmarks.measure import Table, medians, micro, times
from benchmarks.subjects import Floor, Ours, Theirs, functions, held, predicting
from sigadapt import ToolDecls

TOOLS = (1, 10, 100, 1000)


def tables(seconds: float) -> Iterator[Table]:
    """The comparisons, each row taken for so many seconds."""
    yield by_tools(seconds)
    yield as_given(seconds)


def by_tools(seconds: float) -> Table:
    """Calls alone, with 1 to 1,000 tools."""
    rows = [row(count, seconds) for count in TOOLS]
    told = (
        "A call of `dspy.Predict` on an engine that answers at once. The floor is an adapter that only "
        "passes on a request made in advance, and it's subtracted. A ratio of 0.20 means that sigadapt "
        "adds a fifth of what `dspy.ChatAdapter` adds with native function calling."
    )
    return Table("What the adapter adds to a call", told, _HEAD, rows)


def as_given(seconds: float) -> Table:
    """The same tools, given in other forms than a ToolDecls made once."""
    rows: list[list[str]] = []
    native = sigadapt.ChatAdapter(tool_calling="native")
    for count in (1, 10, 100):
        declared = held(count)
        made, dspys = ToolDecls(declared), [dspy.Tool(function) for function in declared]
        forms = [made, declared, made.to_openai(), dspys, functions(count)]
        theirs_own = dspy.ChatAdapter(use_native_function_calling=True)
        floor, *taken, theirs = medians(
            [
                predicting(Floor(made.to_openai()), Ours, question="q", tools=made),
                *(predicting(native, Ours, question="q", tools=form) for form in forms),
                predicting(theirs_own, Theirs, question="q", tools=dspys),
            ],
            seconds,
        )
        ratios = [times((each - floor) / (theirs - floor)) for each in taken]
        rows.append([named(count), *ratios, micro(theirs - floor)])
    told = (
        "What sigadapt adds, over what DSPy's adapter adds, for each form you can pass tools in. It "
        "recognizes an unchanged function and doesn't read it again. It reads dicts and `dspy.Tool`s on "
        "every call, so if you have many of them, make one `ToolDecls` and pass that."
    )
    head = ("", "a ToolDecls", "functions", "dicts", "`dspy.Tool`s", "made functions", "DSPy adds")
    return Table("By the form in which tools are given", told, head, rows)


_HEAD = ("", "ratio to DSPy's", "sigadapt adds", "DSPy adds", "the floor")


def named(count: int) -> str:
    """So many tools."""
    return f"{count:,} tools" if count > 1 else "1 tool"


def row(count: int, seconds: float) -> list[str]:
    """One row: floor, sigadapt and DSPy taken in turn."""
    declared = functions(count)
    mine, other = ToolDecls(declared), [dspy.Tool(function) for function in declared]
    native = sigadapt.ChatAdapter(tool_calling="native")
    dspys = dspy.ChatAdapter(use_native_function_calling=True)
    floor, sigadapts, dspys_own = medians(
        [
            predicting(Floor(mine.to_openai()), Ours, question="q", tools=mine),
            predicting(native, Ours, question="q", tools=mine),
            predicting(dspys, Theirs, question="q", tools=other),
        ],
        seconds,
    )
    added, theirs_added = sigadapts - floor, dspys_own - floor
    return [named(count), times(added / theirs_added), micro(added), micro(theirs_added), micro(floor)]
