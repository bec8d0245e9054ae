"""Ask again where one answer is not the end: after a search for tools, a pause of the provider, bad calls."""

from dataclasses import replace
from typing import TypeAlias

from sigadapt.adapters.calling.answers import read_choice
from sigadapt.adapters.calling.call_record import CallRecord
from sigadapt.adapters.lm.transport import send
from sigadapt.adapters.outputs import is_no_answer
from sigadapt.adapters.passes.order import write
from sigadapt.adapters.request.canonical import Change, Request
from sigadapt.adapters.request.messages import assistant_message, result_message, search_message, turns_before
from sigadapt.adapters.response.choice import CandidateAnswer
from sigadapt.adapters.response.typed_calls import with_earlier_calls, with_later_calls
from sigadapt.errors import UnusableAnswer
from sigadapt.providers import BY_WIRE
from sigadapt.providers.route import Route
from sigadapt.providers.wire.reading import Reading
from sigadapt.providers.wire.values import in_paragraphs, join_texts
from sigadapt.signatures.awaiting import Steps
from sigadapt.signatures.calls import SearchRecord, ToolCall, ToolCalls, Turn
from sigadapt.signatures.tool_results.pairing import failed_result
from sigadapt.signatures.tool_results.tool_result import ToolResult

Exchange: TypeAlias = tuple[CallRecord, CandidateAnswer]
"""One candidate's answer, and the request that it answers, which may be a reask's."""

_ACCEPTED = "This call is accepted. Do not repeat it."


def asking_again(request: Request, calls: ToolCalls) -> Request:
    """Return the Request that asks again after an answer with bad calls (one bad call)."""
    # The turn is sent back unchanged. Arguments that are no object, which lm15 and some providers refuse, are
    # quoted in the call's failed result.
    every = sorted([*calls.in_order(), *calls.turn.searches], key=lambda call: call.index)
    rows = [assistant_message(every, calls.turn, calls.text)]
    for call in every:
        if isinstance(call, SearchRecord):
            rows.append(search_message(call))
        elif isinstance(call, ToolCall):
            rows.append(result_message(ToolResult(call_id=call.id, name=call.name, value=_ACCEPTED)))
        else:
            rows.append(result_message(failed_result(call)))
    return {**request, "messages": [*request["messages"], *rows]}


# Anthropic pauses a long turn of its own tools with the stop reason `pause_turn`, and goes on with it when it
# gets the turn back as it came, with the same tools.
# Source: https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons#pause_turn


def can_go_on(reading: Reading, route: Route) -> bool:
    """Return whether all of a paused turn is at hand to be sent back."""
    state = reading.state
    is_whole = state is not None and state["dialect"] == route.wire and not route.as_chat
    return is_whole and not reading.calls


def with_paused_turn(request: Request, reading: Reading) -> Request:
    """Return the request with the paused turn behind it."""
    turn = Turn(text=reading.text, reasoning=reading.reasoning, state=reading.state)
    return {**request, "messages": [*request["messages"], assistant_message((), turn, turn.text)]}


def change_of_pause(request: Request, count: int) -> Change:
    """Return the record of a turn's pause, the first or a later one, in a request that had not seen it."""
    why = f"the provider paused its turn; it is sent back as it came ({count})"
    return Change(f"/messages/{len(request['messages'])}", "lowered", why)


def whole_turn(before: Reading, latest: Reading) -> Reading:
    """Return the Reading of the whole turn: of what was paused, and of what came when it went on."""
    pauses = before.state or {}
    provider = BY_WIRE[pauses["dialect"]]
    rows = latest.state or {"blocks": provider.plain_blocks(latest.text, len(latest.calls))}
    blocks = [*pauses["blocks"], *rows["blocks"]]
    kinds = {provider.part_of(block).kind for block in (pauses["blocks"][-1], *rows["blocks"][:1])}
    # A None begins a paragraph: the provider's own tools ran between the two texts.
    texts = [before.text, latest.text] if kinds == {"text"} else [before.text, None, latest.text]
    return latest._replace(
        work=provider.work(blocks),
        text=in_paragraphs(texts),
        reasoning=join_texts([before.reasoning, latest.reasoning]),
        state={**pauses, **rows, "blocks": blocks},
    )


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
