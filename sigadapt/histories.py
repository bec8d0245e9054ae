"""Make a conversation's history shorter without breaking it.

A history is cut only before a question. What follows a question up to the next one, a *turn*, stays or goes
as a whole: the calls, their results and the answer. Providers refuse half of it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import dspy

from sigadapt.errors import InvalidOption
from sigadapt.signatures.transcript import Event, Row, answers, call_of, read, rows_of


def trim_history(
    history: dspy.History | Mapping[str, Any],
    *,
    turns: int | None = None,
    characters: int | None = None,
    tokens: int | None = None,
    count: Callable[[str], int] | None = None,
    compacted: bool = False,
    signature: type[dspy.Signature] | None = None,
) -> dspy.History:
    """Return a shorter history: the latest whole turns that fit every limit.

    With `functools.partial`, it can process the history of DSPy's agents:
    `history_processor=partial(trim_history, turns=10, signature=...)` (DSPy's pull request 10217).

    Args:
        history: a `dspy.History`, or what its `model_dump` wrote. It is not changed.
        turns: the most turns to keep.
        characters: the most characters of the kept messages as JSON.
        tokens: the most tokens of the kept turns as JSON, by `count`.
        count: a function that returns the number of tokens in a string.
        compacted: whether to keep no turn before the latest one in which the provider compacted the
            conversation. Anthropic and OpenAI read nothing that stands before it; other providers do.
        signature: the signature of the conversation, whose input fields say which event asks a question.
            Without it, only a field of the first event asks, and none that stands in an event without all
            of these: in doubt, a turn is longer.

    Returns:
        A new History. It begins with a question, and is empty if the latest turn is over a limit.

    Raises:
        InvalidOption: for a limit that is not an int of 0 or more, for no limit, and for `tokens` without
            `count`.
        InvalidHistory: `unreadable_history`, for what is not a history.

    Example:
        >>> asked = [{"question": f"Q{n}", "answer": f"A{n}"} for n in range(3)]
        >>> trim_history(dspy.History(messages=asked), turns=1).messages
        [{'question': 'Q2', 'answer': 'A2'}]
    """
    limits = {"turns": turns, "characters": characters, "tokens": tokens}
    for name, limit in limits.items():
        if limit is not None and (type(limit) is not int or limit < 0):
            raise InvalidOption(f"expected an int of 0 or more, got {limit!r}", field=name)
    if not compacted and all(limit is None for limit in limits.values()):
        fix = "Pass turns=..., characters=... or tokens=..."
        raise InvalidOption("no limit is given", field="turns", fix=fix)
    if tokens is not None and count is None:
        fix = "Pass count=, a function of a string."
        raise InvalidOption("tokens need a function that counts them", field="tokens", fix=fix)
    latest: list[list[Event]] = []
    sizes = {"turns": 0, "characters": len('{"messages":[]}'), "tokens": 0}
    for turn in reversed(turns_of(history, signature)):
        text = "" if characters is None and tokens is None else dspy.History(messages=turn).model_dump_json()
        sizes["turns"] += 1
        sizes["characters"] += len(text) - len('{"messages":[]}') + bool(latest)  # and a comma
        sizes["tokens"] += count(text) if tokens is not None and count is not None else 0
        if any(limit is not None and sizes[name] > limit for name, limit in limits.items()):
            break
        latest.append(turn)
        if not compacted:
            continue
        rows = rows_of(turn)
        calls = [row.calls for row in rows if row.calls]
        calls += [each_round.calls for row in rows for each_round in row.rounds]
        states = [one.turn.state or {} for each in calls for one in (each, *each)]
        blocks = (block for state in states for block in state.get("blocks", ()))
        if any(
            block.get("type") == "compaction" for block in blocks
        ):  # it stands for all that was said before
            break
    whole = read(dspy.History, history, None)  # which has a summary too, from DSPy 3.5 on
    return whole.model_copy(update={"messages": [event for turn in reversed(latest) for event in turn]})


def turns_of(
    history: dspy.History | Mapping[str, Any], signature: type[dspy.Signature] | None = None
) -> list[list[Event]]:
    """Return the turns of a history, each a question and what follows it; what stands before is in none."""
    events: list[Event] = list(read(dspy.History, history, None).messages)
    rows = rows_of(events)
    continues = [*_going_on(rows)]
    plain = [row.plain for row in rows]
    if signature is not None:
        asking = set(signature.input_fields)
    else:
        first = plain[0] if plain else set[str]()
        later = [names for names, goes_on in zip(plain, continues, strict=True) if goes_on or first - names]
        asking = first.difference(*later)
        if not asking:  # one turn, as far as one can tell
            return [events] if events else []
    turns: list[list[Event]] = []
    for event, names, goes_on in zip(events, plain, continues, strict=True):
        if asking & names and not goes_on:
            turns.append([event])
        elif turns:
            turns[-1].append(event)
    return turns


def _going_on(rows: list[Row]) -> Iterator[bool]:
    """Yield of each event whether it brings results of calls that an earlier one made."""
    # An earlier call is looked up: a long turn has many, and each event would be compared with all of them.
    identities: dict[str, set[Any]] = {}
    for _, calls, rounds in rows:
        if rounds and not (calls and answers(rounds[0], calls)):
            same = [call for call in rounds[0].calls.in_order() if call.id in identities]
            yield bool(same) and all(call_of(call) in identities[call.id] for call in same)
        else:
            yield False
        for call in calls.in_order() if calls else ():
            identities.setdefault(call.id, set()).add(call_of(call))
