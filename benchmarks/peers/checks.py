"""What was seen of a run, and the checks that make a class of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.peers.scripts import DONE, QUESTION
from sigadapt.testing import Received

CLASSES = ("right", "told", "lost", "silent", "cannot")

Check = Callable[["Facts"], str]


@dataclass
class Facts:
    """What was seen: each step's outcome, what ran, and the requests of each step."""

    steps: list[dict[str, Any]]
    requests: list[list[Received]]
    hung: bool = False

    @property
    def ran(self) -> list[dict[str, Any]]:
        """Every call that began to run."""
        return self.steps[-1]["ran"]

    def count(self, name: str) -> int:
        """How often a tool began to run."""
        return sum(entry["name"] == name for entry in self.ran)

    def text(self, step: int, number: int = -1) -> str:
        """A request of a step, as text."""
        return json.dumps(self.requests[step][number].body) if self.requests[step] else ""

    @property
    def last(self) -> dict[str, Any]:
        """The last step's outcome."""
        return self.steps[-1]


def model_reads(*words: str, runs_order: int = 1) -> Check:
    """The run ends with its answer, the model has read these words, and the order ran so often."""

    def check(facts: Facts) -> str:
        if facts.count("order") > runs_order:
            return "silent"
        first = facts.steps[0]
        if first["answer"] == DONE and facts.count("order") == runs_order:
            read = facts.text(0).lower()
            return "right" if all(word.lower() in read for word in words) else "silent"
        if first["answer"]:
            return "silent"
        return kept(facts)

    return check


def kept(facts: Facts) -> str:
    """A run that failed: told where an error leaves and the next step goes on, running nothing twice."""
    first = facts.steps[0]
    if not first["error"] and not first["mark"]:
        return "silent"
    last = facts.last
    orders = facts.count("order")
    if orders > 1:
        return "lost"
    went_on = last["answer"] == DONE and last is not first
    question = QUESTION in facts.text(-1)
    result = "Ordered 2 of Emma" in facts.text(-1) or not orders
    return "told" if went_on and question and result else "lost"


def goes_on(facts: Facts) -> str:
    """An error leaves, and the next step ends with everything that was done before, once."""
    if not facts.steps[0]["error"]:
        return "silent"
    verdict = kept(facts)
    body = facts.text(-1)
    return "right" if verdict == "told" and body.count(QUESTION) == 1 else verdict


def cut_is_told(*words: str) -> Check:
    """Half an answer is no answer: an error, or a field of the result, says so."""

    def check(facts: Facts) -> str:
        first = facts.steps[0]
        if first["answer"] == DONE:
            return "right"
        seen = f"{first['error']} {first['mark']}".lower()
        if first["error"]:
            told = any(word in seen for word in words)
            return kept(facts) if told or facts.count("order") else "told"
        return "told" if any(word in seen for word in words) else "silent"

    return check


def never_runs(name: str = "order") -> Check:
    """A call that cannot be meant does not run; the model or the program is told."""

    def check(facts: Facts) -> str:
        first = facts.steps[0]
        if facts.count(name):
            return "silent"
        if first["error"]:
            return "told"
        read = facts.text(0).lower()
        if first["answer"] != DONE and any(word in first["mark"] for word in ("invalid", "length")):
            return "told"
        told = any(
            word in read for word in ("error", "invalid", "retry", "unknown", "not found", "fix", "valid")
        )
        return "right" if first["answer"] == DONE and told and len(facts.requests[0]) > 1 else "silent"

    return check


def stops(requests: int | None = None, runs: int | None = None, word: str = "") -> Check:
    """The limit holds, an error names it, and the run can go on without running anything twice."""

    def check(facts: Facts) -> str:
        first = facts.steps[0]
        began = first["ran"]
        if not first["error"] and not first["mark"]:
            return "silent"
        is_late = requests is not None and len(facts.requests[0]) > requests
        if runs is not None and len(began) > runs:
            is_late = True
        last = facts.last
        repeated = facts.count("order") > 1
        went_on = last["answer"] == DONE and QUESTION in facts.text(-1) and not repeated
        if not went_on:
            return "lost"
        return "right" if first["error"] and not is_late else "told"

    return check


def overlap(name: str, results: Sequence[str]) -> Check:
    """The calls ran at the same time, and their results stand in the order of the calls."""

    def check(facts: Facts) -> str:
        if facts.steps[0]["answer"] != DONE:
            return "lost" if facts.steps[0]["error"] else "silent"
        spans = [entry for entry in facts.ran if entry["name"] == name and entry["ended"]]
        body = facts.text(0)
        places = [body.find(result) for result in results]
        if -1 in places or places != sorted(places):
            return "silent"
        together = max(entry["began"] for entry in spans) < min(entry["ended"] for entry in spans)
        return "right" if together else "cannot"

    return check


def approval(runs: list[list[Any]], *words: str) -> Check:
    """Nothing runs before the decision; afterwards exactly this has run, and the model has read it."""

    def check(facts: Facts) -> str:
        before = [entry for entry in facts.steps[0]["ran"] if entry["name"] == "order"]
        if before:
            return "silent"
        if not facts.steps[0]["waiting"]:
            return "lost" if facts.steps[0]["error"] else "silent"
        ran = [[e["args"]["title"], e["args"]["copies"]] for e in facts.ran if e["name"] == "order"]
        if ran != runs:
            return "silent" if len(ran) >= len(runs) else "lost"
        if facts.count("stock") > 1:
            return "lost"
        if facts.last["answer"] != DONE:
            return "lost" if facts.last["error"] else "silent"
        return "right" if all(word in facts.text(-1) for word in words) else "silent"

    return check


def conversation(has: Sequence[str], lacks: Sequence[str] = (), step: int = -1) -> Check:
    """The request of a step has these words and lacks those, and its answer came."""

    def check(facts: Facts) -> str:
        outcome = facts.steps[step]
        body = facts.text(step, 0)
        if outcome["error"] or not outcome["answer"]:
            return "lost"
        if any(word in body for word in lacks):
            return "silent"
        return "right" if all(body.count(word) == 1 for word in has) else "silent"

    return check


def tool_ran(facts: Facts) -> str:
    """The model reads the tool's result, or an error."""
    first = facts.steps[0]
    body = facts.text(0)
    if first["answer"] == DONE and "later Emma" in body:
        return "right"
    return "told" if first["error"] or "rror" in body else "silent"


def loop_is_free(facts: Facts) -> str:
    """Ticks fell into the time of the blocking tool."""
    if facts.steps[0]["answer"] != DONE:
        return "lost"
    (entry,) = facts.ran
    inside = [tick for tick in facts.last["ticks"] if entry["began"] < tick < entry["ended"]]
    return "right" if len(inside) > 4 else "silent"


def usage_is(*counts: int) -> Check:
    """The library gives these counts."""

    def check(facts: Facts) -> str:
        used = facts.steps[0]["usage"]
        if used is None:
            return "cannot"
        return "right" if tuple(used) == counts else "silent"

    return check


def after_yes(facts: Facts) -> str:
    """The order ran once, and the run ended."""
    if not facts.steps[0]["waiting"]:
        return "silent"
    if facts.count("order") != 1:
        return "lost"
    ended = facts.last["answer"] == DONE and "Ordered 2" in facts.text(-1)
    return "right" if ended else "lost"


def decided_twice(facts: Facts) -> str:
    """The order ran once."""
    if facts.count("order") == 1:
        return "told" if facts.last["error"] else "right"
    return "silent" if facts.count("order") else "lost"


def never_asked(facts: Facts) -> str:
    """A person is not asked about a call that can't run; who is asked anyway reads that it failed."""
    if facts.count("order"):
        return "silent"
    if facts.steps[0]["waiting"]:
        is_failed = facts.last["answer"] == DONE and "rror" in facts.text(-1)
        return "told" if is_failed or facts.last["error"] else "silent"
    return "right" if facts.steps[0]["answer"] == DONE else "told"


def one_by_one(facts: Facts) -> str:
    """No call began before the one before it ended."""
    if facts.steps[0]["answer"] != DONE:
        return "lost"
    pairs = zip(facts.ran, facts.ran[1:], strict=False)
    return "right" if all(before["ended"] <= after["began"] for before, after in pairs) else "silent"


def pieces_are_answer(facts: Facts) -> str:
    """There were several pieces, which make the answer."""
    first = facts.steps[0]
    if first["error"]:
        return "lost"
    if len(first["pieces"]) < 2:
        return "cannot"
    return "right" if "".join(first["pieces"]) == DONE else "silent"
