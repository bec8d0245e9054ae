"""Which calls of an answer were right, by what came later in the same turn.

a. A call with a result that is no failure is gold. So is one without a result yet, unconfirmed.
b. A call that does not fit its declaration, or whose result is a failure, is none. The first right call of
   the same tool after it in the turn is, if its arguments are others.
c. So it is where the words of a failure are not known, and the model says between the two calls that it was
   wrong (`ADMISSIONS`). The call that has the most arguments in common is the one that was corrected.
d. A call is none where the log goes on from the same request with other calls: the client asked again.
e. An agent's call of its own `submit` is its final words, and no gold. A bad one is a failure.
f. A call that a person edited before it ran is none. The call that ran is, if it fits its declaration and its
   result is no failure.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, Literal, NamedTuple, TypeAlias

from sigadapt.adapters.outputs import no_answer_code
from sigadapt.adapters.response.text_choice import choice_from_text
from sigadapt.logs.adoption.edits import RunCall, as_it_ran
from sigadapt.logs.adoption.failures import FailureRule, is_outage
from sigadapt.logs.adoption.transcript import (
    AnyCall,
    RoundPlace,
    Rounds,
    Transcript,
    has_result,
    identity_of,
    random_id,
)
from sigadapt.logs.conversation import Conversation
from sigadapt.logs.exchanges import LoggedExchange
from sigadapt.logs.final_words import is_submitted, without_submit
from sigadapt.schemas.json_values import compact, equal_json, is_array, is_object
from sigadapt.signatures.calls import InvalidToolCall, ToolCall

Reason: TypeAlias = Literal["result", "corrected", "unconfirmed"]
Failure: TypeAlias = tuple[str, str | None, str | None]
"""The code of a call that was not right, its tool, and the place in its arguments."""

_CALL_SIGNS = frozenset("<[{`(")
"""Characters without which no text holds a call."""
_WEAKEST_FIRST: tuple[Reason, ...] = ("unconfirmed", "corrected", "result")

ADMISSIONS = (
    *("sorry", "apolog", "mistake", "my bad", "oops", "wrong", "incorrect", "error", "fail"),
    *("invalid", "let me correct", "let me fix", "try again", "retry", "didn't work", "did not work"),
)
"""The words with which a model says, between two calls, that the earlier one was wrong."""

_ADMISSION = re.compile("|".join(map(re.escape, ADMISSIONS)), re.IGNORECASE)
# Sympathy is no admission.
_SYMPATHY = re.compile(
    r"(?:sorry|apologi[sz]e|apologies)[\w ,]{0,20}?"
    r" (?:to hear|about (?:your|that)|for (?:the|any|your) (?:inconvenience|delay|wait|trouble|frustration))",
    re.IGNORECASE,
)


class Gold(NamedTuple):
    """The calls of an answer that were right, why they are taken for it, and what was not right."""

    calls: list[ToolCall]
    reason: Reason
    failures: list[Failure]
    is_in_words: bool = False  # whether the answer has no call, but for an agent's `submit`

    @property
    def is_confirmed(self) -> bool:
        """Whether a later request shows that the calls were right."""
        return self.reason != "unconfirmed"


class LaterRounds:
    """Where a log shows the results of an answer's calls, by what both have in common."""

    def __init__(self, transcripts: Sequence[Transcript], names: Sequence[str]) -> None:
        self._places: dict[tuple[object, ...], RoundPlace] = {}
        for transcript, name in zip(transcripts, names, strict=True):
            for place in transcript.places:
                before = transcript.steps[place.position - 1].chain if place.position else transcript.seed
                self._keep((name, before), place)
                turn = (name, place.question, place.number)
                for call in place.first.calls.in_order():
                    identity = identity_of(call)
                    self._keep((name, before, identity), place)
                    self._keep((*turn, identity), place)
                    if (call_id := random_id(call)) is not None:
                        self._keep((call_id, identity), place)

    def _keep(self, key: tuple[object, ...], place: RoundPlace) -> None:
        """Keep the place of the longest turn, which knows the most."""
        earlier = self._places.get(key)
        if earlier is None or earlier.length < place.length:
            self._places[key] = place

    def place_of(self, transcript: Transcript, name: str, calls: Sequence[AnyCall]) -> RoundPlace | None:
        """Return where the results of calls are; without their results, the rounds that came instead."""
        before = (name, transcript.end)
        turn = (name, transcript.question, transcript.round_count)
        keys: list[tuple[object, ...]] = []
        keys += [(*before, identity_of(call)) for call in calls]
        keys += [(random_id(call), identity_of(call)) for call in calls]
        keys += [(*turn, identity_of(call)) for call in calls]
        keys.append(before)
        places = [self._places[key] for key in keys if key in self._places]
        return places[0] if places else None


def gold_of(exchange: LoggedExchange, place: RoundPlace | None, is_failure: FailureRule) -> Gold:
    """Tell the calls of an answer that were right from those that were not."""
    if exchange.choice.tool_calls is None:
        return Gold([], "unconfirmed", [*_failures_of_words(exchange)], is_in_words=True)
    tools = exchange.conversation.tools
    all_calls = exchange.choice.tool_calls.validated(tools)
    calls = all_calls.in_order()
    turn = _RestOfTurn(place, exchange.conversation, is_failure)
    if turn.has_other_calls_than(calls):
        return Gold([], "unconfirmed", [("replaced", call.name, None) for call in calls])
    calls = without_submit(all_calls, tools).in_order()
    if not calls:
        return Gold([], "unconfirmed", [], is_in_words=True)
    results = turn.results_of({*map(identity_of, calls)})
    verdicts: list[_Verdict] = []
    for call in calls:
        runs = results[identity_of(call)]
        ran = runs.popleft() if runs else RunCall(call, None)
        gold_calls = [verdict.gold for verdict in verdicts if verdict.gold]
        verdicts.append(_verdict_of(call, ran, turn, [*calls, *gold_calls]))
    gold_calls = [verdict.gold for verdict in verdicts if verdict.gold]
    failures = [verdict.failure for verdict in verdicts if verdict.failure]
    reasons = {verdict.reason for verdict in verdicts if verdict.gold}
    for reason in _WEAKEST_FIRST:
        if reason in reasons:
            return Gold(gold_calls, reason, failures)
    return Gold(gold_calls, "unconfirmed", failures)


class _Verdict(NamedTuple):
    """What a turn says about one of its calls."""

    gold: ToolCall | None  # the call that was right: this one, or the one that corrected it
    reason: Reason
    failure: Failure | None = None


def _verdict_of(call: AnyCall, ran: RunCall, turn: "_RestOfTurn", known_calls: Sequence[AnyCall]) -> _Verdict:
    """Return what a turn says about a call.

    Args:
        call: what the model wrote.
        ran: what ran, and its result, as far as the turn shows it.
        turn: the rest of the turn.
        known_calls: the calls of the same answer, then those that corrected the ones before.
    """
    has_failed = ran.result is not None and turn.is_failure(ran.result)
    correction = turn.right_call(ran) if ran.is_edited else None
    if isinstance(call, ToolCall) and not has_failed and not ran.is_edited:
        if ran.result is None:
            return _Verdict(call, "unconfirmed")
        correction = turn.admitted_correction(call, known_calls)
        if correction is None:
            return _Verdict(call, "result")
    if correction is None and (has_failed or not ran.is_edited) and not is_outage(ran.result):
        correction = turn.correction(call, {*map(identity_of, known_calls)})
    return _Verdict(correction, "corrected", _failure_of(ran, call))


def _failure_of(ran: RunCall, call: AnyCall) -> Failure:
    """Return why a call was not right."""
    if isinstance(call, InvalidToolCall):
        return call.code, call.name, call.path
    return "edited" if ran.is_edited else "tool_failed", call.name, None


def _failures_of_words(exchange: LoggedExchange) -> Iterator[Failure]:
    """Yield why an answer without calls is none: it says nothing, or is a call that a server left as text."""
    code = no_answer_code(exchange.choice)
    if code is not None:
        yield code, None, None
        return
    text = exchange.choice.text or ""
    if exchange.conversation.tools and not _CALL_SIGNS.isdisjoint(text):
        calls = choice_from_text(text, exchange.conversation.tools).tool_calls
        for call in calls.in_order() if calls else ():
            yield "call_in_text", call.name, None


class _RestOfTurn:
    """What a turn holds from an answer on."""

    def __init__(self, place: RoundPlace | None, conversation: Conversation, is_failure: FailureRule) -> None:
        self._rounds: Rounds = () if place is None else place.rounds[place.number :]
        self._tools = conversation.tools
        self.is_failure = is_failure
        self._question = compact(conversation.question).lower()

    def has_other_calls_than(self, calls: Sequence[AnyCall]) -> bool:
        """Return whether the turn goes on with other calls than these, each of which fits its declaration."""
        if not self._rounds or not all(isinstance(call, ToolCall) for call in calls):
            return False
        turn_calls = self._rounds[0].calls.in_order()
        if {*map(identity_of, calls)} & {*map(identity_of, turn_calls)}:
            return False
        # A client may have written the arguments in another way.
        return not {*map(random_id, calls)} & {*filter(None, map(random_id, turn_calls))}

    def results_of(self, identities: set[str]) -> Mapping[str, deque[RunCall]]:
        """Return an answer's calls as they ran, with results, in order, as far as the turn shows them."""
        results: dict[str, deque[RunCall]] = {identity: deque() for identity in identities}
        for turn in self._rounds[:1]:
            for call, result in turn.pairs:
                identity = identity_of(call)
                if identity in identities and has_result(call, result):
                    results[identity].append(as_it_ran(call, result))
        return results

    def correction(self, call: AnyCall, used: set[str]) -> ToolCall | None:
        """Return the first right call of the same tool that is not among those that were used."""
        for right_call in self._right_calls(self._rounds):
            if right_call.name != call.name or identity_of(right_call) in used:
                continue
            return None if self._asks_for_both(call, right_call) else right_call
        return None

    def _asks_for_both(self, call: AnyCall, other: ToolCall) -> bool:
        """Return whether the user named what two calls differ in: then each is what was asked for."""
        if not isinstance(call, ToolCall):
            return False
        differing = [name for name in {**call.args, **other.args} if not _is_equal_in(name, call, other)]
        values = [each.args.get(name) for name in differing for each in (call, other)]
        return bool(values) and all(self._names(value) for value in values)

    def _names(self, value: Any) -> bool:
        """Return whether the question holds a value as a word."""
        if value is None or is_object(value) or is_array(value):
            return False
        return _has_word(self._question, str(value).lower())

    def admitted_correction(self, call: ToolCall, calls: Sequence[AnyCall]) -> ToolCall | None:
        """Return the call with which a model corrected this one, if it says so in words."""
        for number, turn in enumerate(self._rounds[1:], 1):
            new_calls = [each for each in turn.calls.tool_calls if each.name == call.name]
            if not new_calls:
                continue
            texts = " ".join(each.text or "" for each in self._rounds[1 : number + 1])
            if not _ADMISSION.search(_SYMPATHY.sub("", texts)):
                return None
            if not any(_is_corrected_by(call, new_call, calls) for new_call in new_calls):
                return None
            later_calls = self._right_calls(self._rounds[number:])
            identity = identity_of(call)
            for later_call in later_calls:
                if later_call.name == call.name and identity_of(later_call) != identity:
                    return None if self._asks_for_both(call, later_call) else later_call
            return None
        return None

    def _right_calls(self, rounds: Rounds) -> Iterator[ToolCall]:
        """Yield the calls of rounds that fit their declarations and did not fail."""
        for turn in rounds:
            yield from filter(None, map(self.right_call, starmap(as_it_ran, turn.pairs)))

    def right_call(self, ran: RunCall) -> ToolCall | None:
        """Return a call that fits its declaration and did not fail; None for others and for final words."""
        call, result = ran.call, ran.result
        if not isinstance(call, ToolCall) or result is None or self.is_failure(result):
            return None
        if is_submitted(call.name, self._tools) or self._tools.flaw_of(call.name, call.args):
            return None
        return call


def _is_corrected_by(call: ToolCall, new_call: ToolCall, calls: Sequence[AnyCall]) -> bool:
    """Return whether no call of the same answer is more like a new one than this one is."""
    if equal_json(call.args, new_call.args):
        return False
    rivals = [each for each in calls if isinstance(each, ToolCall) and each.name == call.name]
    return _likeness(call, new_call) == max(_likeness(rival, new_call) for rival in rivals)


def _likeness(call: ToolCall, other: ToolCall) -> int:
    """Return how many arguments two calls have in common."""
    return sum(_is_equal_in(name, call, other) for name in call.args)


def _is_equal_in(name: str, call: ToolCall, other: ToolCall) -> bool:
    """Return whether two calls have the same argument."""
    return equal_json(call.args.get(name, ...), other.args.get(name, ...))


def _has_word(text: str, word: str) -> bool:
    """Return whether a text has a word, or words, that are no part of a longer one."""
    start = text.find(word)
    while start >= 0:
        around = text[start - 1 : start] + text[start + len(word) :][:1]
        if not any(char.isalnum() or char == "_" for char in around):
            return True
        start = text.find(word, start + 1)
    return False
