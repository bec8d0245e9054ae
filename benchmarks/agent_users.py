"""100 users of one agent at once, six rounds each, a fifth with approvals, 5 % faults; effects are counted.

    python -m benchmarks.agent_users [--users 100] [--batches 10]

The provider asks for what the conversation still lacks: two calls a round, each with the user's number. So a
result that was lost is asked for again, and the effect happens twice. What must hold: each effect happened
once, for its own user; no request names two users or has a call without its result; the runs have counted
each request; and neither memory nor threads grow.
"""

import argparse
import asyncio
import gc
import logging
import os
import random
import re
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import dspy
import orjson
from dspy.utils.exceptions import AdapterParseError, LMError

import sigadapt
from benchmarks.measure import resident
from sigadapt import InputNeeded, ReAct, Run, SigadaptError, ToolDecl, ToolDecls, Usage
from sigadapt.json_values import is_array
from sigadapt.testing import Answer, Call, Failure, LoopbackProvider, Received, Reply

SEED = 20261124
ROUNDS = 6
FAULT_RATE = 0.05
ENDS: dict[str, Reply] = {
    "http_error": Failure(503, "overloaded"),
    "cut_off": Answer(text="", finish="length"),
    "content_filter": Answer(text="I can", finish="content_filter"),
}
FAULTS = (*ENDS, "unknown_tool", "schema_mismatch")
WIRES = ("openai", "anthropic")
APPROVED_ROUND = 3
CANCELLED_ROUND = 4
MOST_TRIES = 20
WAIT = 10.0
QUESTION = re.compile(r"user (\d+)")
RESULT = re.compile(r"done (\d+) (\d+) (\w+)")
UNKNOWN = "may still be running"


class Provider:
    """What the model says: the calls that a conversation lacks, and now and then a fault instead."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.requests = self.faults = 0
        self._lock = threading.Lock()
        self._seen: set[tuple[int, int]] = set()
        self._choose = random.Random(SEED)  # noqa: S311  (no secret)

    def answer(self, received: Received) -> Reply:
        """Answer a request."""
        text = orjson.dumps(received.body).decode()
        users = set(QUESTION.findall(text)) | {user for user, _, _ in RESULT.findall(text)}
        user = int(min(users))
        problem = problem_of(received.body, users)
        done = {(int(number), kind) for _, number, kind in RESULT.findall(text)}
        number = next((n for n in range(1, ROUNDS + 1) if not {(n, "look"), (n, "pay")} <= done), None)
        with self._lock:
            self.requests += 1
            if problem:
                self.problems.append(f"user {user}: {problem}")
            fault = self._fault(user, number or 0)
        if number is None:
            calls = [Call("submit", {"answer": f"paid for {user}"})]
        else:
            missing = [kind for kind in ("look", "pay") if (number, kind) not in done]
            calls = [Call(kind, {"user": user, "number": number}) for kind in missing]
        return faulty(fault, calls)

    def _fault(self, user: int, number: int) -> str | None:
        if (user, number) in self._seen:
            return None
        self._seen.add((user, number))
        if self._choose.random() >= FAULT_RATE:
            return None
        self.faults += 1
        return self._choose.choice(FAULTS)


def faulty(fault: str | None, calls: list[Call]) -> Reply:
    """Return the answer with these calls, or with a fault."""
    if fault is None:
        return Answer(calls=calls)
    if fault in ENDS:
        return ENDS[fault]
    bad = Call("burn", {}) if fault == "unknown_tool" else Call(calls[0].name, {"user": "me"})
    return Answer(calls=[bad, *calls[1:]])


def problem_of(body: Any, users: set[str]) -> str | None:
    """Return what is wrong with a request, if anything is."""
    if len(users) != 1:
        return f"its request names the users {sorted(users)}"
    calls: Counter[str] = Counter()
    results: Counter[str] = Counter()
    for message in body["messages"]:
        calls.update(call["id"] for call in message.get("tool_calls") or ())
        if message["role"] == "tool":
            results[message["tool_call_id"]] += 1
        blocks: list[Any] = message["content"] if is_array(message.get("content")) else []
        for block in blocks:
            if block["type"] == "tool_use":
                calls[block["id"]] += 1
            if block["type"] == "tool_result":
                results[block["tool_use_id"]] += 1
    if calls != results or max(calls.values(), default=1) > 1:
        return f"its calls {dict(calls)} have the results {dict(results)}"
    return None


class Service:
    """A service with one agent for all its users: half of them in threads, half as tasks."""

    def __init__(self) -> None:
        self.effects: Counter[tuple[int, int, str]] = Counter()
        self.problems: list[str] = []
        self.used: Counter[str] = Counter()
        self.approvals = self.cancelled = 0
        self._lock = threading.Lock()
        self._paying: dict[int, threading.Event] = {}  # of users whose task is cancelled while they pay
        pay = ToolDecl.of(self.pay, requires_confirmation=lambda args: is_asked(args["user"], args["number"]))
        self.tools = ToolDecls([self.look, pay])
        self.agent = ReAct("question -> answer", tools=self.tools, limits=sigadapt.Limits(requests=100))

    async def look(self, user: int, number: int) -> str:
        """Look at the price."""
        await asyncio.sleep(0.001)
        return self._effect(user, number, "look")

    def pay(self, user: int, number: int) -> str:
        """Pay."""
        paying = self._paying.get(user) if number == CANCELLED_ROUND else None
        if paying is not None:
            paying.set()
            time.sleep(0.05)
        return self._effect(user, number, "pay")

    def _effect(self, user: int, number: int, kind: str) -> str:
        with self._lock:
            self.effects[user, number, kind] += 1
        return f"done {user} {number} {kind}"

    def serve(self, user: int) -> None:
        """Serve a user in a thread."""
        inputs: dict[str, Any] = {"question": f"user {user}"}
        for _ in range(MOST_TRIES):
            run = Run()
            try:
                with run:
                    out = self.agent(**inputs)
            except InputNeeded as error:
                saved = self._waits(user, error)
                inputs = {"history": saved.resume(self.tools, {saved.requests[0].id: True})}
            except (LMError, AdapterParseError, SigadaptError):
                inputs = {"history": restored(run)}
            else:
                self._end(user, run, out)
                return
            self._count(run.usage)
        self.problems.append(f"user {user}: no answer")

    async def aserve(self, user: int) -> None:
        """Serve a user as a task; one in ten is cancelled while a payment runs."""
        inputs: dict[str, Any] = {"question": f"user {user}"}
        paying = threading.Event() if user % 10 == 1 else None
        if paying is not None:
            self._paying[user] = paying
        for _ in range(MOST_TRIES):
            run = Run()
            try:
                out = await self._ask(run, inputs, paying)
            except InputNeeded as error:
                saved = self._waits(user, error)
                inputs = {"history": await saved.aresume(self.tools, {saved.requests[0].id: True})}
            except asyncio.CancelledError:
                self.cancelled += 1
                paying = None
                del self._paying[user]
                await results_known(run)
                inputs = {"history": restored(run)}
            except (LMError, AdapterParseError, SigadaptError):
                inputs = {"history": restored(run)}
            else:
                self._end(user, run, out)
                return
            self._count(run.usage)
        self.problems.append(f"user {user}: no answer")

    async def _ask(self, run: Run, inputs: dict[str, Any], paying: threading.Event | None) -> Any:
        async def ask() -> Any:
            with run:
                return await self.agent.acall(**inputs)

        task = asyncio.create_task(ask())
        while paying is not None and not task.done():
            if paying.is_set():
                task.cancel()
                break
            await asyncio.sleep(0.005)
        return await task

    def _waits(self, user: int, error: InputNeeded) -> InputNeeded:
        with self._lock:
            self.approvals += 1
        if len(error.requests) != 1 or error.requests[0].call.args["user"] != user:
            self.problems.append(f"user {user}: was asked about {error.requests}")
        return InputNeeded.model_validate_json(error.model_dump_json())

    def _end(self, user: int, run: Run, out: Any) -> None:
        self._count(run.usage)
        if out.answer != f"paid for {user}":
            self.problems.append(f"user {user}: {out.answer}")

    def _count(self, usage: Usage) -> None:
        with self._lock:
            self.used.update(requests=usage.requests, tool_calls=usage.tool_calls)

    def check(self, users: range) -> None:
        """Note each effect that did not happen once."""
        for user in users:
            for number in range(1, ROUNDS + 1):
                for kind in ("look", "pay"):
                    count = self.effects.pop((user, number, kind), 0)
                    if count != 1:
                        self.problems.append(f"user {user}: {kind} of round {number} happened {count} times")
        self.problems += [f"{effect} is of no user" for effect in self.effects]
        self.effects.clear()


def is_asked(user: int, number: int) -> bool:
    """Return whether a person is asked about a payment."""
    return user % 5 == 0 and number == APPROVED_ROUND


def restored(run: Run) -> dspy.History:
    """Return a run's history as a store gives it back."""
    return dspy.History.model_validate_json(run.history.model_dump_json())


async def results_known(run: Run) -> None:
    """Wait until the thread that paid has written its result, although the run was cancelled."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        last = run.rounds[-1].results if run.rounds else ()
        if not any(result.name == "pay" and UNKNOWN in str(result.value) for result in last):
            return
        await asyncio.sleep(0.01)


def serve_all(service: Service, models: dict[str, dspy.LM], users: range) -> None:
    """Serve users at once, half in threads and half as tasks."""

    def in_thread(user: int) -> None:
        with dspy.context(**options(models, user)):
            service.serve(user)

    async def as_task(user: int) -> None:
        with dspy.context(**options(models, user)):
            await service.aserve(user)

    async def as_tasks() -> None:
        await asyncio.gather(*(as_task(user) for user in users if user % 4 in {1, 2}))

    with ThreadPoolExecutor(len(users)) as pool:
        threads = [pool.submit(in_thread, user) for user in users if user % 4 in {0, 3}]
        asyncio.run(as_tasks())
        for thread in threads:
            thread.result()


def options(models: dict[str, dspy.LM], user: int) -> dict[str, Any]:
    """Return DSPy's settings for a user."""
    wire = WIRES[user % 3 == 0]
    adapter = sigadapt.ChatAdapter(confirm="raise")
    return {"lm": models[wire], "adapter": adapter, "trace": None, "disable_history": True}


def model_of(net: LoopbackProvider, wire: str) -> dspy.LM:
    """Return the model of a wire. It tries once, so that each fault reaches the service."""
    given: dict[str, Any] = net.lm_options(wire)
    given |= {"num_retries": 0, "cache": False}
    return dspy.LM(**given)


def measure(users: int, batches: int) -> tuple[list[str], str]:
    """Serve batches of users; return what went wrong, and a report."""
    provider = Provider()
    service = Service()
    settled = threads = 0
    start = time.monotonic()
    with LoopbackProvider(provider.answer, keep=0) as net:
        models = {wire: model_of(net, wire) for wire in WIRES}
        for batch in range(batches):
            ids = range(batch * users, (batch + 1) * users)
            serve_all(service, models, ids)
            service.check(ids)
            gc.collect()
            if batch == batches // 3:  # until here, pools and allocators find their size
                settled = resident()
                threads = threading.active_count()
        grown = resident() - settled
        more_threads = threading.active_count() - threads
    seconds = time.monotonic() - start
    problems = [*service.problems, *provider.problems]
    if service.used["requests"] != provider.requests:
        problems.append(f"the runs counted {service.used['requests']} of {provider.requests} requests")
    report = (
        f"{users * batches:,} users, {users} at once, {provider.requests:,} requests, "
        f"{provider.faults:,} faults, {service.approvals:,} approvals, {service.cancelled:,} cancelled tasks "
        f"in {seconds:,.0f} seconds: {len(problems)} problems. After the first third, the process grew by "
        f"{grown / 2**20:,.1f} MB and {max(more_threads, 0)} threads."
    )
    return problems, report


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--batches", type=int, default=10)
    given = parser.parse_args()
    logging.getLogger("dspy").setLevel(logging.CRITICAL)  # it warns of answers that were cut off
    problems, report = measure(given.users, given.batches)
    print("\n".join([report, *problems[:20]]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
