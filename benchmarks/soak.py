"""100,000 calls over HTTP, on threads and as tasks, a tenth answered faultily; every answer accounted for.

    python -m benchmarks.soak [--calls 100000] [--minutes 20]

Each question says which answer the provider is to give, so that both sides know what has to come out: the
call with the question's own number, the code of a bad call and its text as it was sent, or the error.
Anything else is a mismatch, which is printed, and ends the soak with status 1, as a call without an outcome
does.
"""

import argparse
import asyncio
import gc
import logging
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import dspy
import orjson
from dspy.utils.exceptions import LMError

import sigadapt
from benchmarks.measure import Table, resident
from benchmarks.provider import provider
from benchmarks.tree import stamp
from sigadapt import ToolCallParseError, ToolCalls, ToolDecls
from sigadapt.errors import MissingToolCalls
from sigadapt.testing import Answer, Call, Failure, Received, Reply

PAGE = Path(__file__).resolve().parent.parent / "docs" / "soak.md"
SEED = 20261120
THREADS = 32
TASKS = 64
EACH = 1_000  # calls of one batch, half on threads, half as tasks
LITELLM = "openai over LiteLLM"
WIRES = {"openai": 30, "responses": 20, "anthropic": 25, "gemini": 22, LITELLM: 3}  # and their weights
TEXT_WIRES = ("openai", "responses", LITELLM)  # the others carry objects, in which some faults have no form
FAULTS = {
    "invalid_json": lambda n: f"n: {n}",
    "truncated": lambda n: f'{{"number": {n}, "note": "and th',
    "not_an_object": lambda n: f"[{n}]",
    "duplicate_key": lambda n: f'{{"number": {n}, "number": 0}}',
    "schema_mismatch": lambda n: {"number": f"number {n}"},
    "unknown_tool": lambda n: {"number": n},
    "missing_tool_calls": None,
    "http_error": None,
    "no_body": None,
}
AS_OBJECT = ("schema_mismatch", "unknown_tool", "missing_tool_calls", "http_error", "no_body")


def record(number: int, note: str = "") -> str:
    """Keep a number."""
    return f"{number}{note}"


class Ask(dspy.Signature):
    """Record the number."""

    question: str = dspy.InputField()
    tools: ToolDecls = dspy.InputField()
    calls: ToolCalls = dspy.OutputField()


class Case(NamedTuple):
    """One call to make: its number, the fault to answer with, the wire, and what becomes of a bad call."""

    number: int
    fault: str | None
    wire: str
    on_invalid: str

    @property
    def question(self) -> str:
        """What is asked, by which the provider knows what to answer."""
        return f"{self.number} {self.fault or 'good'}"


def cases(count: int) -> Iterator[Case]:
    """The calls, the same each time; one in ten is answered faultily."""
    choose = random.Random(SEED)  # noqa: S311  (no secret)
    for number in range(count):
        (wire,) = choose.choices(list(WIRES), list(WIRES.values()))
        fault = None
        if number % 10 == 0:
            fault = choose.choice(list(FAULTS) if wire in TEXT_WIRES else AS_OBJECT)
        yield Case(number, fault, wire, choose.choice(("raise", "keep", "reask")))


def answer(received: Received) -> Reply:
    """What the provider says to a question; after a reask, what was asked for."""
    number, fault = question_in(received.body)
    good = Answer(calls=[Call("record", {"number": number})])
    if fault == "good" or is_reask(received):
        return good
    if fault == "http_error":
        return Failure(503, f"overloaded {number}")
    if fault == "no_body":
        return b"<html>bad gateway</html>"
    if fault == "missing_tool_calls":
        return Answer(text=f"No call for {number}.")
    name = "recall" if fault == "unknown_tool" else "record"
    finish = "length" if fault == "truncated" else None
    return Answer(calls=[Call(name, FAULTS[fault](number))], finish=finish)


def question_in(body: Any) -> tuple[int, str]:
    """The question in a request of any wire: `NUMBER FAULT` on the line under the field's header."""
    text = orjson.dumps(body).decode()
    number, fault = text.rpartition("[[ ## question ## ]]\\n")[2].partition('"')[0].split(" ")
    return int(number), fault


def is_reask(received: Received) -> bool:
    """Whether the request goes on after an answer: it holds a result."""
    text = orjson.dumps(received.body).decode()
    marks = ('"role":"tool"', "function_call_output", "tool_result", "functionResponse")
    return any(mark in text for mark in marks)


def expected(case: Case) -> str:
    """The outcome that a case must have."""
    fault = case.fault
    if fault is None:
        return "the call"
    if fault in ("http_error", "no_body"):
        return "LMError"
    if fault == "missing_tool_calls":
        return "MissingToolCalls"
    return {"raise": f"raised {fault}", "keep": f"kept {fault}", "reask": "the call"}[case.on_invalid]


def outcome(case: Case, calls: ToolCalls | BaseException) -> str:
    """What came of a case, in the words of `expected`; anything odd in words of its own."""
    if isinstance(calls, MissingToolCalls):
        said = calls.choice.text
        return "MissingToolCalls" if said == f"No call for {case.number}." else f"another text: {said!r}"
    if isinstance(calls, ToolCallParseError):
        return f"raised {bad(case, calls.choice.tool_calls)}"
    if isinstance(calls, BaseException):
        return "LMError" if isinstance(calls, LMError) else f"{type(calls).__name__}: {calls}"
    if calls.invalid:
        return f"kept {bad(case, calls)}"
    return (
        "the call" if [call.args for call in calls] == [{"number": case.number}] else f"another call: {calls}"
    )


def bad(case: Case, calls: ToolCalls) -> str:
    """The code of the one bad call, if its text is what was sent."""
    (call,) = calls.invalid
    sent = FAULTS[str(case.fault)](case.number)
    text = sent if isinstance(sent, str) else orjson.dumps(sent).decode()
    return call.code if call.arguments == text else f"another text: {call.arguments}"


class Soak:
    """The programs that ask, one adapter for each way with bad calls, shared by all threads and tasks."""

    def __init__(self, options: dict[str, dict[str, Any]]) -> None:
        self.models = {wire: dspy.LM(**options[wire]) for wire in WIRES if wire != LITELLM}
        self.models[LITELLM] = dspy.LM(**options["openai"], engine="litellm")
        self.adapters: dict[str, Any] = {
            way: sigadapt.ChatAdapter(on_invalid=way) for way in ("raise", "keep", "reask")
        }
        self.predict, self.decls = dspy.Predict(Ask), ToolDecls(record)
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.mismatches: list[str] = []

    def context(self, case: Case) -> Any:
        """DSPy's settings for a case, remembering nothing."""
        return dspy.context(
            lm=self.models[case.wire],
            adapter=self.adapters[case.on_invalid],
            trace=None,
            disable_history=True,
        )

    def ask(self, case: Case) -> ToolCalls | BaseException:
        """A case on a thread."""
        try:
            with self.context(case):
                return self.predict(question=case.question, tools=self.decls).calls
        except Exception as error:  # noqa: BLE001  (an outcome like any other)
            return error

    async def aask(self, case: Case, room: asyncio.Semaphore) -> ToolCalls | BaseException:
        """The same as a task."""
        async with room:
            try:
                with self.context(case):
                    return (await self.predict.acall(question=case.question, tools=self.decls)).calls
            except Exception as error:  # noqa: BLE001
                return error

    async def tasks(self, batch: list[Case]) -> list[ToolCalls | BaseException]:
        """A batch as tasks."""
        room = asyncio.Semaphore(TASKS)
        return await asyncio.gather(*(self.aask(case, room) for case in batch))

    def account(self, batch: list[Case], found: list[ToolCalls | BaseException]) -> None:
        """Count what came, and note what should not have."""
        for case, calls in zip(batch, found, strict=True):
            came = outcome(case, calls)
            self.outcomes[case.fault or "none", came if came == expected(case) else "a mismatch"] += 1
            if came != expected(case):
                self.mismatches.append(f"{case}: {expected(case)!r} was expected and came {came!r}")


def run(count: int, minutes: float) -> int:
    """Make the calls, print and write what came of them; 1 where something is not as it should be."""
    end, start = time.monotonic() + 60 * minutes, time.monotonic()
    todo, settled = list(cases(count)), 0
    with provider(answer) as options, ThreadPoolExecutor(THREADS) as pool:
        soak, made = Soak(options), 0
        while made < len(todo) and time.monotonic() < end:
            batch = todo[made : made + EACH]
            threaded, awaited = batch[::2], batch[1::2]
            waiting = [pool.submit(soak.ask, case) for case in threaded]
            soak.account(awaited, asyncio.run(soak.tasks(awaited)))
            soak.account(threaded, [one.result() for one in waiting])
            made += len(batch)
            gc.collect()
            if not settled and made >= count // 10:
                settled = resident()  # until here allocators and pools find their size
        grown = resident() - settled
    seconds = time.monotonic() - start
    text = report(soak, made, seconds, grown)
    print("\n".join([text, *soak.mismatches[:20]]))
    if made == count >= 100_000:
        PAGE.write_text(text, encoding="utf-8")
    missing = count - sum(soak.outcomes.values())
    if missing:
        print(f"{missing:,} calls were not made in {minutes} minutes")
    return 1 if missing or soak.mismatches else 0


def report(soak: Soak, made: int, seconds: float, grown: int) -> str:
    """The page."""
    rows = [[fault, came, f"{number:,}"] for (fault, came), number in sorted(soak.outcomes.items())]
    faulty = sum(number for (fault, _), number in soak.outcomes.items() if fault != "none")
    told = (
        f"Of {made:,} calls, {faulty:,} got a faulty answer. Half ran on {THREADS} threads, half as up to "
        f"{TASKS} tasks at once, all through the same three adapters, over {', '.join(WIRES)}. "
        f"Accounted for: {sum(soak.outcomes.values()):,}; mismatches: {len(soak.mismatches):,}. The run took "
        f"{seconds:,.0f} seconds on 2 cores, provider included. After the first tenth, the process grew by "
        f"{grown / 2**20:,.1f} MB."
    )
    head = INTRODUCTION.replace("{stamp}", stamp("dspy", "litellm"))
    return f"{head}\n{Table('Outcomes', told, ('fault', 'outcome', 'calls'), rows).markdown()}"


INTRODUCTION = """\
# Soak test

{stamp}

`python3 tasks.py soak` makes 100,000 calls over HTTP and writes this page. Each question has a number and
tells the loopback provider how to answer. An outcome counts only if it belongs to its question: the call with
the same number, the bad call's code with its raw text (raised or kept), the good call after a reask, or the
error.
"""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=20)
    given = parser.parse_args()
    logging.getLogger("dspy").setLevel(logging.ERROR)  # it warns of answers that were cut off
    return run(given.calls, given.minutes)


if __name__ == "__main__":
    sys.exit(main())
