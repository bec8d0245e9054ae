"""Ask a model with recorded rows, and tell its calls from those that were recorded: agreement, row by row.

It is agreement with what an older model did, and no measure of who is right.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Any

import dspy

from sigadapt.errors import UnusableAnswer
from sigadapt.metrics import compare
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, is_object
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls

OUTCOMES = ("same_call", "other_arguments", "other_tool", "bad_call", "none", "error")
_WORDS_ALONE = ("refused", "filtered")
_INPUTS = ("question", "history", "results", "system")


@dataclass(frozen=True)
class Reply:
    """What became of one row: an outcome, what differs in words, and what it took."""

    outcome: str
    why: str = ""
    called: bool = False  # whether the model called a tool at all
    changes: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)  # of the input and the output
    cost: float | None = None  # in dollars, where DSPy knows it
    calls: tuple[Json, ...] = ()  # good and bad, as `name` and `args`
    requests: int = 1  # how many it took


def ask(program: Any, lm: Any, row: Json, tools: object) -> Reply:
    """Send a row to a model and compare the calls with the row's; a row without `calls` needs none."""
    model: Any = lm.copy()  # whose history holds nothing else
    calls = ToolCalls()
    error = ""
    try:
        with dspy.context(lm=model):
            prediction: Any = program(**{name: row.get(name) for name in _INPUTS})
        calls = prediction.calls or calls
    except UnusableAnswer as unusable:
        if unusable.code not in _WORDS_ALONE:
            error = str(unusable)
    except Exception as failure:  # noqa: BLE001  (one row must not end the run)
        error = f"{type(failure).__name__}: {failure}"
    if error:
        outcome = "error"
        reason = error
    else:
        outcome, reason = outcome_of(row.get("calls") or [], calls, tools)
    entries: list[Json] = model.history
    costs = [entry["cost"] for entry in entries if entry.get("cost") is not None]
    cost = sum(costs) if costs else None
    changes: list[str] = []
    for entry in entries:
        changes += map(str, entry.get("changes") or ())
    return Reply(
        outcome,
        reason,
        called=bool(calls),
        changes=tuple(changes),
        tokens=(_tokens(entries, "prompt_tokens"), _tokens(entries, "completion_tokens")),
        cost=cost,
        calls=tuple(map(_call_row, calls.in_order())),
        requests=max(1, len(entries)),
    )


def _tokens(entries: list[Json], key: str) -> int:
    usages: list[Json] = [entry.get("usage") or {} for entry in entries]
    return sum(usage.get(key) or 0 for usage in usages)


def _call_row(call: ToolCall | InvalidToolCall) -> Json:
    """Return the name and the arguments of a call, also of a bad one where they are an object."""
    args = call.args if isinstance(call, ToolCall) else parse_arguments(call.arguments)
    return {"name": call.name, "args": args if is_object(args) else {}}


def outcome_of(gold: list[Json], calls: ToolCalls, tools: object = None) -> tuple[str, str]:
    """Return which of `OUTCOMES` calls are beside the recorded ones, and what differs in words."""
    if not calls:
        return "none", ""
    if calls.invalid:
        reasons = (f"{bad.name}: {bad.code} {bad.path or ''}".strip() for bad in calls.invalid)
        return "bad_call", "; ".join(reasons)
    diff = compare(gold, calls, tools)
    if diff.exact:
        return "same_call", ""
    missing = sorted(str(call.name) for call in diff.missing)
    unexpected = sorted(str(call.name) for call in diff.unexpected)
    return "other_arguments" if missing == unexpected else "other_tool", diff.feedback


@dataclass
class Agreement:
    """How far a model called what was recorded."""

    model: str
    rows: list[Reply] = field(default_factory=list[Reply])
    silences: list[Reply] = field(default_factory=list[Reply])

    def document(self) -> Json:
        """Return the counts, tokens and cost as JSON."""
        replies = [*self.rows, *self.silences]
        costs = [reply.cost for reply in replies if reply.cost is not None]
        return {
            "model": self.model,
            "rows": len(self.rows),
            **{name: sum(reply.outcome == name for reply in self.rows) for name in OUTCOMES},
            "called_anyway": sum(reply.called for reply in self.silences),
            "changes": sum(len(reply.changes) for reply in replies),
            "input_tokens": sum(reply.tokens[0] for reply in replies),
            "output_tokens": sum(reply.tokens[1] for reply in replies),
            "cost": sum(costs) if costs else None,
        }


def sign_tests(agreements: Iterable[Agreement]) -> list[Json]:
    """Return for each two models the rows in which one alone agreed, and how likely that is by chance."""
    tests: list[Json] = []
    for model, rival in combinations(agreements, 2):
        agreed: list[tuple[bool, bool]] = []
        for reply, rival_reply in zip(model.rows, rival.rows, strict=True):
            outcomes = (reply.outcome, rival_reply.outcome)
            if "error" not in outcomes:
                agreed.append((outcomes[0] == "same_call", outcomes[1] == "same_call"))
        first = agreed.count((True, False))
        second = agreed.count((False, True))
        counts = {"models": [model.model, rival.model], "first_alone": first, "second_alone": second}
        tests.append({**counts, "p": sign_test(first, second)})
    return tests


def sign_test(first: int, second: int) -> float:
    """Return the two-sided probability of so uneven a split if either side were as likely."""
    n = first + second
    tail = sum(comb(n, k) for k in range(min(first, second) + 1)) / 2**n
    return min(1.0, 2 * tail)
