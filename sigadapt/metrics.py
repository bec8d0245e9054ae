"""Metrics for tool calls: how well the calls of a prediction match the expected ones.

`compare` does the work. `ExactMatch`, `SubsetMatch` and `F1` are DSPy metrics, for `dspy.Evaluate` and for
every optimizer; for GEPA they say in words what differs. `Trajectory` is one over a whole run. Rules:

 a. Two calls match if they have the same name and the same arguments. Ids count only if asked for.
 b. Arguments are compared as JSON: 1 is 1.0, key order is free, and 1 is not true. With the tools' schemas,
    an argument that is left out is its default, and times of the format `date-time` are the same in each
    time zone. An expected argument may be a Python value, such as a date or a model; it is compared as the
    JSON that pydantic writes of it.
 c. Each expected call matches one call at most. Order counts only if asked for.
 d. A bad call that was made matches nothing. A bad expected call is an error of the data.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple

import dspy
import pydantic

from sigadapt.errors import InvalidHistory, InvalidOption
from sigadapt.json_values import (
    ARGUMENT_LEVELS,
    Json,
    cut,
    equal_json,
    fault_in,
    is_array,
    is_object,
    is_sequence,
    json_like,
    listed,
    pointer,
    type_of,
)
from sigadapt.runs.run import rounds
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.with_defaults import comparable
from sigadapt.signatures.calls import InvalidToolCall, RefusedToolCall, ToolCall, ToolCalls
from sigadapt.signatures.sources.annotations import jsonable
from sigadapt.signatures.tool_decls import ToolDecls

_MOST_TOLD = 8


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the calls of a prediction match the expected ones.

    Args:
        matched: how many expected calls were made.
        missing: the expected calls that were not made.
        unexpected: the calls that were made and not expected, bad ones included.
        feedback: what differs, in sentences that a model can learn from.

    Example:
        >>> found = compare([{"name": "f", "args": {"a": 1}}], [{"name": "f", "args": {"a": 1.0}}])
        >>> found.exact, found.subset, found.f1
        (True, True, 1.0)
    """

    matched: int
    missing: tuple[ToolCall, ...]
    unexpected: tuple[ToolCall | InvalidToolCall, ...]
    feedback: str

    @property
    def exact(self) -> bool:
        """Whether the expected calls were made, and no others."""
        return not self.missing and not self.unexpected

    @property
    def subset(self) -> bool:
        """Whether the expected calls are among those that were made."""
        return not self.missing

    @property
    def precision(self) -> float:
        """The share of the calls made that were expected; 1.0 if none was made."""
        total = self.matched + len(self.unexpected)
        return self.matched / total if total else 1.0

    @property
    def recall(self) -> float:
        """The share of the expected calls that were made; 1.0 if none was expected."""
        total = self.matched + len(self.missing)
        return self.matched / total if total else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 1.0 if no call was expected and none made."""
        wrong = len(self.missing) + len(self.unexpected)
        return 2 * self.matched / (2 * self.matched + wrong) if self.matched or wrong else 1.0


def compare(
    expected: Any, actual: Any, tools: Any = None, *, ordered: bool = False, ids: bool = False
) -> Comparison:
    """Compare the calls that were made with the expected ones.

    Args:
        expected: calls of this package or of DSPy, or a list of dicts with `name` and `args` or in OpenAI's
            shape; None is no call. Arguments may be Python values that pydantic writes as JSON.
        actual: the calls that were made, likewise, with arguments that are JSON.
        tools: the declared tools, as `ToolDecls` takes them; None compares without defaults.
        ordered: whether the calls must come in the expected order.
        ids: whether ids must be the same.

    Returns:
        The Comparison. With `ordered`, the longest run of matches in order counts.

    Raises:
        InvalidOption: for a value that holds no calls, an expected argument that has no JSON form, or an
            expected call that no model could make: of a tool that is not among these, or that does not fit.
        InvalidToolDecl: for tools that cannot be declared.

    Example:
        >>> def add(a: int, b: int = 0) -> int: ...
        >>> compare(
        ...     [{"name": "add", "args": {"a": 1}}], [{"name": "add", "args": {"a": 1, "b": 0}}], [add]
        ... ).exact
        True
        >>> compare([{"name": "add", "args": {"a": 1}}], [{"name": "add", "args": {"a": 2}}]).feedback
        'In add, /a is 2, expected 1.'
    """
    decls = None if tools is None else ToolDecls(tools)
    gold = _gold_calls(expected, decls)
    actual_calls = _calls(actual, "actual").in_order()
    gold_keys = [_key(call, decls, ids=ids) for call in gold]
    actual_keys = [_key(call, decls, ids=ids) for call in actual_calls]
    if ordered:
        pairs = _in_order([key.value for key in gold_keys], [key.value for key in actual_keys])
    else:
        pairs = _in_any_order(gold_keys, actual_keys)
    missing = [n for n in range(len(gold)) if n not in pairs]
    unexpected = sorted({*range(len(actual_calls))} - {*pairs.values()})
    return Comparison(
        matched=len(pairs),
        missing=tuple(gold[n] for n in missing),
        unexpected=tuple(actual_calls[n] for n in unexpected),
        feedback=_feedback([gold_keys[n] for n in missing], [actual_keys[n] for n in unexpected]),
    )


def _in_any_order(gold_keys: "list[_Key]", actual_keys: "list[_Key]") -> dict[int, int]:
    """Pair each expected call with one that matches it."""
    free: dict[Hashable, list[int]] = {}
    for n in reversed(range(len(actual_keys))):
        free.setdefault(actual_keys[n].value, []).append(n)
    pairs: dict[int, int] = {}
    for n, key in enumerate(gold_keys):  # any equal one that is free will do, as equality is transitive
        if key.value and free.get(key.value):
            pairs[n] = free[key.value].pop()
    return pairs


class _Metric:
    """A DSPy metric, as evaluation and every optimizer call it."""

    __slots__ = ()

    def __call__(
        self,
        gold: Any,
        pred: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> Any:
        """Score a prediction.

        Raises:
            InvalidOption: for an example without the field, or a field that holds no calls.
            InvalidHistory: from `Trajectory`, as `sigadapt.rounds`.
        """
        score, feedback = self._judgement(gold, pred)
        if pred_name is not None or pred_trace is not None:
            return dspy.Prediction(score=score, feedback=feedback)
        return score if self.graded and trace is None else score == 1

    graded: ClassVar[bool] = True
    """Whether the score is a number between 0 and 1, and not true or false."""

    def _judgement(self, gold: Any, pred: Any) -> tuple[float, str]:
        raise NotImplementedError


_FAILED = 0.0, "The program failed, so it made no calls."
"""The judgement of a program that raised, for which optimizers give None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMetric(_Metric):
    """A DSPy metric over a calls field. Use `ExactMatch`, `SubsetMatch` or `F1`.

    Args:
        field: the calls field, of the example and of the prediction.
        tools: the declared tools; None takes them from the example's field `tools_field`, if it has one.
        tools_field: the field of the example that holds the tools.
        ordered: whether the calls must come in the expected order.
        ids: whether ids must be the same.

    Example:
        >>> gold = dspy.Example(question="1+2?", calls=[{"name": "add", "args": {"a": 1, "b": 2}}])
        >>> pred = dspy.Prediction(calls=ToolCalls([{"name": "add", "args": {"b": 2, "a": 1}}]))
        >>> ExactMatch()(gold, pred), F1(ordered=True)(gold, pred)
        (True, 1.0)
    """

    field: str = "calls"
    tools: Any = None
    tools_field: str = "tools"
    ordered: bool = False
    ids: bool = False

    def score(self, comparison: Comparison) -> float:
        """Return the score of a Comparison, from 0 to 1."""
        raise NotImplementedError

    def _judgement(self, gold: Any, pred: Any) -> tuple[float, str]:
        if not hasattr(gold, "keys"):
            reason = f"expected a dspy.Example with the expected calls, got {type_of(gold)}"
            raise InvalidOption(reason, fix=f"Call {type(self).__name__}()(example, prediction).")
        if self.field not in gold:
            reason = f"the example has no field {self.field!r}, only {', '.join(gold.keys())}"
            fix = f"Name the field of the expected calls: {type(self).__name__}(field=...)."
            raise InvalidOption(reason, field="field", fix=fix)
        if pred is None:
            return _FAILED
        tools = gold.get(self.tools_field) if self.tools is None else self.tools
        calls = pred.get(self.field) if self.field in pred else None
        comparison = compare(gold[self.field], calls, tools, ordered=self.ordered, ids=self.ids)
        return self.score(comparison), comparison.feedback


class ExactMatch(CallMetric):
    """Whether the expected calls were made, and no others. Takes the arguments of `CallMetric`."""

    __slots__ = ()
    graded = False

    def score(self, comparison: Comparison) -> float:
        """Return 1.0 for an exact match, else 0.0."""
        return float(comparison.exact)


class SubsetMatch(CallMetric):
    """Whether the expected calls are among those made. Takes the arguments of `CallMetric`."""

    __slots__ = ()
    graded = False

    def score(self, comparison: Comparison) -> float:
        """Return 1.0 if no expected call is missing, else 0.0."""
        return float(comparison.subset)


class F1(CallMetric):
    """The F1 of the calls made against those expected. Takes the arguments of `CallMetric`."""

    __slots__ = ()

    def score(self, comparison: Comparison) -> float:
        """Return the F1."""
        return comparison.f1


class Credit(CallMetric):
    """The F1 with credit for each argument: a signal that grows as the arguments get right one by one.

    A call of the right tool that matches no expected call counts by the share of its arguments that are
    right, always below 1. Takes the arguments of `CallMetric`.

    Example:
        >>> gold = dspy.Example(calls=[{"name": "add", "args": {"a": 1, "b": 2}}])
        >>> pred = dspy.Prediction(calls=ToolCalls([{"name": "add", "args": {"a": 1, "b": 3}}]))
        >>> round(Credit()(gold, pred), 2), F1()(gold, pred)
        (0.5, 0.0)
    """

    __slots__ = ()

    def score(self, comparison: Comparison) -> float:
        """Return the F1, in which a call that is right in part counts in part."""
        total = 2 * comparison.matched + len(comparison.missing) + len(comparison.unexpected)
        credit = float(comparison.matched)
        free = list(comparison.unexpected)
        for gold in comparison.missing:
            shares = [_share_of_arguments(gold, call) for call in free]
            best = max(shares, default=0.0)
            if best:
                del free[shares.index(best)]
            credit += best
        return 2 * credit / total if total else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory(_Metric):
    """A DSPy metric over what a run did. The score is the mean of what is asked for, from 0 to 1.

    A call counts whether it succeeded or not. A bad call counts for `forbidden` and `rounds` alone.

    Args:
        order: names of tools that have to be called in this order, other calls between them or not.
        required: names of tools that have to be called; a duplicate counts twice.
        forbidden: names of tools that must not be called.
        redundant: the most calls that repeat an earlier one, with the same arguments.
        rounds: the most rounds, as `sigadapt.rounds` counts them: that of an agent's `submit` is one.

    Raises:
        InvalidOption: for names that are no list of names, a limit that is not an int of 0 or more, or
            nothing to judge by.

    Example:
        >>> calls = ToolCalls([{"name": "find", "args": {"city": "Rome"}}])
        >>> run = dspy.History(messages=[{"question": "?", "calls": calls}])
        >>> metric = Trajectory(required=["find", "book"], forbidden=["pay"])
        >>> metric(None, run), metric(None, run, pred_name="agent").feedback
        (0.75, 'book was called 0 of 1 times.')
    """

    order: Sequence[str] = ()
    required: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    redundant: int | None = None
    rounds: int | None = None

    def __post_init__(self) -> None:
        for name in ("order", "required", "forbidden"):
            value: Any = getattr(self, name)
            if not is_sequence(value) or not all(isinstance(tool, str) for tool in value):
                raise InvalidOption(f"expected a list of names, got {value!r}", field=name)
        for name in ("redundant", "rounds"):
            limit = getattr(self, name)
            if limit is not None and (type(limit) is not int or limit < 0):
                raise InvalidOption(f"expected an int of 0 or more, or None, got {limit!r}", field=name)
        if not (self.order or self.required or self.forbidden) and self.redundant is self.rounds is None:
            raise InvalidOption("there is nothing to judge by", field="order", fix="Give required=[...].")

    def _judgement(self, gold: Any, pred: Any) -> tuple[float, str]:
        if pred is None:
            return _FAILED
        judgements = [*self._judgements(pred)]
        lines = [sentence for _, sentences in judgements for sentence in sentences]
        feedback = listed(lines, _MOST_TOLD, " ") if lines else "The run is as expected."
        return sum(score for score, _ in judgements) / len(judgements), feedback

    def _judgements(self, run: Any) -> Iterator[tuple[float, list[str]]]:
        """Yield a score and what is wrong for each thing that is asked for."""
        run_rounds = rounds(run)
        keys: list[_Key] = []
        for turn in run_rounds:
            keys += [_key(call, None, ids=False) for call in turn.calls.in_order()]
        good = [key for key in keys if key.value is not None]
        names = [str(key.call.name) for key in good]
        if self.order:
            pairs = _in_order(self.order, names)
            missing = dict.fromkeys(name for n, name in enumerate(self.order) if n not in pairs)
            sentence = f"was not called in its place: expected {', '.join(self.order)}."
            yield len(pairs) / len(self.order), [f"{name} {sentence}" for name in missing]
        if self.required:
            goal = Counter(self.required)
            counts = Counter(names)
            missing = goal - counts
            notes = [f"{name} was called {counts[name]} of {goal[name]} times." for name in missing]
            yield 1 - missing.total() / len(self.required), notes
        if self.forbidden:
            seen = dict.fromkeys(key.call.name for key in keys if key.call.name in self.forbidden)
            yield float(not seen), [f"{name} must not be called." for name in seen]
        if self.redundant is not None:
            yield _redundancy(good, self.redundant)
        if self.rounds is not None:
            yield _length(len(run_rounds), self.rounds)


def _redundancy(keys: "list[_Key]", limit: int) -> tuple[float, list[str]]:
    """Judge the calls that repeat an earlier one."""
    first = {key.value: n for n, key in reversed([*enumerate(keys)])}
    repeats = [key for n, key in enumerate(keys) if first[key.value] < n]
    excess = max(0, len(repeats) - limit)
    notes = [f"The call {key.call} repeats an earlier one." for key in repeats]
    return 1 - excess / max(1, len(keys)), notes if excess else []


def _length(count: int, limit: int) -> tuple[float, list[str]]:
    """Judge how many rounds a run took."""
    if count <= limit:
        return 1.0, []
    return limit / count, [f"The run took {count} rounds, and at most {limit} are wanted."]


def _share_of_arguments(gold: ToolCall, call: ToolCall | InvalidToolCall) -> float:
    """Return how far a call matches an expected one, always below 1; 0 for another tool."""
    args = call.args if type(call) is ToolCall else parse_arguments(call.arguments)
    if call.name != gold.name or not is_object(args):
        return 0.0
    right = sum(equal_json(args[name], gold.args[name]) for name in gold.args.keys() & args.keys())
    return (1 + right) / (2 + len(gold.args.keys() | args.keys()))


class _Key(NamedTuple):
    """A call, and of a good one its comparable arguments, and what is equal for calls that match."""

    call: ToolCall | InvalidToolCall
    args: Json | None = None
    value: Hashable = None


def _key(call: ToolCall | InvalidToolCall, decls: ToolDecls | None, *, ids: bool) -> _Key:
    if isinstance(call, (InvalidToolCall, RefusedToolCall)):
        return _Key(call)
    args = call.args
    if decls is not None and call.name in decls:
        args = comparable(args, decls[call.name].parameters)
    call_id = call.id if ids else None
    return _Key(call, args, (call.name, call_id, _hashable(args)))


def _hashable(value: Any) -> Hashable:
    """Return what is equal for equal JSON alone: in Python 1 is True too."""
    if is_object(value):
        return frozenset((name, _hashable(member)) for name, member in value.items())
    if is_array(value):
        return tuple(map(_hashable, value))
    return (bool, value) if isinstance(value, bool) else value


def _gold_calls(expected: Any, decls: ToolDecls | None) -> list[ToolCall]:
    calls = _calls(expected, "expected")
    good: list[ToolCall] = []
    for call in calls:
        was_sent = "arguments" in call.model_fields_set  # by a model: it holds nothing but JSON
        if was_sent or fault_in(call.args, levels=ARGUMENT_LEVELS) is None:
            good.append(call)
        else:
            args = {name: _as_json(call, name) for name in call.args}
            good.append(call.model_copy(update={"args": args}))
    calls = calls.model_copy(update={"tool_calls": good})
    checked_calls = calls if decls is None else calls.validated(decls)
    for bad in checked_calls.invalid:
        fix = "Correct the data: declared tools, and arguments that fit them."
        reason = f"an expected call is invalid: {bad.message}"
        raise InvalidOption(reason, field="expected", tool=bad.name, fix=fix)
    return calls.tool_calls


def _calls(value: Any, field: str) -> ToolCalls:
    if value is None:
        return ToolCalls()
    try:
        return ToolCalls(value)
    except (InvalidHistory, pydantic.ValidationError, TypeError) as error:
        reason = f"{type_of(value)} holds no calls: {cut(repr(value))}"
        fix = "Give ToolCalls, dspy.ToolCalls, or a list of dicts with `name` and `args`."
        raise InvalidOption(reason, field=field, fix=fix) from error


def _as_json(call: ToolCall, name: str) -> Any:
    value = call.args[name]
    try:
        return jsonable(value)
    except ValueError as error:
        reason = f"the argument {name!r} of {call.name} is {type_of(value)} without a JSON form"
        fix = "Give the argument as the model writes it: JSON."
        raise InvalidOption(reason, field="expected", fix=fix) from error


def _in_order(first: Sequence[Hashable], second: Sequence[Hashable]) -> dict[int, int]:
    """Pair the things of a longest common subsequence; None is equal to nothing."""
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]  # of first[:n] and second[:m]
    for (n, key), (m, other) in product(enumerate(first, 1), enumerate(second, 1)):
        if key is not None and key == other:
            lengths[n][m] = lengths[n - 1][m - 1] + 1
        else:
            lengths[n][m] = max(lengths[n - 1][m], lengths[n][m - 1])
    pairs: dict[int, int] = {}
    n = len(first)
    m = len(second)
    while n and m:
        if lengths[n][m] == lengths[n][m - 1]:
            m -= 1
        elif lengths[n][m] == lengths[n - 1][m]:
            n -= 1
        else:
            n -= 1
            m -= 1
            pairs[n] = m
    return pairs


def _feedback(missing: list[_Key], unexpected: list[_Key]) -> str:
    """Say what differs; a missing and an unexpected call of one tool are told as one that is wrong."""
    sentences: list[str] = []
    unpaired = list(unexpected)
    for key in missing:
        near = next((e for e in unpaired if e.args is not None and e.call.name == key.call.name), None)
        if near is None:
            sentences.append(f"The call {key.call} is missing.")
        else:
            unpaired.remove(near)
            sentences.append(_difference(key, near))
    for key in unpaired:
        if isinstance(key.call, (InvalidToolCall, RefusedToolCall)):
            sentences.append(f"The call {key.call} is invalid: {key.call.message}.")
        else:
            sentences.append(f"The call {key.call} was not expected.")
    return listed(sentences, _MOST_TOLD, " ") if sentences else "All calls are as expected."


def _difference(expected: _Key, actual: _Key) -> str:
    gold = expected.args or {}
    args = actual.args or {}
    differences: list[str] = []
    for name in dict.fromkeys([*gold, *args]):
        path = pointer([name])
        if name not in gold:
            differences.append(f"{path} was not expected")
        elif name not in args or not equal_json(gold[name], args[name]):
            state = f"is {cut(json_like(args[name]))}" if name in args else "is missing"
            differences.append(f"{path} {state}, expected {cut(json_like(gold[name]))}")
    if not differences:  # they differ in order or in their ids alone
        return f"The call {actual.call} was made in another place or under another id than expected."
    return f"In {actual.call.name}, {listed(differences, _MOST_TOLD)}."
