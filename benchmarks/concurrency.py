"""Many calls at once through one adapter, on threads and as tasks; each answer has to be its question's."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dspy

import sigadapt
from benchmarks.measure import Table, times
from benchmarks.provider import provider
from benchmarks.subjects import Ours, Theirs, tool
from sigadapt import ToolDecls
from sigadapt.testing import Answer, Call, Received

THREADS = 32
CALLS = 1_000


async def echo(received: Received) -> Answer:
    """The question, as the argument of a call, a moment later."""
    question = str(received.body["messages"][-1]["content"]).partition("]]\n")[2].partition("\n")[0]
    await asyncio.sleep(0.02)
    return Answer(calls=[Call("tool_0", {"city": question})])


def tables(seconds: float) -> Iterator[Table]:
    """The comparison; with less than a second, of a tenth of the calls."""
    count = CALLS if seconds >= 1 else CALLS // 10
    sides: dict[str, tuple[Any, Any, Any]] = {
        "sigadapt": (sigadapt.ChatAdapter(), Ours, ToolDecls(tool(0))),
        "DSPy": (dspy.ChatAdapter(use_native_function_calling=True), Theirs, [dspy.Tool(tool(0))]),
    }
    taken: dict[str, list[tuple[float, int]]] = {name: [] for name in sides}
    with provider(echo) as options:
        lm = dspy.LM(**options["openai"])
        for _ in range(3):
            for name, (adapter, signature, tools) in sides.items():
                with dspy.context(lm=lm, adapter=adapter, trace=None, disable_history=True):
                    taken[name].append(on_threads(signature, tools, count))
                    taken[name].append(asyncio.run(as_tasks(signature, tools, count)))
    rows = [
        [title, times(best(taken["sigadapt"][place::2]) / best(taken["DSPy"][place::2]))]
        + [f"{best(taken[name][place::2]) / count * 1e3:.2f} ms" for name in sides]
        + [f"{sum(right for _, right in taken['sigadapt'][place::2]):,} of {3 * count:,}"]
        for place, title in enumerate((f"{count:,} calls on {THREADS} threads", f"{count:,} tasks at once"))
    ]
    told = (
        "A loopback provider in its own process answers after 20 ms and repeats the question. The time is "
        "that of one call, HTTP and provider included, in the best of three rounds; a lock around the model "
        "call would make it 20 ms. The last column counts the answers that reached the right question."
    )
    head = ("", "ratio to DSPy's", "sigadapt, a call", "DSPy, a call", "right answers")
    yield Table("Many calls at once", told, head, rows)


def best(rounds: Sequence[tuple[float, int]]) -> float:
    """The shortest."""
    return min(seconds for seconds, _ in rounds)


def on_threads(signature: Any, tools: Any, count: int) -> tuple[float, int]:
    """The seconds that so many calls take on the threads, and how many answers are right."""
    predict = dspy.Predict(signature)
    settings = dict(dspy.settings.copy())

    def ask(number: int) -> bool:
        with dspy.context(**settings):
            return is_right(predict(question=f"question {number}", tools=tools), number)

    start = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as pool:
        right = sum(pool.map(ask, range(count)))
    return time.perf_counter() - start, right


async def as_tasks(signature: Any, tools: Any, count: int) -> tuple[float, int]:
    """The same, awaited all at once."""
    predict = dspy.Predict(signature)

    async def ask(number: int) -> bool:
        return is_right(await predict.acall(question=f"question {number}", tools=tools), number)

    start = time.perf_counter()
    right = sum(await asyncio.gather(*map(ask, range(count))))
    return time.perf_counter() - start, right


def is_right(prediction: Any, number: int) -> bool:
    """Whether the one call of an answer is that of its own question."""
    (call,) = prediction.tool_calls.tool_calls
    return call.args == {"city": f"question {number}"}
