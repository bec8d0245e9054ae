"""replay: whole recorded conversations again, on another model, and where it leaves the record.

What the user says and what tools answer comes from the record; what the model says and calls is its own. It
leaves the record where it makes another call, answers instead of calling, or calls instead of answering. This
is agreement with the record, and no measure of who is right.

 a. `strict`: the same calls in the same place, in any order within one answer.
 b. `by-call`: any call that the conversation has gets a result that it got there. A turn may end in words
    once the calls that succeeded in it were made.
 c. A recorded call that fits no declaration is not expected: nobody should make it again.
 d. An agent's call of its own `submit` is its final words. Beside other calls, it is not compared.
 e. A call that a person edited is expected as it ran, and gets its result without the note that says so.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import dspy
from rich.console import RenderableType

from sigadapt.adapters.request.messages import read
from sigadapt.errors import InvalidOption, UnusableAnswer
from sigadapt.logs.adoption.adopted import Adopted
from sigadapt.logs.adoption.edits import round_as_it_ran
from sigadapt.logs.adoption.failures import FailurePattern, FailureRule
from sigadapt.logs.adoption.transcript import has_result
from sigadapt.logs.agreement import (
    AdoptedLog,
    Model,
    adopted_of,
    answer_of,
    inputs_of,
    models_of,
    outcome_of,
)
from sigadapt.logs.attempts import attempt
from sigadapt.logs.final_words import is_submitted, without_submit, words_of
from sigadapt.logs.tables import Report, progress, table_of
from sigadapt.logs.turns import tools_of
from sigadapt.metrics import compare
from sigadapt.schemas.arguments import parse_arguments
from sigadapt.schemas.json_values import Json, compact, cut, is_object
from sigadapt.signatures.calls import InvalidToolCall, ToolCall, ToolCalls
from sigadapt.signatures.tool_decls import ToolDecls
from sigadapt.signatures.tool_results.results import Round, ToolResults
from sigadapt.signatures.tool_results.tool_result import ToolResult

Match: TypeAlias = Literal["strict", "by-call"]
Step: TypeAlias = list[Json] | str
"""What was said in one answer: its calls, as `name` and `args`, or its words."""

_MOST_SHOWN = 10
_MOST_ROUNDS = 10  # of one turn, beyond what the record has: a model may call the same for ever


@dataclass(frozen=True)
class Departure:
    """Where a model left a recorded conversation.

    Args:
        conversation: the id of the conversation.
        turn: the number of the turn in it, from 1 on.
        expected: the calls that the record has there, or its words.
        came: the calls that came, or the words.
        code: `other_arguments`, `other_tool`, `none` for words instead of a call, `called_anyway` for a call
            instead of words, the code of a bad call or of an unusable answer, or `error`.
    """

    conversation: str
    turn: int
    expected: Step
    came: Step
    code: str


@dataclass(repr=False)
class Replayed(Report):
    """How far a model followed recorded conversations. It prints as a table.

    Args:
        model: its name.
        conversations: how many were replayed.
        followed: the share of them in which it never left the record.
        left: where it left the others, one Departure for each.
    """

    model: str
    conversations: int
    followed: float
    left: list[Departure]

    def document(self) -> Json:
        """Return the counts and the departures as JSON."""
        return {
            "model": self.model,
            "conversations": self.conversations,
            "followed": self.conversations - len(self.left),
            "left": [vars(departure) for departure in self.left],
        }

    def tables(self) -> Sequence[RenderableType]:
        """Return how many conversations were followed, and where the others were left."""
        followed = self.conversations - len(self.left)
        rows: list[Sequence[object]] = [
            ("conversations", self.conversations),
            ("followed to their end", f"{followed:,} ({self.followed:.0%})"),
            ("left", len(self.left)),
        ]
        tables: list[RenderableType] = [table_of(f"Conversations with {self.model}", ("", "count"), rows)]
        if self.left:
            cells = [
                (each.turn, each.code, _text_of(each.expected), _text_of(each.came))
                for each in self.left[:_MOST_SHOWN]
            ]
            heads = ("turn", "code", "expected", "came")
            tables.append(table_of("Where it left the record", heads, cells))
        return tables


def _text_of(step: Step) -> str:
    if isinstance(step, str):
        return cut(step)
    calls: list[str] = []
    for call in step:
        arguments = ", ".join(f"{name}={value!r}" for name, value in call["args"].items())
        calls.append(f"{call['name']}({cut(arguments) if arguments else ''})")
    return ", ".join(calls)


def replay(
    adopted: AdoptedLog,
    model: Model,
    *,
    match: Match = "strict",
    failed: FailurePattern | None = None,
    threads: int = 4,
    name: str | None = None,
) -> Replayed:
    """Replay whole recorded conversations on another model, with the user's words and results of the record.

    Args:
        adopted: an Adopted, or the folder of one.
        model: a language model, or its name as `dspy.LM` takes it.
        match: `strict` expects the same calls in the same place. `by-call` gives any call of the conversation
            a result that it got in the record, in whatever order the model makes them.
        failed: which results are failures besides what every tool says, as in `adopt`. With `by-call`, nobody
            has to make such calls again.
        threads: how many conversations are replayed at once.
        name: the model's name in the table.

    Returns:
        A Replayed.

    Raises:
        InvalidOption: for another match, no conversations, an invalid `failed`, or what is no model.
    """
    if match not in ("strict", "by-call"):
        raise InvalidOption(f"expected 'strict' or 'by-call', got {match!r}", field="match")
    log = adopted_of(adopted)
    records = [*_records_of(log)]
    if not records:
        raise InvalidOption("there are no conversations to replay", field="adopted")
    [(model_name, lm)] = models_of(model).items()
    play = partial(_departure_of, adopted=log, lm=lm, match=match, is_failure=FailureRule(failed))
    pool = ThreadPoolExecutor(threads)
    try:
        departures = [*progress(pool.map(play, records), name or model_name, len(records))]
    finally:
        pool.shutdown(cancel_futures=True)
    left = [departure for departure in departures if departure is not None]
    return Replayed(name or model_name, len(records), 1 - len(left) / len(records), left)


class _RecordedTurn(NamedTuple):
    """What the record has of a turn."""

    question: Any
    rounds: list[Round]  # whose calls fit their declarations
    ends_in_words: bool
    last_calls: list[ToolCall]  # that nobody answered
    event: Json  # the row of the history


class _Record(NamedTuple):
    """A recorded conversation: its longest request, and what the answer to that was."""

    name: str
    inputs: Json
    tools: ToolDecls
    turns: list[_RecordedTurn]


def _records_of(adopted: Adopted) -> Iterator[_Record]:
    """Yield the conversations of a log."""
    longest: dict[str, dspy.Example] = {}
    lengths: dict[str, int] = defaultdict(lambda: -1)
    for row in (*adopted.rows, *adopted.silences):
        length = len(compact([row.get("history"), row.get("question"), row.get("results")]))
        if length > lengths[row["conversation"]]:
            longest[row["conversation"]] = row
            lengths[row["conversation"]] = length
    for name, row in sorted(longest.items()):
        tools = tools_of(row.get("tools"), adopted.tools)
        history = read(dspy.History, row["history"], "history").messages if row.get("history") else []
        last_event: Json = {"question": row.get("question"), "answer": None if row.get("calls") else "words"}
        if row.get("results"):
            last_event["results"] = read(ToolResults, row["results"], "results")
        if row.get("calls"):
            last_event["calls"] = ToolCalls(row["calls"])
        turns = [_recorded_turn(event, tools) for event in (*history, last_event)]
        yield _Record(name, inputs_of(row), tools, turns)


def _recorded_turn(event: Json, tools: ToolDecls) -> _RecordedTurn:
    results = event.get("results")
    calls = event.get("calls")
    last_calls = ToolCalls() if calls is None else read(ToolCalls, calls, "calls")
    recorded = () if results is None else read(ToolResults, results, "results").rounds
    rounds = [*map(round_as_it_ran, recorded)]
    submits = bool(rounds) and not _without_submit(rounds[-1], tools).calls
    rounds = [_without_submit(turn, tools) for turn in rounds]
    return _RecordedTurn(
        question=event.get("question"),
        rounds=[turn for turn in rounds if turn.calls.validated(tools).tool_calls],
        ends_in_words=submits or bool(event.get("answer")),
        last_calls=[*last_calls.validated(tools)],
        event=event,
    )


def _without_submit(turn: Round, tools: ToolDecls) -> Round:
    """Return a round without an agent's call of its `submit`."""
    calls = without_submit(turn.calls, tools)
    ids = {call.id for call in calls.in_order()}
    return Round(calls=calls, results=tuple(result for result in turn.results if result.call_id in ids))


def _departure_of(
    record: _Record, *, adopted: Adopted, lm: Any, match: Match, is_failure: FailureRule
) -> Departure | None:
    """Play a conversation, and return where the model left it; None if it did not."""
    player = _Player(record, adopted, lm, is_failure)
    for number, turn in enumerate(record.turns, 1):
        if turn.question is None and number < len(record.turns):
            player.events.append(turn.event)  # the record begins with the model: nobody was asked
            continue
        steps = player.strict_turn(turn) if match == "strict" else player.turn_by_call(turn)
        if steps is not None:
            expected, came, code = steps
            return Departure(record.name, number, expected, came, code)
    return None


_Difference: TypeAlias = tuple[Step, Step, str]


class _Player:
    """A conversation as it went so far, with the model's own words and calls."""

    def __init__(self, record: _Record, adopted: Adopted, lm: Any, is_failure: FailureRule) -> None:
        self.events: list[Json] = []
        self._record = record
        self._program: Any = adopted.program
        self._lm = lm
        self._is_failure = is_failure
        # By what was called, the results that the whole conversation has of it, in order.
        self._pairs = [
            (call, result)
            for turn in record.turns
            for each in turn.rounds
            for call, result in each.pairs
            if isinstance(call, ToolCall) and has_result(call, result)
        ]
        self._used: set[int] = set()

    def strict_turn(self, turn: _RecordedTurn) -> _Difference | None:
        """Play a turn in which each call has its place."""
        results = ToolResults()
        for each in turn.rounds:
            expected = [*each.calls.validated(self._record.tools)]
            calls, difference = self._ask(turn, results, expected)
            if difference is not None:
                return difference
            results += self._round(calls, each.pairs)
        return self._end(turn, results)

    def turn_by_call(self, turn: _RecordedTurn) -> _Difference | None:
        """Play a turn in which calls come in any order."""
        results = ToolResults()
        missing = [
            call
            for each in turn.rounds
            for call, result in each.pairs
            if isinstance(call, ToolCall) and has_result(call, result) and not self._is_failure(result)
        ]
        most_rounds = len(missing) + _MOST_ROUNDS
        while missing or self._needs_words(turn, results):
            prediction, difference = self._answer(turn, results, _step_of(ToolCalls(missing[:1])) or "words")
            if difference is not None:
                return difference
            calls = prediction.calls or ToolCalls()
            if not self._others(calls) and not missing:
                self._add_event(turn, results, prediction)
                return None
            difference = self._difference(calls, prediction.answer, missing[:1], any_call=True)
            if difference is not None or len(results.rounds) == most_rounds:
                step = _step_of(ToolCalls(missing[:1])) or "words"
                return difference or (step, _step_of(calls), "called_anyway")
            results += self._round(calls, self._recorded_pairs(self._others(calls)))
            missing = [
                recorded
                for recorded in missing
                if not any(_is_same(recorded, call, self._record.tools) for call in calls)
            ]
        return self._end(turn, results)

    def _end(self, turn: _RecordedTurn, results: ToolResults) -> _Difference | None:
        """Play the end of a turn: words, or calls that nobody answered."""
        if turn.last_calls:
            return self._ask(turn, results, turn.last_calls)[1]
        prediction = None
        if self._needs_words(turn, results):
            prediction, difference = self._answer(turn, results, "words")
            if difference is not None:
                return difference
            calls = self._others(prediction.calls)
            if calls:
                return "words", _step_of(calls), _code_of_bad(calls) or "called_anyway"
        self._add_event(turn, results, prediction)
        return None

    def _needs_words(self, turn: _RecordedTurn, results: ToolResults) -> bool:
        """Return whether a turn ends in words that the model has not submitted beside its last calls."""
        last_calls = results.rounds[-1].calls if results.rounds else ()
        has_submitted = any(is_submitted(call.name, self._record.tools) for call in last_calls)
        return turn.ends_in_words and not has_submitted

    def _others(self, calls: ToolCalls | None) -> ToolCalls:
        """Return calls without an agent's of its `submit`."""
        return without_submit(calls, self._record.tools)

    def _add_event(self, turn: _RecordedTurn, results: ToolResults, prediction: Any) -> None:
        """Add a turn that was played to the conversation so far, with its last answer if it had one."""
        event: Json = {"question": turn.question, "answer": None}
        if prediction is not None:
            if prediction.calls:  # of `submit`
                results += self._round(prediction.calls, ())
            else:
                event["answer"] = prediction.answer
        if results.rounds:
            event["results"] = results
        self.events.append(event)

    def _ask(
        self, turn: _RecordedTurn, results: ToolResults, expected: list[ToolCall]
    ) -> tuple[ToolCalls, _Difference | None]:
        """Ask for calls, and return them, and how they differ from those that are expected."""
        prediction, difference = self._answer(turn, results, _step_of(ToolCalls(expected)))
        if difference is not None:
            return ToolCalls(), difference
        calls = prediction.calls or ToolCalls()
        return calls, self._difference(calls, prediction.answer, expected)

    def _difference(
        self, calls: ToolCalls, answer: str | None, expected: list[ToolCall], *, any_call: bool = False
    ) -> _Difference | None:
        """Return how calls differ from those that are expected, or from any of the record."""
        step: Step = _step_of(ToolCalls(expected)) or "words"
        all_calls, calls = calls, self._others(calls)
        came: Step = _step_of(calls) if calls else words_of(all_calls, answer)
        if bad_code := _code_of_bad(calls):
            return step, came, bad_code
        if any_call and calls and all(map(self._is_recorded, calls)):
            return None
        if not expected:
            return step, came, "called_anyway"
        outcome, _ = outcome_of(_step_of(ToolCalls(expected)), calls, self._record.tools)
        return None if outcome == "same_call" else (step, came, outcome)

    def _answer(
        self, turn: _RecordedTurn, results: ToolResults, expected: Step
    ) -> tuple[Any, _Difference | None]:
        """Ask the model with the conversation so far."""
        history = dspy.History(messages=self.events) if self.events else None
        said = results if results.rounds else None
        inputs = self._record.inputs | {"question": turn.question, "history": history, "results": said}
        prediction = attempt(partial(answer_of, self._program, self._lm, inputs))
        if isinstance(prediction, UnusableAnswer):
            return None, (expected, str(prediction), prediction.code)
        if isinstance(prediction, Exception):
            return None, (expected, f"{type(prediction).__name__}: {prediction}", "error")
        return prediction, None

    def _is_recorded(self, call: ToolCall) -> bool:
        return any(_is_same(recorded, call, self._record.tools) for recorded, _ in self._pairs)

    def _recorded_pairs(self, calls: ToolCalls) -> list[Any]:
        """Return recorded calls like these with their results: each once, as long as there are more."""
        chosen: list[Any] = []
        for call in calls:
            numbers = [
                n for n, (known, _) in enumerate(self._pairs) if _is_same(known, call, self._record.tools)
            ]
            number = next((n for n in numbers if n not in self._used), numbers[-1])
            self._used.add(number)
            chosen.append(self._pairs[number])
        return chosen

    def _round(self, calls: ToolCalls, pairs: Sequence[Any]) -> ToolResults:
        """Return calls of the model with the results that equal calls of the record got."""
        remaining = [*pairs]
        results: list[ToolResult] = []
        for call in calls:
            if is_submitted(call.name, self._record.tools):
                results.append(ToolResult(call_id=call.id, name=call.name, value=call.args))
                continue
            number = next(
                n for n, (known, _) in enumerate(remaining) if _is_same(known, call, self._record.tools)
            )
            _, recorded = remaining.pop(number)
            results.append(recorded.model_copy(update={"call_id": call.id, "name": call.name}))
        return ToolResults(rounds=(Round(calls=calls, results=tuple(results)),))


def _is_same(recorded: Any, call: ToolCall, tools: ToolDecls) -> bool:
    """Return whether a call is a recorded one, whatever its id."""
    if not isinstance(recorded, ToolCall) or recorded.name != call.name:
        return False
    return compare([_call_row(recorded)], ToolCalls([call]), tools).exact


def _step_of(calls: ToolCalls) -> list[Json]:
    return [_call_row(call) for call in calls.in_order()]


def _call_row(call: ToolCall | InvalidToolCall) -> Json:
    args = call.args if isinstance(call, ToolCall) else parse_arguments(call.arguments)
    return {"name": call.name, "args": args if is_object(args) else {}}


def _code_of_bad(calls: ToolCalls | None) -> str | None:
    """Return the code of the first bad call."""
    return calls.invalid[0].code if calls and calls.invalid else None
