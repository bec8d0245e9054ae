"""Ask again where one answer is not the end: after a search for tools, a pause of the provider, bad calls."""

from dataclasses import replace
from typing import TypeAlias

from sigadapt.adapters.calling.answers import read_choice
from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.lm.transport import send
from sigadapt.adapters.outputs import is_no_answer
from sigadapt.adapters.passes.order import write
from sigadapt.adapters.request.continuation import (
    asking_again,
    can_go_on,
    change_of_pause,
    whole_turn,
    with_paused_turn,
)
from sigadapt.adapters.request.messages import turns_before
from sigadapt.adapters.response.choice import CandidateAnswer
from sigadapt.adapters.response.typed_calls import with_earlier_calls, with_later_calls
from sigadapt.errors import UnusableAnswer
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import ToolCall, Turn

Exchange: TypeAlias = tuple[CallRecord, CandidateAnswer]
"""One candidate's answer, and the request that it answers, which may be a reask's."""


def whole_answer(record: CallRecord, answer: CandidateAnswer, searches: int = 0) -> Steps[Exchange]:
    """Return one candidate's answer, once no search for deferred tools waits for its own."""
    whole = yield from _rest_of_turn(record, answer)
    choice = read_choice(record, whole)
    calls = choice.tool_calls
    if record.search is None or calls is None or not calls.turn.searches or is_no_answer(choice):
        return record, whole
    searches_left = min(search.most for search in record.search.searches) - searches
    if searches_left < 0:
        raise UnusableAnswer(
            f"the model searched for tools {searches} times, read that it should stop, and searched again",
            code="empty",
            choice=choice,
            field=record.plan.tools,
            fix="Raise max_searches of Toolset.deferred, or load the tools it needs.",
        )
    calls = yield from record.search.with_answers(calls, searches_left)
    if calls:  # the program's calls first: their results go back with the answers
        whole.choice = replace(choice, tool_calls=calls)
        return record, whole
    turn = calls.turn.model_copy(update={"before": ()})
    rows = [*record.canonical["messages"], *turns_before(Turn(before=(turn,)))]
    again = write(record.again({**record.canonical, "messages": rows}, record.earlier.with_search(turn)))
    (latest,) = yield from send(again)
    return (yield from whole_answer(again, latest, searches + len(turn.searches)))


def _rest_of_turn(record: CallRecord, answer: CandidateAnswer) -> Steps[CandidateAnswer]:
    """Return the answer of the whole turn: one that its provider paused is sent back until it ends."""
    for count in range(1, record.call.adapter.options.max_pauses + 1):
        if answer.reading.finish != "pause" or not can_go_on(answer.reading, record.route):
            break
        again = write(record.again(with_paused_turn(record.canonical, answer.reading), record.earlier))
        again.extend((change_of_pause(record.canonical, count),))
        before = answer.reading
        (answer,) = yield from send(again)
        answer.reading = whole_turn(before, answer.reading)  # its Response holds only the last part
        answer.choice = None
    return answer


def reask_until_valid(record: CallRecord, answer: CandidateAnswer, max_reasks: int) -> Steps[Exchange]:
    """Return one candidate's answer, after as many reasks as it needs and `max_reasks` allows."""
    choice = read_choice(record, answer)
    good: list[ToolCall] = []  # of the answers before the last one
    count = 0  # of the calls of these answers, bad ones too
    for _ in range(max_reasks):
        calls = choice.tool_calls
        if calls is None or not calls.invalid or is_no_answer(choice):
            break
        again = record.again(asking_again(record.canonical, calls), record.earlier.with_calls(calls))
        record = write(again)
        try:
            (response,) = yield from send(record)
            record, latest = yield from whole_answer(record, response)
        except Exception as error:  # noqa: BLE001  (raised by `finish`, with the calls that came)
            answer.failure = error
            break
        good, others = with_later_calls(good, calls, count)
        good += others
        count = len(record.earlier.ids)
        answer = latest
        choice = read_choice(record, latest)
    if good:
        turn = Turn(text=choice.text, reasoning=choice.reasoning, before=record.earlier.searches)
        calls = with_earlier_calls(good, choice.tool_calls, turn, count)
        answer.choice = replace(choice, tool_calls=calls)
    return record, answer
