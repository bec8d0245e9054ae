"""compare: ask models with recorded rows, and tell their calls from those that were recorded.

It is agreement with what an older model did, row by row, and no measure of who is right. A row that a model's
wire cannot take is skipped, on record. What an agent submits is words, on both sides.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from math import comb
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import dspy
import pydantic
from rich.console import RenderableType

from sigadapt import metrics
from sigadapt.errors import (
    InvalidHistory,
    InvalidOption,
    InvalidSignature,
    InvalidToolDecl,
    UnusableAnswer,
)
from sigadapt.logs.adoption.adopted import Adopted, load
from sigadapt.logs.adoption.folder import rows_in
from sigadapt.logs.attempts import attempt
from sigadapt.logs.final_words import is_submitted, without_submit
from sigadapt.logs.tables import Report, progress, table_of
from sigadapt.logs.turns import LABELS, tools_of
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import (
    Json,
    compact,
    is_iterable,
    is_mapping,
    is_object,
    short_hash,
    type_of,
)
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.trust.private_files import open_private

OUTCOMES = ("same_call", "other_arguments", "other_tool", "bad_call", "none", "error")
SKIPPED = "skipped"
"""The outcome of a row that the model's wire cannot take."""

AdoptedLog: TypeAlias = Adopted | str | PathLike[str]
Model: TypeAlias = str | dspy.BaseLM
"""A language model, or its name as `dspy.LM` takes it."""

_WORDS_ALONE = ("refused", "filtered")
_REFUSALS = (InvalidHistory, InvalidOption, InvalidSignature, InvalidToolDecl)  # before a request is sent
_MOST_SHOWN = 5


@dataclass(frozen=True)
class ModelReply:
    """What became of one row: an outcome, what differs in words, and what it took."""

    outcome: str
    why: str = ""
    called: bool = False  # whether the model called a tool at all, but for an agent's `submit`
    changes: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)  # of the input and the output
    cost: float | None = None  # in dollars, where DSPy knows it
    calls: tuple[Json, ...] = ()  # good and bad, as `name` and `args`
    requests: int = 1  # how many it took


def ask(program: Any, lm: Any, row: Any, tools: Any) -> ModelReply:
    """Send a row to a model and compare the calls with the row's; a row without `calls` needs none."""
    model: Any = lm.copy()  # whose history holds nothing else
    calls = ToolCalls()
    outcome = ""
    reason = ""
    prediction = attempt(partial(answer_of, program, model, inputs_of(row)))
    if not isinstance(prediction, Exception):
        calls = prediction.calls or calls
    elif not isinstance(prediction, UnusableAnswer):
        outcome = SKIPPED if isinstance(prediction, _REFUSALS) and not model.history else "error"
        reason = f"{type(prediction).__name__}: {prediction}"
    elif prediction.code not in _WORDS_ALONE:
        outcome = "error"
        reason = str(prediction)
    called = False
    if not outcome:
        row_tools = tools_of(row.get("tools"), tools)
        called = not all(is_submitted(call.name, row_tools) for call in calls.in_order())
        calls = without_submit(calls, row_tools)
        outcome, reason = outcome_of(row.get("calls") or [], calls, row_tools)
    entries: list[Json] = model.history
    costs = [entry["cost"] for entry in entries if entry.get("cost") is not None]
    cost = sum(costs) if costs else None
    changes: list[str] = []
    for entry in entries:
        changes += map(str, entry.get("changes") or ())
    return ModelReply(
        outcome,
        reason,
        called=called,
        changes=tuple(changes),
        tokens=(_tokens(entries, "prompt_tokens"), _tokens(entries, "completion_tokens")),
        cost=cost,
        calls=tuple(map(_call_row, calls.in_order())),
        requests=max(1, len(entries)),
    )


def answer_of(program: Any, lm: Any, inputs: Json) -> Any:
    """Return what a program gives on a model."""
    with dspy.context(lm=lm):
        return program(**inputs)


def inputs_of(row: Any) -> Json:
    """Return what a program takes of a row."""
    return {key: value for key, value in row.items() if key not in LABELS}


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
    diff = metrics.compare(gold, calls, tools)
    if diff.exact:
        return "same_call", ""
    missing = sorted(str(call.name) for call in diff.missing)
    unexpected = sorted(str(call.name) for call in diff.unexpected)
    return "other_arguments" if missing == unexpected else "other_tool", diff.feedback


@dataclass(repr=False)
class ModelAgreement:
    """How far a model called what was recorded: counts of rows by outcome.

    Args:
        model: its name.
        rows: how many rows were asked.
        same_call: the model made the recorded calls.
        other_arguments: it called the same tools with other arguments.
        other_tool: it called other tools.
        bad_call: a call of its does not fit its declaration.
        none: it answered in words.
        error: it did not answer.
        called_anyway: calls in turns that were answered in words.
        skipped: rows that its wire cannot take. They are not among `rows`.
        changes: what could not be sent unchanged.
        input_tokens: tokens of all requests.
        output_tokens: tokens of all answers.
        cost: in dollars; None where it's unknown.
        replies: what became of each row, in order.
    """

    model: str
    rows: int
    same_call: int
    other_arguments: int
    other_tool: int
    bad_call: int
    none: int
    error: int
    called_anyway: int
    skipped: int
    changes: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    replies: list[ModelReply]

    @classmethod
    def of(cls, model: str, replies: list[ModelReply], silences: list[ModelReply]) -> "ModelAgreement":
        """Return the counts of replies to rows with gold calls, and to turns that needed no call."""
        outcomes = Counter(reply.outcome for reply in replies)
        every_reply = [*replies, *silences]
        costs = [reply.cost for reply in every_reply if reply.cost is not None]
        return cls(
            model=model,
            rows=len(replies) - outcomes[SKIPPED],
            **{name: outcomes[name] for name in OUTCOMES},
            called_anyway=sum(reply.called for reply in silences),
            skipped=outcomes[SKIPPED],
            changes=sum(len(reply.changes) for reply in every_reply),
            input_tokens=sum(reply.tokens[0] for reply in every_reply),
            output_tokens=sum(reply.tokens[1] for reply in every_reply),
            cost=sum(costs) if costs else None,
            replies=replies,
        )

    def document(self) -> Json:
        """Return the counts as JSON."""
        return {name: value for name, value in vars(self).items() if name != "replies"}


@dataclass(repr=False)
class Comparison(Report):
    """How far models agree with a log. It prints as a table.

    Args:
        models: a ModelAgreement for each model.
        sign_tests: for each two models, the rows in which one alone agreed, and how likely that is by chance.
    """

    models: list[ModelAgreement]
    sign_tests: list[Json]

    def tables(self) -> Sequence[RenderableType]:
        """Return the counts, a column a model, and what differs."""
        names = [name for name in self.models[0].document() if name != "model"] if self.models else []
        rows = [
            [name.replace("_", " "), *(_number(getattr(each, name)) for each in self.models)]
            for name in names
        ]
        heads = ("", *(each.model for each in self.models))
        tables: list[RenderableType] = [table_of("Agreement with what was recorded", heads, rows)]
        for each in self.models:
            reasons = Counter(
                (reply.outcome.replace("_", " "), reply.why) for reply in each.replies if reply.why
            )
            differences = [(*reason, count) for reason, count in reasons.most_common(_MOST_SHOWN)]
            if differences:
                title = f"Where {each.model} differs most often"
                tables.append(table_of(title, ("outcome", "what differs", "rows"), differences))
        if self.sign_tests:
            rows: list[list[Any]] = []
            for test in self.sign_tests:
                first, second = test["models"]
                chance = f"p = {test['p']:.3g}"
                rows.append([first, test["first_alone"], second, test["second_alone"], chance])
            heads = ("model", "alone", "model", "alone", "by chance")
            tables.append(table_of("The same call, by one of two models alone", heads, rows))
        return tables


def _number(value: Any) -> Any:
    if value is None:
        return "unknown"
    return f"${value:.4f}" if isinstance(value, float) else value


def compare(
    adopted: AdoptedLog,
    models: Model | Iterable[Model] | Mapping[str, Model],
    *,
    threads: int = 4,
    journal: str | PathLike[str] | None = None,
    again: bool = False,
) -> Comparison:
    """Ask models with recorded rows, each row once, and count how far they agree with the log.

    Args:
        adopted: an Adopted, or the folder of one.
        models: language models, or names as `dspy.LM` takes them; one, several, or a mapping from names that
            the table has to models.
        threads: how many rows are asked at once.
        journal: a folder in which replies are kept, so that a run that was stopped goes on where it was.
        again: whether to ask rows again that are in the journal.

    Returns:
        A Comparison.

    Raises:
        InvalidOption: if there are no rows, or a model is none.

    Example:
        >>> import sigadapt
        >>> from sigadapt.testing import Answer, Call, LoopbackProvider
        >>> tools = [{"type": "function", "function": {"name": "now", "description": "The time."}}]
        >>> request = {"messages": [{"role": "user", "content": "What time is it?"}], "tools": tools}
        >>> call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
        >>> answer = {"role": "assistant", "tool_calls": [call]}
        >>> adopted = sigadapt.logs.adopt(
        ...     [{"request": request, "response": {"choices": [{"message": answer}]}}]
        ... )
        >>> with LoopbackProvider([Answer(calls=[Call("now", {})])]) as provider:
        ...     comparison = compare(adopted, dspy.LM(**provider.lm_options("anthropic")))
        >>> comparison.models[0].same_call
        1
    """
    log = adopted_of(adopted)
    gold_rows = log.rows
    rows = [*gold_rows, *log.silences]
    if not rows:
        raise InvalidOption("there are no rows to ask with", field="adopted", fix="Adopt a log with tools.")
    agreements: list[ModelAgreement] = []
    for name, lm in models_of(models).items():
        path = None
        if journal is not None:
            key = short_hash(compact([name, lm.model, log.tools.fingerprint()]))
            path = Path(journal) / f"asked-{key}.jsonl"
        kept_replies = {} if path is None or again else replies_in(rows_in(path)[0])
        answer = partial(_answer, adopted=log, lm=lm, journal=_Journal(path, kept_replies))
        pool = ThreadPoolExecutor(threads)
        try:
            replies = [*progress(pool.map(answer, rows), name, len(rows))]
        finally:
            pool.shutdown(cancel_futures=True)  # who stops it pays no more
        agreements.append(ModelAgreement.of(name, replies[: len(gold_rows)], replies[len(gold_rows) :]))
    return Comparison(agreements, sign_tests(agreements))


def adopted_of(adopted: AdoptedLog) -> Adopted:
    """Return an Adopted, loaded if it is a folder."""
    return adopted if isinstance(adopted, Adopted) else load(adopted)


def models_of(models: Model | Iterable[Model] | Mapping[str, Model]) -> dict[str, Any]:
    """Return language models by the names that tables have for them.

    Raises:
        InvalidOption: for what is no language model, or for none.
    """
    if is_mapping(models):
        return {name: model_of(model) for name, model in models.items()}
    is_one = isinstance(models, (str, dspy.BaseLM)) or not is_iterable(models)
    some_models: Any = [models] if is_one else models
    named: dict[str, Any] = {}
    for model in some_models:
        lm = model_of(model)
        name = str(lm.model)
        number = 2
        while name in named:
            name = f"{lm.model} ({number})"
            number += 1
        named[name] = lm
    if not named:
        raise InvalidOption("no model was given", field="models")
    return named


def model_of(model: Any) -> Any:
    """Return a language model, by its name as `dspy.LM` takes it."""
    lm = dspy.LM(model) if isinstance(model, str) else model
    if not isinstance(lm, dspy.BaseLM):
        fix = "Give a dspy.LM, or its name, such as 'openai/gpt-5-mini'."
        raise InvalidOption(f"{model!r} is {type_of(model)}, not a dspy.LM", field="model", fix=fix)
    return lm


class _Journal(NamedTuple):
    """The file of a model's replies, and those of an earlier run, by the hashes of their rows."""

    path: Path | None
    replies: dict[str, ModelReply]


def _answer(row: dspy.Example, *, adopted: Adopted, lm: Any, journal: _Journal) -> ModelReply:
    """Return the reply to a row: the earlier one, or a new one, which is written to the journal."""
    key = short_hash(compact(row.toDict()))
    if key in journal.replies:
        return journal.replies[key]
    reply = ask(adopted.program, lm, row, adopted.tools)
    if reply.outcome != "error" and journal.path is not None:
        with open_private(journal.path, "a") as file:
            file.write(f"{compact({'row': key, 'asked': asdict(reply)})}\n")
    return reply


_REPLY = pydantic.TypeAdapter(ModelReply)


def replies_in(journal: Iterable[Json]) -> dict[str, ModelReply]:
    """Return the replies of an earlier run, by the hashes of their rows."""
    replies: dict[str, ModelReply] = {}
    for entry in journal:
        with suppress(KeyError, pydantic.ValidationError):  # what is no reply is asked again
            replies[str(entry["row"])] = _REPLY.validate_python(entry["asked"])
    return replies


def sign_tests(agreements: Iterable[ModelAgreement]) -> list[Json]:
    """Return for each two models the rows in which one alone agreed, and how likely that is by chance."""
    tests: list[Json] = []
    for model, rival in combinations(agreements, 2):
        agreed: list[tuple[bool, bool]] = []
        for reply, rival_reply in zip(model.replies, rival.replies, strict=True):
            outcomes = (reply.outcome, rival_reply.outcome)
            if not {"error", SKIPPED} & {*outcomes}:
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
