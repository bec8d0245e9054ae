"""What an adapter adds to a call, by the number of tools and of turns."""

from collections.abc import Iterator
from typing import Any

import dspy

import sigadapt
from benchmarks.measure import Table, medians, micro, times
from benchmarks.subjects import Floor, Free, Ours, Theirs, functions, held, predicting
from sigadapt import ToolCall, ToolCalls, ToolDecls, ToolResults

TOOLS = (1, 10, 100, 1000)
TURNS = (1, 10, 50, 100, 200)


class GoOn(dspy.Signature):
    """Answer with the tools."""

    question: str = dspy.InputField()
    history: dspy.History = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    tool_calls: ToolCalls = dspy.OutputField()


def tables(seconds: float) -> Iterator[Table]:
    """The comparisons, each row taken for so many seconds."""
    yield by_tools(seconds)
    yield as_given(seconds)
    yield by_turns(seconds)


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


def by_turns(seconds: float) -> Table:
    """A history of 1 to 200 turns, each with a call and its result."""
    rows: list[list[str]] = []
    adapter, decls = sigadapt.ChatAdapter(tool_calling="native"), ToolDecls(functions(1))
    lm = dspy.LM("openai/x", engine=Recording(), cache=False)
    for count in TURNS:
        messages = [turn(number) for number in range(count)]
        inputs = {"question": "q", "history": dspy.History(messages=messages), "tools": decls}
        adapter(lm, {}, GoOn, [], inputs)
        request = Recording.last
        (whole, alone) = medians(
            [
                lambda inputs=inputs: adapter(lm, {}, GoOn, [], inputs),
                lambda request=request: lm(request),
            ],
            seconds,
        )
        rows.append(
            [
                f"{count} turns" if count > 1 else "1 turn",
                micro((whole - alone) / count),
                micro(whole - alone),
                micro(alone),
            ]
        )
    told = (
        "Each turn of the history has a question, a call and its result, and every request sends them "
        "all. The cost of a turn doesn't grow with the number of turns."
    )
    head = ("", "sigadapt adds a turn", "sigadapt adds", "the language model alone, given the request")
    return Table("By the turns of a history", told, head, rows)


class Recording(Free):
    """The engine, keeping the last request."""

    last: Any = None

    def complete(self, request: Any) -> Any:
        """The same answer; the request is kept."""
        Recording.last = request
        return super().complete(request)


def turn(number: int) -> dict[str, Any]:
    """One turn of a history, as ReAct writes it."""
    call = ToolCall(id=f"call_{number}", name="tool_0", args={"city": "Paris", "days": number})
    calls = ToolCalls(tool_calls=[call])
    results = ToolResults.of(calls, [{"celsius": number}])
    return {"question": f"Question {number}?", "tool_calls": calls, "results": results}
