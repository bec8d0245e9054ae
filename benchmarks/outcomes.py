"""Write how runs of `dspy.ReActV2` end under sigadapt's adapter and under DSPy's.

Every run is made: a loopback provider plays each conversation to the real `dspy.LM`, in the format of each
provider, over both engines, called, awaited and streamed. `python3 tasks.py evidence outcomes` writes the
sums into docs/measured.md, and prints each run. `tests/runs/test_react_outcomes.py` makes the same runs.
"""

import asyncio
import gc
import json
import logging
import os
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import dspy

import sigadapt
from benchmarks import measured
from benchmarks.tree import stamp
from sigadapt.testing import Answer, Call, LoopbackProvider

COLUMNS = [
    *(
        (wire, engine)
        for wire in ("openai", "responses", "anthropic", "gemini")
        for engine in ("auto", "litellm")
    ),
    ("ollama", "litellm"),
]
ENGINES = {"auto": "native", "litellm": "LiteLLM"}
WAYS = ("called", "awaited", "streamed")
CARRY_TEXT = (
    "openai",
    "responses",
)  # the others carry arguments as objects, so these faults cannot happen there
ENDS = {2: "answer", 1: "guess", 0: "error"}


def add(a: int, b: int, note: str | None = None) -> int:
    """Add."""
    return a + b


def now() -> str:
    """The time."""
    return "noon"


def fail() -> str:
    """Fail."""
    raise RuntimeError("backend down")


def made(*calls: Call, **answer: Any) -> Answer:
    """Return an answer with these calls."""
    return Answer(calls=calls, **answer)


GOOD = made(Call("add", {"a": 1, "b": 2}))
SUBMIT = made(Call("submit", {"answer": "3"}))
GUESS = made(Call("submit", {"answer": "(a guess)"}))


class Conversation(NamedTuple):
    """What the model says, turn after turn, and the code of the fault in it; None if there is no fault."""

    script: list[Answer]
    code: str | None = None


def mended(*calls: Call, code: str | None, **answer: Any) -> Conversation:
    """Return a conversation that begins with these calls, and goes on as it should."""
    return Conversation([made(*calls, **answer), GOOD, SUBMIT], code)


WRONG = Call("add", {"a": "one", "b": 2})
THINKING = "thinking that used up the answer, later"
"""The one conversation that DSPy's adapter ends better: it asks again, where sigadapt raises `cut_off`."""
OBJECTS: dict[str, Conversation] = {
    "no fault": Conversation([GOOD, SUBMIT]),
    "no fault, text beside the call": Conversation([made(*GOOD.calls, text="I add."), SUBMIT]),
    "two good calls at once": Conversation([made(Call("now"), *GOOD.calls), SUBMIT]),
    "a whole number with a point": Conversation([made(Call("add", {"a": 1.0, "b": 2})), SUBMIT]),
    "a tool that fails": mended(Call("fail"), code=None),
    "a good call and the answer at once": Conversation([made(*GOOD.calls, *SUBMIT.calls)]),
    "a wrong type": mended(WRONG, code="schema_mismatch"),
    "an argument missing": mended(Call("add", {"a": 1}), code="schema_mismatch"),
    "an argument too many": mended(Call("add", {"a": 1, "b": 2, "c": 3}), code="schema_mismatch"),
    "null for a number": mended(Call("add", {"a": None, "b": 2}), code="schema_mismatch"),
    "a wrong type for an optional text": mended(
        Call("add", {"a": 1, "b": 2, "note": 5}), code="schema_mismatch"
    ),
    "text beside a bad call": mended(WRONG, text="I add.", code="schema_mismatch"),
    "a good call and a bad one": mended(Call("now"), WRONG, code="schema_mismatch"),
    "two bad calls at once": mended(WRONG, Call("sum"), code="schema_mismatch"),
    "a bad call and the answer at once": Conversation([made(WRONG, *SUBMIT.calls)], "schema_mismatch"),
    "bad three times": Conversation(
        [made(Call("add", {"a": "one"})), made(Call("add", {"b": "two"})), made(Call("sum")), GOOD, SUBMIT],
        "schema_mismatch",
    ),
    "bad until the end": Conversation([made(WRONG)], "schema_mismatch"),
    "the answer under another name": Conversation(
        [GOOD, made(Call("submit", {"reply": "3"})), SUBMIT], "schema_mismatch"
    ),
    "an answer of another type": Conversation(
        [GOOD, made(Call("submit", {"answer": 3})), SUBMIT], "schema_mismatch"
    ),
    "an unknown tool": mended(Call("sum", {"a": 1}), code="unknown_tool"),
    "an unknown tool beside a good call": mended(Call("now"), Call("rm_rf"), code="unknown_tool"),
    "a call without a name": mended(Call("", {"a": 1, "b": 2}), code="missing_name"),
    "a call without a name beside a good one": mended(Call("now"), Call(""), code="missing_name"),
    "text and no call": Conversation([Answer(text="Let me think."), SUBMIT], "missing_tool_calls"),
    "nothing at all": Conversation([Answer(text=""), SUBMIT], "missing_tool_calls"),
    "text and no call, later": Conversation([GOOD, Answer(text="It is 3."), SUBMIT], "missing_tool_calls"),
    THINKING: Conversation([GOOD, Answer(text=None, finish="length"), SUBMIT]),
}
TEXTS: dict[str, Conversation] = {
    "not JSON": mended(Call("add", "{oops"), code="invalid_json"),
    "not JSON, for a tool without arguments": mended(Call("now", "{oops"), code="invalid_json"),
    "Python in place of JSON": mended(Call("add", "{'a': 1, 'b': 2}"), code="invalid_json"),
    "not JSON beside a good call": mended(Call("now"), Call("add", "{oops"), code="invalid_json"),
    "an answer that is not JSON": Conversation(
        [GOOD, made(Call("submit", '{"answer": "3')), SUBMIT], "invalid_json"
    ),
    "cut off": mended(Call("add", '{"a": 1, "b'), finish="length", code="truncated"),
    "cut off after a good call": mended(
        Call("now"), Call("add", '{"a": 1, "b'), finish="length", code="truncated"
    ),
    "a list": mended(Call("add", "[1, 2]"), code="not_an_object"),
    "null in place of arguments": mended(Call("add", "null"), code="not_an_object"),
    "a text in place of arguments": mended(Call("add", '"a"'), code="not_an_object"),
    "a key twice": mended(Call("add", '{"a": 1, "a": 2, "b": 3}'), code="duplicate_key"),
}
CONVERSATIONS = {**OBJECTS, **TEXTS}


class Outcome(NamedTuple):
    """How a run ended: 2 for the answer, 1 for a guess, 0 for an error; and how many requests it took."""

    rank: int
    requests: int
    said: str

    def cell(self) -> str:
        """Write the outcome in short."""
        return f"{ENDS[self.rank]} {self.requests}"


class Pair(NamedTuple):
    """The outcomes of one conversation under both adapters."""

    ours: Outcome
    theirs: Outcome

    @property
    def is_worse(self) -> bool:
        """Whether ours ends worse, or as well with more than one request more."""
        if self.ours.rank != self.theirs.rank:
            return self.ours.rank < self.theirs.rank
        return self.ours.requests > self.theirs.requests + 1

    def cell(self) -> str:
        """Write both outcomes, or one if they are the same."""
        ours, theirs = self.ours.cell(), self.theirs.cell()
        return ours if ours == theirs else f"**{ours}**, {theirs}"


def run(adapter: Any, column: tuple[str, str], script: list[Answer], way: str) -> Outcome:
    """Play a conversation to an agent; a forced submit is answered with a guess."""

    def reply(received: Any) -> Answer:
        choice = received.body.get("tool_choice") or received.body.get("toolConfig") or "auto"
        forced = "submit" in json.dumps(choice)
        return GUESS if forced else script[min(len(provider.received), len(script)) - 1]

    wire, engine = column
    with LoopbackProvider(reply) as provider:
        lm = dspy.LM(**provider.lm_options(wire, engine=engine))
        with dspy.context(lm=lm, adapter=adapter):
            agent: Any = cast("Any", dspy.ReActV2)("question -> answer", tools=[add, now, fail], max_iters=7)
            try:
                out = agent(question="1+2") if way == "called" else asyncio.run(_later(agent, way))
            except Exception as error:  # noqa: BLE001  (an agent that gives up is an outcome)
                return Outcome(0, len(provider.received), repr(error))
        return Outcome(2 if out.answer == "3" else 1, len(provider.received), str(out))


async def _later(agent: Any, way: str) -> Any:
    if way == "awaited":
        return await agent.acall(question="1+2")
    items = [item async for item in cast("Any", dspy.streamify(agent))(question="1+2")]
    return items[-1]


def outcomes(column: tuple[str, str], way: str) -> dict[str, Pair]:
    """Return the outcomes of every conversation that the wire can carry, under both adapters."""
    carried = CONVERSATIONS if column[0] in CARRY_TEXT else OBJECTS
    pairs: dict[str, Pair] = {}
    for name, (script, _) in carried.items():
        with _streams_closed():
            ours = run(sigadapt.ChatAdapter(tool_calling="native"), column, script, way)
        with _streams_closed():
            theirs = run(dspy.ChatAdapter(use_native_function_calling=True), column, script, way)
        pairs[name] = Pair(ours, theirs)
    return pairs


@contextmanager
def _streams_closed() -> Generator[None]:
    """Collect the streams that LiteLLM leaves open after a run, because collecting them amid one may hang."""
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()
        gc.unfreeze()


def column_name(column: tuple[str, str]) -> str:
    """Write a wire and an engine as the page's head does."""
    return f"{column[0]}, {ENGINES[column[1]]}"


def details(way: str, table: Mapping[tuple[str, str], Mapping[str, Pair]]) -> Iterator[str]:
    """Yield the lines of one way's table, one row for each conversation."""
    yield f"\n## {way.capitalize()}\n"
    yield "| conversation | code | " + " | ".join(map(column_name, COLUMNS)) + " |"
    yield "|" + " --- |" * (2 + len(COLUMNS))
    for name, (_, code) in CONVERSATIONS.items():
        cells = [table[column][name].cell() if name in table[column] else "" for column in COLUMNS]
        yield f"| {name} | {f'`{code}`' if code else ''} | " + " | ".join(cells) + " |"


def sums(pairs: list[Pair]) -> Iterator[str]:
    """Yield the lines of the table of sums, one row for each adapter."""
    yield "| adapter | ends with the answer | ends with a guess | ends with an error | requests |"
    yield "|" + " --- |" * (2 + len(ENDS))
    for name, outcomes in (("sigadapt", [p.ours for p in pairs]), ("DSPy's", [p.theirs for p in pairs])):
        counts = Counter(outcome.rank for outcome in outcomes)
        cells = [f"{counts[rank]:,}" for rank in ENDS]
        yield f"| {name} | " + " | ".join([*cells, f"{sum(o.requests for o in outcomes):,}"]) + " |"


def section(pairs: list[Pair]) -> str:
    """Return the section of the page."""
    worse = sum(pair.is_worse for pair in pairs)
    better = sum(pair.ours.rank > pair.theirs.rank for pair in pairs)
    head = INTRODUCTION.format(
        stamp=stamp("dspy", "litellm"), conversations=len(CONVERSATIONS), runs=f"{len(pairs):,}",
        worse=worse, better=better, thinking=THINKING,
    )  # fmt: skip
    return "\n".join([head, *sums(pairs)])


INTRODUCTION = """\
## How runs of an agent end

{stamp}

`python3 tasks.py evidence outcomes` writes this section. A loopback provider plays {conversations}
conversations to `dspy.ReActV2`, in five providers' formats, through both of DSPy's engines, called,
awaited and streamed. Most have a fault, which the scripted model corrects when it reads the error. A run
ends with the answer, with a guess (the agent forced a `submit`), or with an error. Of {runs} runs,
{worse} end worse than under DSPy's adapter with native function calling, and {better} end better.

All {worse} are of *{thinking}*: the second answer is empty, and its finish reason is `length`. DSPy's
adapter asks again with the same `max_tokens`, and the scripted model then answers. sigadapt raises
`cut_off`. Raise `max_tokens`, and resume with `agent(history=sigadapt.run_of(error).history)`.
"""


def main() -> None:
    """Make the runs, write the section, and print each run."""
    logging.disable(logging.ERROR)  # DSPy says what it gives up
    tables = {way: {column: outcomes(column, way) for column in COLUMNS} for way in WAYS}
    pairs = [pair for table in tables.values() for column in table.values() for pair in column.values()]
    measured.write("outcomes", section(pairs))
    print("\n".join(line for way in WAYS for line in details(way, tables[way])))


if __name__ == "__main__":
    main()
