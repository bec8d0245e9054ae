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
from sigadapt.signatures.calls import ToolCall, ToolCalls

OUTCOMES = ("same_call", "other_arguments", "other_tool", "bad_call", "none", "error")
_WORDS_ALONE = ("refused", "filtered")
_INPUTS = ("question", "history", "results", "system")


@dataclass(frozen=True)
class Reply:
    """What became of one row: an outcome, what differs in words, and what it took."""

    outcome: str
    why: str = ""
    called: bool = False
    changes: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)  # of the input and the output
    cost: float | None = None  # in dollars, where DSPy knows it
    calls: tuple[Json, ...] = ()  # good and bad, as `name` and `args`
    requests: int = 1


def ask(program: Any, lm: Any, row: Json, tools: object) -> Reply:
    """Send a row to a model and compare the calls with the row's; a row without `calls` needs none."""
    model: Any = lm.copy()  # with a history of its own
    calls = ToolCalls()
    error = ""
    try:
        with dspy.context(lm=model):
            prediction: Any = program(**{name: row.get(name) for name in _INPUTS})
        calls = prediction.calls or calls
    except UnusableAnswer as unusable:
        error = "" if unusable.code in _WORDS_ALONE else str(unusable)
    except Exception as failure:  # noqa: BLE001  (one row must not end the run)
        error = f"{type(failure).__name__}: {failure}"
    outcome, why = ("error", error) if error else outcome_of(row.get("calls") or [], calls, tools)
    entries: list[Json] = model.history
    usages: list[Json] = [entry.get("usage") or {} for entry in entries]
    input_tokens, output_tokens = (
        sum(each.get(key) or 0 for each in usages) for key in ("prompt_tokens", "completion_tokens")
    )
    costs = [entry["cost"] for entry in entries if entry.get("cost") is not None]
    rows: list[Json] = []
    for call in calls.in_order():
        args = call.args if isinstance(call, ToolCall) else parse_arguments(call.arguments)
        rows.append({"name": call.name, "args": args if is_object(args) else {}})  # also of a bad call
    return Reply(
        outcome,
        why,
        bool(calls),
        tuple(str(change) for entry in entries for change in entry.get("changes") or ()),
        (input_tokens, output_tokens),
        sum(costs) if costs else None,
        tuple(rows),
        max(1, len(entries)),
    )


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
    missing, unexpected = (
        sorted(str(call.name) for call in each) for each in (diff.missing, diff.unexpected)
    )
    return "other_arguments" if missing == unexpected else "other_tool", diff.feedback


@dataclass
class Agreement:
    """How far a model called what was recorded."""

    model: str
    rows: list[Reply] = field(default_factory=list[Reply])
    silences: list[Reply] = field(default_factory=list[Reply])

    def document(self) -> Json:
        """Return the counts, tokens and cost as JSON."""
        every = [*self.rows, *self.silences]
        costs = [each.cost for each in every if each.cost is not None]
        return {
            "model": self.model,
            "rows": len(self.rows),
            **{name: sum(each.outcome == name for each in self.rows) for name in OUTCOMES},
            "called_anyway": sum(each.called for each in self.silences),
            "changes": sum(len(each.changes) for each in every),
            "input_tokens": sum(each.tokens[0] for each in every),
            "output_tokens": sum(each.tokens[1] for each in every),
            "cost": sum(costs) if costs else None,
        }


def sign_tests(agreements: Iterable[Agreement]) -> list[Json]:
    """Return for each two models the rows in which one alone agreed, and how likely that is by chance."""
    tests: list[Json] = []
    for one, two in combinations(agreements, 2):
        pairs = [(x.outcome, y.outcome) for x, y in zip(one.rows, two.rows, strict=True)]
        same = [tuple(each == "same_call" for each in pair) for pair in pairs if "error" not in pair]
        first = same.count((True, False))
        second = same.count((False, True))
        counts = {"models": [one.model, two.model], "first_alone": first, "second_alone": second}
        tests.append({**counts, "p": sign_test(first, second)})
    return tests


def sign_test(first: int, second: int) -> float:
    """Return the two-sided probability of so uneven a split if either side were as likely."""
    n = first + second
    tail = sum(comb(n, k) for k in range(min(first, second) + 1)) / 2**n
    return min(1.0, 2 * tail)
